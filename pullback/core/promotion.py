"""Type promotion: which dtype two operands meet in.

Rules are PyTorch's: dtypes form a lattice; among operands, tensors with dimensions outrank 0-d tensors, which outrank
Python numbers, unless a lower rank has a higher *category* (bool < int < float < complex).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from . import dtype as dtypes
from .dtype import BOOL, COMPLEX, FLOAT, INT, dtype
from .modes import ambient

_SIGNED_ABOVE = {
    dtypes.int8: dtypes.int16,
    dtypes.int16: dtypes.int16,
    dtypes.int32: dtypes.int32,
    dtypes.int64: dtypes.int64,
}
_WIDE_UNSIGNED = (dtypes.uint16, dtypes.uint32, dtypes.uint64)


@cache
def promote_types(a: dtype, b: dtype) -> dtype:
    """The smallest dtype to which both may be cast, as `torch.promote_types`.

    >>> torch.promote_types(torch.int32, torch.float16)
    torch.float16
    """
    if a is b:
        return a
    if a.numpy is None and a is not dtypes.complex32 or b.numpy is None and b is not dtypes.complex32:
        raise RuntimeError(f"promote_types: no promotion is defined between {a} and {b}")
    if a.category > b.category:
        a, b = b, a
    if a.category == b.category == INT:
        return _promote_ints(a, b)
    if a.category == b.category == FLOAT:
        return _promote_floats(a, b)
    if b.category == COMPLEX and a.category >= FLOAT:
        return _promote_complex(a, b)
    return b


def _promote_ints(a: dtype, b: dtype) -> dtype:
    if a.is_signed == b.is_signed:
        return a if a.itemsize >= b.itemsize else b
    unsigned, signed = (a, b) if b.is_signed else (b, a)
    if unsigned in _WIDE_UNSIGNED:
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {a.scalar_name} and {b.scalar_name}"
        )
    return _SIGNED_ABOVE[signed]


def _promote_floats(a: dtype, b: dtype) -> dtype:
    if a.itemsize == 1 or b.itemsize == 1:
        raise RuntimeError(
            f"Promotion for Float8 Types is not supported, attempted to promote {a.scalar_name} and {b.scalar_name}"
        )
    if a.itemsize == b.itemsize == 2:
        return dtypes.float32
    return a if a.itemsize >= b.itemsize else b


def _promote_complex(a: dtype, b: dtype) -> dtype:
    sizes = {dtypes.complex32: 2, dtypes.complex64: 4, dtypes.complex128: 8}
    wide = max(sizes.get(a, 4 if a is dtypes.bfloat16 else a.itemsize), sizes[b])
    return {2: dtypes.complex32, 4: dtypes.complex64, 8: dtypes.complex128}[wide]


def scalar_dtype(value: object) -> dtype:
    """The dtype that a Python number stands for."""
    if isinstance(value, bool):
        return dtypes.bool
    if isinstance(value, int):
        return dtypes.int64
    if isinstance(value, complex):
        return ambient.default_dtype.to_complex()
    if isinstance(value, float):
        return ambient.default_dtype
    kind: Any = getattr(value, "symbolic_type", None)  # symbolic numbers say what they stand for
    return {int: dtypes.int64, bool: dtypes.bool}.get(kind, ambient.default_dtype)


def result_type(*operands) -> dtype:
    """The dtype of an operation on tensors and Python numbers, as `torch.result_type`."""
    dims = zeros = numbers = None
    for x in operands:
        if x is None:
            continue
        d = getattr(x, "dtype", None)
        if not isinstance(d, dtype):
            s = scalar_dtype(x)
            numbers = s if numbers is None else promote_types(numbers, s)
        elif x._array.ndim:
            dims = d if dims is None else promote_types(dims, d)
        else:
            zeros = d if zeros is None else promote_types(zeros, d)
    return _combine(_combine(dims, zeros), numbers)


def _combine(high: dtype | None, low: dtype | None) -> dtype:
    if high is None or low is None:
        return high or low  # type: ignore[return-value]
    if high.category >= low.category:
        return high
    if low.is_complex and high.is_floating_point and high is not dtypes.float64:
        # a complex number meeting a float tensor keeps the tensor's precision
        return high.to_complex()
    if low.is_complex and high.is_floating_point:
        return dtypes.complex128
    return low if high.category == BOOL else promote_types(high, low)


def can_cast(source: dtype, target: dtype) -> bool:
    """Whether an in-place result of dtype `source` may be stored as `target`.

    >>> torch.can_cast(torch.float64, torch.int64)
    False
    """
    return source.category <= target.category


def to_float(d: dtype) -> dtype:
    """Integers and booleans become the default float; others stay."""
    return ambient.default_dtype if d.category <= INT else d
