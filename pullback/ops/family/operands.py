"""Operands of element-wise operators: which arguments they are, what they are rounded to, and the kernel that takes them.

In: operators, Python numbers, arrays of one dtype. Out: arrays, numbers and results as the array library has them.
"""

from __future__ import annotations

import numpy as np

from ...core.dtype import INT, dtype
from ..eager.kernels import kernel_of, loop_of
from ..system.operator import Operator
from ..system.scalars import check_word, integer_range

__all__ = ["call_kernel", "number_array", "operand_mask", "rounded_number", "stays_wide"]


def operand_mask(op: Operator) -> tuple[bool, ...]:
    """Which arguments take part in promotion."""
    mask = op.__dict__.get("operand_mask")
    if mask is None:
        named = op.declared.operands
        mask = tuple(a.name in named if named else a.is_tensor for a in op.schema.arguments)
        op.operand_mask = mask
    return mask


def call_kernel(op: Operator, xp, values: list):
    if op.kernel is not None:
        return kernel_of(op)(xp, *values)
    arrays = [v for v in values if hasattr(v, "dtype")]
    if xp is np and (loop := loop_of(op)) is not None and all(a.dtype.char == "f" for a in arrays):
        return loop(*arrays)
    return getattr(xp, op.declared.ufunc)(*arrays)


def stays_wide(op: Operator, argument, rank: int = 0) -> bool:
    """Whether an operand, a number or a tensor of `rank` dimensions, enters a computation in half precision unrounded."""
    return not rank and argument.name in op.declared.wide


def rounded_number(value, d: dtype) -> float:
    """A Python number rounded to a floating dtype."""
    return float(number_array(np, value, d))


def number_array(xp, value, working: dtype):
    """A Python number as a 0-d array of a dtype; integers out of range wrap, as in PyTorch, those of 64 bits."""
    if hasattr(value, "is_symbolic"):
        if getattr(value, "is_ragged", False):
            raise RuntimeError(f"invalid argument: the ragged size {value!r} is no number to compute with")
        value = value.concrete()
    if working.category == INT and isinstance(value, int) and not isinstance(value, bool):
        low, high = integer_range(working)
        if not low <= value <= high:
            check_word(value)
            value = (value - low) % (high - low + 1) + low
    if not working.is_complex and isinstance(value, complex):
        value = value.real
    if xp is not np and working.numpy.kind in "biufc":
        return working.numpy.type(value)  # goes to the device with the call
    return xp.asarray(value, dtype=working.numpy)
