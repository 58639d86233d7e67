"""Factories: tensors from sizes and numbers.

`shape(*args)` gives the `Spec` of the result (its dtype already decided); `kernel(xp, spec, *args)` gives the array. The device comes from
the `device` argument, else from a tensor argument, else from the ambient default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import device as devices
from ...core import dtype as dtypes
from ...core.arrays import library
from ...core.device import indexed
from ...core.dtype import computable
from ...core.errors import no_memory
from ...core.modes import ambient
from ...core.objects import make_tensor
from ...core.storage import check_addressable
from ...core.tensor import wrap, wrap_meta
from ..system.calls import export_operator
from ..system.declaration import NONDIFFERENTIABLE, REQUIRED, Declaration
from ..system.operator import Operator, Spec
from .base import Family


class FactoryDeclaration(Declaration):
    """What a factory may declare: it has no public name of its own, and no gradient."""

    kind = "a factory"

    shape: Callable = REQUIRED
    """`shape(*args)`: the `Spec` of the result, its dtype decided."""
    function: bool = False
    method: bool | None = False
    vjp: Any = NONDIFFERENTIABLE
    cost: str = "cheap"


class Factory(Family):
    """See the module's docstring."""

    declares = FactoryDeclaration
    direct = "family"
    takes_copies = False

    def device(self, op: Operator, args: tuple) -> devices.device:
        at = op.schema.index.get("device")
        if at is not None and args[at] is not None:
            return args[at]
        if op.tensor_positions and (tensors := op.tensors(args)):
            return tensors[0].device
        return ambient.default_device

    def meta(self, op: Operator, args: tuple) -> Spec:
        return op.declared.shape(*args)

    def execute(self, op: Operator, args: tuple):
        device = self.device(op, args)
        spec = self.meta(op, args)
        if device is devices.cpu and spec.dtype.numpy is not None:
            return self._on_host(op, spec, args)
        device = indexed(device)
        computable(spec.dtype, device)
        if device is devices.meta:
            return wrap_meta(spec.shape, spec.dtype, spec.stride)
        return wrap(op.kernel(library(device), spec, *args), spec.dtype, device)

    @staticmethod
    def _on_host(op: Operator, spec: Spec, args: tuple):
        try:
            if spec.dtype is dtypes.complex32:
                wide = Spec(spec.shape, dtypes.complex64, spec.stride)
                return wrap(op.kernel(np, wide, *args).astype(spec.dtype.numpy), spec.dtype)
            return make_tensor(op.kernel(np, spec, *args), spec.dtype)
        except MemoryError as error:
            raise no_memory(error) from None
        except ValueError:
            check_addressable(spec.shape, spec.stride, spec.dtype.itemsize)
            raise

    def run_meta(self, op: Operator, args: tuple):
        return self.execute(op, args)


FACTORY = Factory()


def factory(schema: str, **rules) -> Operator:
    """Declare a factory."""
    return export_operator(Operator(schema, FACTORY, **rules))
