"""Tensors that are zero for ever: `torch._efficientzerotensor(2, 3)`.

In: sizes. Out: a tensor of zeros with the key `ZERO`, as its views have; memory of zeros costs nothing until somebody writes, and no
call does: writes raise. What is computed of one is an ordinary tensor.
"""

from __future__ import annotations

from ...core.tensor import ZERO
from ..family.factory import Factory
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import Operator
from .factories import _OPTIONS, _sized, sizes_from


class ZeroFactory(Factory):
    """A factory whose results nobody writes."""

    def execute(self, op: Operator, args: tuple):
        result = super().execute(op, args)
        result._keys |= ZERO
        return result


zero_tensor_op = Operator(
    f"_efficientzerotensor(SymInt[] size, {_OPTIONS}) -> Tensor",
    ZeroFactory(),
    shape=_sized,
    kernel=lambda xp, spec, *_: xp.zeros(spec.shape, spec.dtype.numpy),
)


@front("torch._efficientzerotensor")
def efficient_zero_tensor(*size, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    args = zero_tensor_op.convert((sizes_from("_efficientzerotensor", size), dtype, layout, device, pin_memory))
    result = dispatch(zero_tensor_op, args)
    return result.requires_grad_() if requires_grad else result
