"""What stands around training: data loading, checkpointing, exchange of tensors with other libraries.

Each submodule is loaded when it is first named, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib

from ..core.swap import swap_tensors

_SUBMODULES = ("benchmark", "checkpoint", "cpp_extension", "data", "deterministic", "dlpack", "hooks")

__all__ = ["checkpoint", "cpp_extension", "data", "deterministic", "dlpack", "hooks", "swap_tensors"]


def __getattr__(name: str):
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})
