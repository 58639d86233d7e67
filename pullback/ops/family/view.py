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
from ...core.modes import ambient
from ...core.node import UNTRACKED_VIEW
from ...core.objects import make_view
from ...core.size import Size
from ...core.storage import storage_of, window
from ...core.tensor import PLAIN, Tensor, stride_of, view_of
from ..system.calls import export_operator
from ..system.declaration import LINEAR, REQUIRED, Declaration
from ..system.operator import Operator, Spec
from .base import Family
from .batching import batch_view


class ViewDeclaration(Declaration):
    """What any view may declare."""

    kind = "a view"
    conditions = (*Declaration.conditions, ("added", "dims"), ("scalar_same", "dims"))
    contradictions = (
        *Declaration.contradictions,
        ("dims", "vmap", "the vmap rule follows from the dimensions among the arguments"),
    )

    dims: tuple[str, ...] | None = None
    """The arguments that are dimensions, from which the vmap rule follows."""
    added: int = 0
    """How many dimensions the view has more than its source."""
    scalar_same: bool = False
    """Whether a tensor without dimensions is its own view."""
    as_list: bool = False
    """Whether several views come as a list, not a tuple."""
    quick: tuple[str, str, str] | Callable | None = None
    """The fast path of plain calls: what `view_lines` takes first, or a function that gives the view or None."""
    lazy_bits: bool = True
    jvp: Any = LINEAR


class GeometryDeclaration(ViewDeclaration):
    """What a view that is another geometry on the same memory may declare."""

    contradictions = (
        *ViewDeclaration.contradictions,
        ("geometry", "kernel", "the geometry is the kernel of a view"),
        ("geometry", "meta", "the geometry is the shape rule of a view"),
    )

    geometry: Callable = REQUIRED
    """`geometry(shape, stride, offset, *args)`: (shape, stride, offset) of the view, or a list; raises if there is none."""


class ViewFamily(Family):
    """See the module's docstring."""

    declares = GeometryDeclaration
    is_view = True

    def execute(self, op: Operator, args: tuple):
        t = args[0]
        made = self.place(op, args)
        if isinstance(made, list):
            return tuple(alias(t, *m) for m in made) if not op.declared.as_list else [alias(t, *m) for m in made]
        return alias(t, *made)

    run_meta = execute

    def place(self, op: Operator, args: tuple):
        """The geometry of the view(s), or an error."""
        t = args[0]
        check = op.declared.check
        if check is not None:
            check(*args)
        return op.declared.geometry(t.array.shape, stride_of(t), t.offset, *args[1:])

    def meta(self, op: Operator, args: tuple):
        t = args[0]
        made = self.place(op, args)
        if isinstance(made, list):
            return tuple(Spec(m[0], t.dtype, m[1]) for m in made)
        return Spec(made[0], t.dtype, made[1])

    def fast_lines(self, op: Operator, values: list[str], has_out: bool) -> list[str]:
        """A view made by one NumPy call: `quick` is what `view_lines` takes first, or a function."""
        quick = op.declared.quick
        if callable(quick):  # a function that makes the view, or gives None where it takes more than it does
            return [f"    t = quick({', '.join(values)})", "    if t is not None:", "        return t"]
        return [] if quick is None else view_lines(*quick, values, values)

    def fast_names(self, op: Operator) -> dict:
        own = {"viewed": op, "quick": op.declared.quick}
        return super().fast_names(op) | VIEW_NAMES | own

    def vmap(self, op: Operator, args: tuple, dims: tuple, size: int):
        return batch_view(op, args, dims, size) if op.declared.dims is not None else None


SIZES = frozenset((tuple, Size))


def view_lines(when: str, expression: str, offset: str, values: list[str], viewed: list[str]) -> list[str]:
    """Lines of a public wrapper over `values` that make a view of a plain tensor.

    They do so if `when` holds and `expression` (of the view's array) does not raise. The view is recorded as the
    operator `viewed` called with the arguments `viewed`.
    """
    return [
        "    if input.__class__ in PLAIN and not input.keys:",
        "        mode = ambient.mode",
        "        a = input.array",
        f"        if mode < 2 and {when}:",
        "            try:",
        f"                made = {expression}",
        "            except (ValueError, TypeError, IndexError):",
        f"                return general(function, op, ({', '.join(values)},))",
        f"            t = make_view(input, made, {offset}, viewed, ({', '.join(viewed)},), mode)",
        "            if mode and (g := input.autograd) is not None and (",
        "                g is not UNTRACKED_VIEW or (i := input.view_info).version != input.version[0] or i.creation",
        "            ):",
        f"                viewed.record(t, {', '.join(viewed)})",
        "            return t",
    ]


def new_axis(a, dim: int):
    """An array with one more dimension of size 1, its stride as PyTorch sets it; refuses if it is not row-major."""
    shape = a.shape
    n = len(shape)
    d = dim if dim >= 0 else dim + n + 1
    if not 0 <= d <= n or not a.flags.c_contiguous:
        raise IndexError(dim)
    return a.reshape((*shape[:d], 1, *shape[d:]))  # of a row-major array, the strides are what they must be


def is_plain(t) -> bool:
    """Whether nothing listens to what is done with a tensor."""
    return t.__class__ in PLAIN and not t.keys and ambient.mode < 2


def may_have_history(t: Tensor) -> bool:
    """Whether recording may find anything: not where a view of an untracked tensor is as it was when it was made.

    A view made with recording off may be one of a tensor that is tracked.
    """
    return t.autograd is not UNTRACKED_VIEW or t.view_info.version != t.version[0] or t.view_info.creation is not None


def plain_view(t: Tensor, array, offset: int, op: Operator, args: tuple) -> Tensor:
    """A view of a plain tensor, already made as an array: what `view_lines` does, for hand-written functions."""
    mode = ambient.mode
    made = make_view(t, array, offset, op, args, mode)
    if mode and t.autograd is not None and may_have_history(t):
        op.record(made, *args)
    return made


VIEW_NAMES = {"SIZES": SIZES, "new_axis": new_axis, "make_view": make_view}  # what the lines of `view_lines` name


def alias(t: Tensor, shape, stride, offset) -> Tensor:
    """A tensor on the memory of `t` with another geometry."""
    shape, stride = tuple(shape), tuple(stride)
    if isinstance(t.array, Geometry):
        array = Geometry(shape, stride, t.dtype.numpy)
    else:
        array = window(storage_of(t), t.dtype, shape, stride, offset)
    return view_of(t, array, t.dtype, offset)


VIEW = ViewFamily()


def view(schema: str, **rules) -> Operator:
    """Declare a view operator."""
    return export_operator(Operator(schema, VIEW, **rules))
