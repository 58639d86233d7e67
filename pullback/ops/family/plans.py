"""What an element-wise call on small plain tensors of the CPU comes to: found out once for each combination of dtypes.

`plan_of(family, op, args)` is the plan of a call, kept by the operator under the dtypes of its tensors, the classes of its numbers and its
words, of which rules of promotion and support may ask; None where a call has many elements or dtypes that the array library does not
compute in. `plan.run(op, args)` then does what `Pointwise.execute` does, which stays the only
place that says what is right: the plan is read off the same rules. NotImplemented where the kernel refuses the arrays: `execute` says why.
"""

from __future__ import annotations

import numpy as np

from ...core import dtype as dtypes
from ...core import halves
from ...core.arrays import LARGE
from ...core.dtype import dtype
from ...core.modes import ambient
from ...core.objects import make_tensor
from ...core.tensor import Tensor
from ..eager import ufuncs
from ..eager.kernels import half_kernel_of, half_loop_of
from ..system.operator import Operator
from ..system.scalars import check_fits
from .operands import call_kernel, number_array, operand_mask, rounded_number, stays_wide

__all__ = ["plan_of"]

_NUMBERS = frozenset((int, float, bool, complex))
_MISSING = object()


def plan_of(family, op: Operator, args: tuple) -> Plan | None:
    key: list = [ambient.default_dtype]
    for a in args:
        if isinstance(a, Tensor):
            array = a._array
            if array.size >= LARGE:
                return None
            key.append(a.dtype)
            key.append(not array.ndim)
        else:
            key.append(a if a.__class__ is str else a.__class__)
    plans = op.__dict__.setdefault("plans", {})
    plan = plans.get(found := tuple(key), _MISSING)
    if plan is _MISSING:
        plan = plans[found] = _planned(family, op, args)
    return plan


def _planned(family, op: Operator, args: tuple) -> Plan | None:
    declared, tensors = op.declared, op.tensors(args)
    if declared.last_leads or not tensors:
        return None
    if any(t.dtype not in ufuncs.COMPUTED for t in tensors):
        return None
    if any(not isinstance(a, Tensor) and a is not None and a.__class__ not in _NUMBERS for a in _operands(op, args)):
        return None
    family.validate(op, args)
    _, compute, result = family.plan(op, args)
    halved = compute in dtypes.reduced_precision and not declared.native
    if compute not in ufuncs.COMPUTED or result not in ufuncs.COMPUTED:
        return None
    if any(t.dtype.category > compute.category for t in tensors):
        return None
    return Plan(family, op, args, compute, dtypes.float32 if halved else compute, result)


def _operands(op: Operator, args: tuple) -> list:
    return [a for a, is_operand in zip(args, operand_mask(op), strict=True) if is_operand]


class Plan:
    """See the module's docstring."""

    __slots__ = ("arrays", "numbers", "check", "family", "halves", "attributes", "ufunc", "result", "numpy", "places")

    def __init__(self, family, op: Operator, args: tuple, compute: dtype, working: dtype, result: dtype):
        declared = op.declared
        self.family, self.check, self.result, self.numpy = family, declared.check, result, result.numpy
        self.places = not declared.contiguous
        rounds = working is not compute
        in_c = rounds and (half_loop_of(op) is not None or half_kernel_of(op) is not None)
        self.halves = compute if in_c else None
        self.arrays: list[tuple[int, tuple[np.dtype, ...]]] = []
        self.numbers: list[tuple[int, dtype | None, bool, dtype | None]] = []
        for i, (argument, value, is_operand) in enumerate(
            zip(op.schema.arguments, args, operand_mask(op), strict=True)
        ):
            if isinstance(value, Tensor):
                wide = not is_operand or stays_wide(op, argument, value._array.ndim)
                through = [compute] if rounds and not wide else []
                self.arrays.append((i, _casts(value.dtype, [*through, working] if is_operand else [])))
            elif value is not None and (is_operand or rounds and argument.name in declared.fitting):
                fits = rounds and argument.name in declared.fitting
                narrow = compute if fits or rounds and not stays_wide(op, argument) else None
                self.numbers.append((i, narrow, fits, working if is_operand else None))
        self.attributes = [(i, a) for i, a in enumerate(op.schema.arguments) if not a.is_tensor]
        self.ufunc = self._ufunc(op, args, working) if op.kernel is not None else None

    def _ufunc(self, op: Operator, args: tuple, working: dtype):
        """The ufunc that is the whole operator where attributes are their defaults (such as add, alpha=1)."""
        if any(not a.has_default for _, a in self.attributes):
            return None
        values = [np.empty(0, working.numpy) if a.is_tensor else a.default for a in op.schema.arguments]
        return ufuncs.ufunc_of(op, values, self.numpy)

    def run(self, op: Operator, args: tuple):
        if self.check is not None:
            self.check(*args)
        if self.halves is not None and (out := self.family.by_halves(op, args, self.halves, self.result)) is not None:
            return out
        values, dense = list(args), True
        for i, casts in self.arrays:
            array = args[i]._array
            dense = dense and array.flags.c_contiguous
            for target in casts:
                array = _cast(array, target)
            values[i] = array
        for i, narrow, fits, working in self.numbers:
            value = values[i]
            if narrow is not None:
                if fits:
                    check_fits(value, narrow)
                value = rounded_number(value, narrow)
            values[i] = value if working is None else number_array(np, value, working)
        try:
            array = self._computed(op, values)
        except ValueError:
            return NotImplemented
        if array.dtype != self.numpy:
            array = _cast(array, self.numpy)
        elif array.base is not None:
            array = array.copy(order="K")
        else:
            for v in values:
                if v is array:
                    array = array.copy(order="K")
                    break
        if not dense and array.ndim > 1:
            array = ufuncs.laid_out(array, [args[i]._array for i, _ in self.arrays] if self.places else [])
        return make_tensor(array, self.result)

    def _computed(self, op: Operator, values: list):
        if self.ufunc is not None:
            for i, a in self.attributes:
                if values[i] != a.default:
                    break
            else:
                return np.asarray(self.ufunc(values, None))
        return np.asarray(call_kernel(op, np, values))


def _casts(source: dtype, through: list[dtype]) -> tuple[np.dtype, ...]:
    """What an array of a dtype becomes, one after the other."""
    casts = []
    for target in through:
        if target is not source:
            casts.append(target.numpy)
        source = target
    return tuple(casts)


def _cast(array, target: np.dtype):
    quick = halves.cast(array, target) if target in halves.HALVES or array.dtype in halves.HALVES else None
    return array.astype(target) if quick is None else quick
