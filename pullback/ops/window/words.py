"""The words of window operators' errors, and the argument forms they share.

Comes in: what the user gave. Goes out: tuples with one entry per spatial axis, or an exception in PyTorch's words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...core.dtype import COMPLEX, FLOAT, INT, by_numpy

COUNTS = {1: "one int", 2: "two ints", 3: "three ints"}


def entries(function: str, argument: str, value: Sequence[int], spatial: int, optional: bool = False) -> tuple:
    """One entry per spatial axis from a list of one or of all; the pooling operators' words otherwise."""
    if len(value) == spatial:
        return tuple(value)
    if len(value) == 1:
        return tuple(value) * spatial
    be = "be either" if argument == "dilation" else "either be omitted," if optional else "either be"
    raise RuntimeError(f"{function}: {argument} must {be} a single int, or a tuple of {COUNTS[spatial]}")


def listed(values: Iterable[Any]) -> str:
    """A shape as messages print it: [1, 2]."""
    return "[" + ", ".join(str(v) for v in values) + "]"


def labelled(prefix: str, axes: Sequence[str], values: Sequence[Any]) -> str:
    """kH: 1 kW: 2."""
    return " ".join(f"{prefix}{a}: {v}" for a, v in zip(axes, values))


def require(kernel: str, numpy_dtype: Any, *categories: int) -> None:
    """Raise where a kernel has no code for a dtype, naming the kernel as PyTorch does."""
    dtype = by_numpy[numpy_dtype]
    if dtype.category not in categories or dtype.itemsize == 1 and dtype.category == FLOAT:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dtype.scalar_name}'")


REAL = (INT, FLOAT)
NUMBERS = (INT, FLOAT, COMPLEX)
INEXACT = (FLOAT, COMPLEX)
