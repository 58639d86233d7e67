"""What operators gave on fake tensors, so that a call like an earlier one does no arithmetic on shapes.

In: an operator and canonical arguments. Out: a key, equal for calls whose results must look alike, or the reason why there
is none; and for a key the recipe of the results: shapes, strides, dtypes, devices, of views where they lie. One cache serves
all fake modes. What always holds: everything a shape rule may read is in the key (the tensors' metadata, all other
arguments with their types, default dtype and device, inference mode); results that hang on data or on symbols are never kept.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from ...core import device as devices
from ...core import dtype as dtypes
from ...core import modes
from ...core.modes import ambient
from ...core.tensor import Tensor, stride_of
from ...ops.system.operator import Operator

LIMIT = 8192  # recipes; then all are dropped, which is cheaper than knowing which are old
_CONSTANTS = frozenset((int, float, bool, complex, str, type(None)))
_NAMES = (dtypes.dtype, devices.device, devices.layout, devices.memory_format)


class DispatchCacheInfo(NamedTuple):
    """How often the cache was asked, what it answered, and why calls went past it."""

    hits: int
    misses: int
    bypasses: dict[str, int]
    size: int


class Bypass(Exception):
    """A call that has no key; its argument says why."""


class TensorMetadata(NamedTuple):
    """All of a tensor that a shape rule may read."""

    shape: tuple
    stride: tuple
    storage_offset: int
    dtype: dtypes.dtype
    device: devices.device
    keys: int
    requires_grad: bool


def extract_tensor_metadata(t: Tensor) -> TensorMetadata:
    """The part of a key that stands for a tensor."""
    array = t._array
    stride = array.stride if hasattr(array, "stride") else stride_of(t)
    return TensorMetadata(
        tuple(array.shape), stride, t._offset, t.dtype, t.device, t._keys, t._autograd is not None and t.requires_grad
    )


class CacheKey:
    """A key with its hash, which is taken once."""

    __slots__ = ("key", "hashed")

    def __init__(self, key: tuple):
        self.key, self.hashed = key, hash(key)

    def __hash__(self) -> int:
        return self.hashed

    def __eq__(self, other) -> bool:
        return isinstance(other, CacheKey) and self.key == other.key


class CacheKeyState:
    """What a key may be taken with besides the call: the shape environment that symbols belong to."""

    def __init__(self, shape_env=None):
        self.shape_env = shape_env


class DispatchCache:
    """Recipes by key, and the count of what happened."""

    def __init__(self) -> None:
        self.recipes: dict[tuple, Any] = {}
        self.hits = self.misses = 0
        self.bypasses: Counter[str] = Counter()

    def clear(self) -> None:
        self.recipes.clear()
        self.hits = self.misses = 0
        self.bypasses.clear()

    def info(self) -> DispatchCacheInfo:
        return DispatchCacheInfo(self.hits, self.misses, dict(self.bypasses), len(self.recipes))

    def keep(self, key: tuple, recipe) -> None:
        self.misses += 1
        if len(self.recipes) >= LIMIT:
            self.recipes.clear()
        self.recipes[key] = recipe


def key_of(op: Operator, args, symbolic: bool) -> tuple:
    """The key of a call; `symbolic` where sizes may be symbols, which have none."""
    key: list = [op, ambient.default_dtype, ambient.default_device, ambient.mode & modes.INFERENCE]
    for a in args:
        key.append(_part(a, symbolic))
    return tuple(key)


def _part(a, symbolic: bool):
    if isinstance(a, Tensor):
        array = a._array
        shape, stride = array.shape, array.stride
        if symbolic and not _is_plain(a):
            raise Bypass("symbolic shape")
        return shape, stride, a._offset, a.dtype, a.device, a._keys, a._autograd is not None and a.requires_grad
    kind = a.__class__
    if kind in _CONSTANTS:
        return a if kind is str or a is None else (kind, a)
    if kind is tuple or kind is list:
        return tuple([_part(x, symbolic) for x in a])
    if isinstance(a, _NAMES):
        return a
    raise Bypass(f"{kind.__name__} argument")


def _is_plain(t: Tensor) -> bool:
    array = t._array
    return (
        t._offset.__class__ is int
        and all(s.__class__ is int for s in array.shape)
        and all(s.__class__ is int for s in array.stride)
    )
