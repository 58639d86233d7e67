"""Views: another shape on the same memory.

    transpose = view("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", geometry=swap, vjp=...)

`geometry(shape, stride, offset, *args)` is pure arithmetic (see `view_geometry`) and gives (shape, stride, offset), or
a list of them for operators that return several views. It is the kernel and the shape rule at once; it raises for what
cannot be viewed. `check(*args)` refuses what takes more than the geometry to see. `dims=("dim",)` names the arguments
that are dimensions, from which the vmap rule follows. Results share storage and version with their source, and carry
its conjugate and negative bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.geometry import Geometry
from ...core.modes import GRAD, ambient
from ...core.objects import make_view
from ...core.storage import storage_of, window
from ...core.tensor import Tensor, stride_of, view_of
from ..system.calls import export_operator
from ..system.declaration import LINEAR, NONDIFFERENTIABLE, REQUIRED, Declaration
from ..system.operator import Operator, Spec
from .base import Family
from .batching import batch_view


class ViewDeclaration(Declaration):
    """What any view may declare."""

    kind = "a view"
    contradictions = {"dims": {"vmap": "the vmap rule follows from the dimensions among the arguments"}}
    conditions = {"added": "dims", "scalar_same": "dims"}

    dims: tuple[str, ...] | None = None
    """The arguments that are dimensions, from which the vmap rule follows."""
    added: int = 0
    """How many dimensions the view has more than its source."""
    scalar_same: bool = False
    """Whether a tensor without dimensions is its own view."""
    lazy_bits: bool = True
    jvp: Any = LINEAR
    cost: str = "view"


class GeometryDeclaration(ViewDeclaration):
    """What a view that is another geometry on the same memory may declare."""

    contradictions = {
        "kernel": {"geometry": "the geometry is the kernel of a view"},
        "meta": {"geometry": "the geometry is the shape rule of a view"},
    }

    geometry: Callable = REQUIRED
    """`geometry(shape, stride, offset, *args)`: (shape, stride, offset) of the view, or a list; raises if there is none."""


class ViewFamily(Family):
    """See the module's docstring."""

    declares = GeometryDeclaration
    direct = "family"
    is_view = True

    def execute(self, op: Operator, args: tuple):
        t = args[0]
        result = self.place(op, args)
        if isinstance(result, list):
            return tuple(alias(t, *m) for m in result)
        return alias(t, *result)

    run_meta = execute

    def execute_plain(self, op: Operator, args: tuple):
        if op.vjp is NONDIFFERENTIABLE:
            return self.execute(op, args)
        t = args[0]
        result = self.place(op, args)
        if isinstance(result, list):
            return tuple([alias(t, *m) for m in result])
        shape, stride, offset = result
        array = window(storage_of(t), t.dtype, tuple(shape), tuple(stride), offset)
        return make_view(t, array, offset, op, args, ambient.mode & GRAD)

    def place(self, op: Operator, args: tuple):
        """The geometry of the view(s), or an error."""
        t = args[0]
        check = op.declared.check
        if check is not None:
            check(*args)
        return op.declared.geometry(t._array.shape, stride_of(t), t._offset, *args[1:])

    def meta(self, op: Operator, args: tuple):
        t = args[0]
        result = self.place(op, args)
        if isinstance(result, list):
            return tuple(Spec(m[0], t.dtype, m[1]) for m in result)
        return Spec(result[0], t.dtype, result[1])

    def vmap(self, op: Operator, args: tuple, dims: tuple, size: int):
        return batch_view(op, args, dims, size) if op.declared.dims is not None else None


def alias(t: Tensor, shape, stride, offset) -> Tensor:
    """A tensor on the memory of `t` with another geometry."""
    shape, stride = tuple(shape), tuple(stride)
    if isinstance(t._array, Geometry):
        array = Geometry(shape, stride, t.dtype.numpy)
    else:
        array = window(storage_of(t), t.dtype, shape, stride, offset)
    return view_of(t, array, t.dtype, offset)


VIEW = ViewFamily()


def view(schema: str, **rules) -> Operator:
    """Declare a view operator."""
    return export_operator(Operator(schema, VIEW, **rules))
