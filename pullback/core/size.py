"""`Size`: the shape of a tensor, a tuple of ints with PyTorch's repr and `numel`."""

from __future__ import annotations

import math


class Size(tuple):
    """A tuple of ints; slices and sums of sizes stay sizes.

    >>> torch.ones(2, 3).shape
    torch.Size([2, 3])
    >>> torch.Size([2, 3]).numel()
    6
    """

    __slots__ = ()

    def __new__(cls, sizes=()):
        values = tuple(sizes)
        for i, s in enumerate(values):
            if not isinstance(s, int) and not hasattr(s, "__index__"):
                raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{type(s).__name__}')")
        return tuple.__new__(
            cls, (s if type(s) is int or not isinstance(s, int) and not _plain(s) else s.__index__() for s in values)
        )

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __getitem__(self, key):
        got = tuple.__getitem__(self, key)
        return tuple.__new__(Size, got) if isinstance(key, slice) else got

    def __add__(self, other):
        if not isinstance(other, tuple):
            if hasattr(type(other), "__radd__"):
                return NotImplemented
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return tuple.__new__(Size, tuple.__add__(self, other))

    def __radd__(self, other):
        if not isinstance(other, tuple):
            return NotImplemented
        return tuple.__new__(Size, tuple(other) + tuple(self))

    def __mul__(self, times):
        return tuple.__new__(Size, tuple.__mul__(self, times))

    __rmul__ = __mul__

    def numel(self) -> int:
        return math.prod(self)

    def __reduce__(self):
        return (Size, (tuple(self),))


def _plain(value: object) -> bool:
    """Whether `value` stands for a fixed number (a symbolic size stays as it is)."""
    return not hasattr(value, "node")


def make_size(shape: tuple) -> Size:
    """A Size from a tuple that is known to hold sizes: no checks."""
    return tuple.__new__(Size, shape)
