"""Operators written in Triton: not here, and said so."""

from __future__ import annotations

from typing import Any, NoReturn

_ABSENT = (
    "{} needs Triton, which pullback does not use: write the kernel in Python (torch.library.custom_op), or as a CUDA kernel "
    "through CuPy."
)


def triton_op(name: str, fn: Any = None, /, *, mutates_args: Any, schema: str | None = None) -> NoReturn:
    """Raises: Triton is absent."""
    raise ModuleNotFoundError(_ABSENT.format("torch.library.triton_op"), name="triton")


def wrap_triton(triton_kernel: Any, /) -> NoReturn:
    """Raises: Triton is absent."""
    raise ModuleNotFoundError(_ABSENT.format("torch.library.wrap_triton"), name="triton")
