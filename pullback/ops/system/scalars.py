"""Python numbers that stand for elements: whether they fit a dtype, and the checks operators share for them.

In: numbers as users pass them. Out: the same numbers, or PyTorch's errors. Nothing here reads a tensor's data.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ...core import dtype as dtypes
from ...core.dtype import COMPLEX, FLOAT, INT, dtype
from ...core.promotion import result_type
from ...core.tensor import Tensor

# What the C++ side calls the types, in two kinds of messages.
_FIXED_NAMES = {
    dtypes.uint8: "uint8_t", dtypes.int8: "int8_t", dtypes.int16: "int16_t", dtypes.int32: "int",
    dtypes.int64: "int64_t", dtypes.uint16: "uint16_t", dtypes.uint32: "uint32_t", dtypes.uint64: "uint64_t",
    dtypes.float16: "c10::Half",
    dtypes.bfloat16: "c10::BFloat16", dtypes.float32: "float", dtypes.float64: "double", dtypes.bool: "bool",
}  # fmt: skip
_C_NAMES = {
    dtypes.uint8: "unsigned char", dtypes.int8: "signed char", dtypes.int16: "short int", dtypes.int32: "int",
    dtypes.int64: "long int", dtypes.float16: "c10::Half", dtypes.bfloat16: "c10::BFloat16", dtypes.float32: "float",
    dtypes.float64: "double", dtypes.complex64: "c10::complex<float>", dtypes.complex128: "c10::complex<double>",
    dtypes.uint16: "short unsigned int", dtypes.uint32: "unsigned int", dtypes.uint64: "long unsigned int",
}  # fmt: skip


def c_name(d: dtype) -> str:
    """A dtype as messages from C++ spell it: "long int"."""
    return _C_NAMES.get(d, d.name)


def exact_out(result: Tensor, out: Tensor) -> None:
    """`check_out` of operators whose `out=` must have the very dtype of the result: products, and places, which floats round."""
    if out.dtype is not result.dtype:
        raise RuntimeError(
            f"Expected out tensor to have dtype {c_name(result.dtype)}, but got {c_name(out.dtype)} instead"
        )


def truth_out(name: str):
    """`check_out` of tests of elements, whose answers go into booleans alone."""

    def check(result: Tensor, out: Tensor) -> None:
        if out.dtype is not result.dtype:
            raise RuntimeError(f"{name} does not support non-boolean outputs.")

    return check


def input_out(result: Tensor, out: Tensor) -> None:
    """As `exact_out`, of operators whose result has the dtype of their input."""
    if out.dtype is not result.dtype:
        raise RuntimeError(
            f"Expected the dtype for input and out to match, but got {result.dtype.scalar_name} for input's dtype and "
            f"{out.dtype.scalar_name} for out's dtype."
        )


@cache
def integer_range(d: dtype) -> tuple[int, int]:
    """The least and the greatest number of an integer dtype."""
    info = np.iinfo(d.numpy)
    return int(info.min), int(info.max)


def check_fits(value, d: dtype) -> None:
    """Refuse a number that a dtype cannot hold; negative integers wrap in unsigned types, NaN and infinities are floats."""
    if isinstance(value, complex) and d.category != COMPLEX and value.imag != 0:
        raise _overflow(d)
    value = value.real if isinstance(value, complex) else value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    if d.category == INT:
        lowest, highest = integer_range(d)
        low = -highest if not d.is_signed and isinstance(value, int) else lowest
        if isinstance(value, float) and not math.isfinite(value) or not low <= value <= highest:
            raise _overflow(d)
    elif d.category == FLOAT and 448 < abs(value) < math.inf and abs(value) > dtypes.finfo(d).max:  # all hold 448
        raise _overflow(d)


def check_integers(d: dtype, *values) -> None:
    """Refuse numbers that an integer dtype cannot hold. All hold the smallest ones; floating dtypes round, or become infinite."""
    if d.category == INT:
        for value in values:
            if value.__class__ is not int or not -129 < value < 128:
                check_fits(value, d)


def check_word(value: int) -> None:
    """Refuse an integer of more than 64 bits, signed or not, beside integers: its lower bits are no number of the user's."""
    if value >= 1 << 64:
        raise OverflowError("int too big to convert")
    if value < -(1 << 63):
        raise OverflowError("can't convert negative int to unsigned")


def _overflow(d: dtype) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {_FIXED_NAMES.get(d, d.name)} without overflow")


def check_alpha(self, other, alpha) -> None:
    """`alpha` must be a number that the result's dtype can hold."""
    if alpha.__class__ is int and -129 < alpha < 128:
        return
    d = result_type(self, other)
    if alpha.__class__ is int:
        return check_integers(d, alpha)
    if isinstance(alpha, bool) and d is not dtypes.bool:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and d.category < FLOAT:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and d.category < COMPLEX:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")


def is_bool(x) -> bool:
    """Whether an operand, tensor or number, is boolean."""
    return x.dtype is dtypes.bool if isinstance(x, Tensor) else isinstance(x, bool)


def is_complex(x) -> bool:
    """Whether an operand, tensor or number, is complex."""
    return x.dtype.is_complex if isinstance(x, Tensor) else isinstance(x, complex)
