"""In the place of an array: a tensor (or several) that another layout is made of.

Subclasses have `shape` and `values` (the tensor that holds the numbers) and say by `implementation` whose storage is
asked for where there is none.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .geometry import contiguous_strides

if TYPE_CHECKING:
    from .tensor import Tensor


class WrappedArray:
    """The metadata that follows from a shape and values."""

    __slots__ = ()

    shape: tuple[int, ...]
    values: Tensor
    base = None
    implementation = "OpaqueTensorImpl"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self):
        return self.values._array.dtype

    @property
    def itemsize(self) -> int:
        return self.values._array.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def stride(self) -> tuple:
        return contiguous_strides(self.shape)

    @property
    def strides(self):
        raise NotImplementedError(f"Cannot access storage of {self.implementation}")

    @property
    def __array_interface__(self):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
