"""What a ufunc alone can do: the order of memory of results, and for which dtypes and arguments it is the whole operator.

In: operators whose declaration names a ufunc, arrays, dtypes. Out: arrays in PyTorch's order, sets of dtypes, yes or no.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ...core import dtype as dtypes
from ...core import small
from ...core.arrays import strided
from ...core.dtype import BOOL, COMPLEX, FLOAT, INT, dtype
from ...core.geometry import elementwise_strides
from ...core.tensor import CUDA, Tensor
from ..system.operator import Operator
from .kernels import loop_of

CATEGORIES = {
    "all": (BOOL, INT, FLOAT, COMPLEX), "number": (INT, FLOAT, COMPLEX), "float": (FLOAT, COMPLEX),
    "real": (BOOL, INT, FLOAT), "real_number": (INT, FLOAT), "real_float": (FLOAT,),
    "int": (BOOL, INT), "integer": (INT,),
}  # fmt: skip
COMPUTED = frozenset(d for d in dtypes.ALL if d.numpy is not None and not (d.is_floating_point and d.itemsize == 1))


def laid_out(result, arrays, xp=np):
    """A fresh result in the order of memory that its operands ask for, which is not always the array library's."""
    if xp is np and (out := small.laid_out(result, arrays)) is not None:
        return out
    first = arrays[0] if arrays and xp is np else None
    if first is not None and first.shape == result.shape and 1 not in first.shape and first.flags.c_contiguous:
        if result.flags.c_contiguous:  # whose order says everything
            return result
    stride = _strides(result.shape, result.itemsize, arrays)
    if result.strides == stride or not result.size:
        return result
    out = blank(result.shape, result.dtype, arrays, xp)
    out[...] = result
    return out


def blank(shape: tuple, dtype: np.dtype, arrays, xp=np):
    """Memory for the result of an element-wise operator on some arrays."""
    size = 1
    for s in shape:
        size *= s
    strides = _strides(shape, dtype.itemsize, arrays)
    if xp is not np:
        return strided(xp.empty(size, dtype), shape, dtype, 0, strides)
    out = np.empty(shape, dtype)
    return out if out.strides == strides or not size else np.ndarray(shape, dtype, out.reshape(-1), 0, strides)


def _strides(shape: tuple, itemsize: int, arrays) -> tuple:
    operands = [(a.shape, tuple([s // a.itemsize for s in a.strides])) for a in arrays if a.ndim]
    return tuple([s * itemsize for s in elementwise_strides(shape, operands or [((), ())])])


def ufunc_of(op: Operator, values: list, result: np.dtype):
    """`call(arrays, out)` by the ufunc alone, where that is the whole operator on arrays of this dtype, else None."""
    declared = op.declared
    arguments = op.schema.arguments
    first = next((v for v in values if isinstance(v, np.ndarray)), None)
    if declared.ufunc is None or first is None or dtypes.by_numpy[first.dtype] not in direct_dtypes(op):
        return None
    if result != first.dtype and declared.result is not dtypes.bool:
        return None
    if any(not a.is_tensor and not _is_default(a, v) for a, v in zip(arguments, values, strict=True)):
        return None
    loop = loop_of(op) if first.dtype.char == "f" else None
    ufunc = getattr(np, declared.ufunc) if loop is None else loop
    fixed = declared.constant is not None and loop is None  # loops in C have it in them
    constant = [np.asarray(declared.constant, dtype=first.dtype)] if fixed else []
    return lambda pieces, out: ufunc(*constant, *[p for p in pieces if isinstance(p, np.ndarray)], out=out)


def _is_default(argument, value) -> bool:
    return argument.has_default and not isinstance(value, np.ndarray) and value == argument.default


@cache
def direct_dtypes(op: Operator) -> frozenset:
    """The dtypes for which the ufunc alone is right."""
    by_default = "float" if op.declared.promote == "int_to_float" else op.declared.supports
    accepted = CATEGORIES[op.declared.direct or by_default]
    direct = {d for d in COMPUTED if d.category in accepted}
    result = op.declared.result
    if result is not None and not isinstance(result, dtype):  # depends on the operand: real results of complex ones
        direct = {d for d in direct if not d.is_complex}
    if op.declared.constant is not None:  # of equals, ufuncs of halves give the first: a zero would lose its sign
        direct -= dtypes.reduced_precision
    return frozenset(direct)


def ufunc_writes(op: Operator, target: Tensor, args: tuple) -> bool:
    """Whether `ufunc(..., out=target)` is the whole in-place operator for these arguments."""
    declared, d = op.declared, target.dtype
    if (
        declared.ufunc is None
        or declared.constant is not None
        or declared.result is not None
        or d not in direct_dtypes(op)
        or target._keys & ~CUDA
        or declared.operands
        or declared.dense_writes
        and not target._array.flags.c_contiguous
    ):
        return False
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if not argument.is_tensor:
            if not argument.has_default or value != argument.default:
                return False
        elif isinstance(value, Tensor):
            if value.dtype is not d or value._keys & ~CUDA or not _fits(value._array.shape, target._array.shape):
                return False
        elif d.category != FLOAT or value.__class__ not in (int, float):
            return False
        elif argument.name in declared.wide and d in dtypes.reduced_precision:
            return False
    return True


def _fits(shape: tuple, into: tuple) -> bool:
    lead = len(into) - len(shape)
    return lead >= 0 and all(s == 1 or s == n for s, n in zip(shape, into[lead:], strict=True))
