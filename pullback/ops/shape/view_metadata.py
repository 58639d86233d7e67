"""Shapes changed in place: transpose_, squeeze_, unsqueeze_, t_, as_strided_.

In: a tensor and a view's arguments. Out: the same tensor, now with the view's geometry on its own storage. No element
is written, but the version goes up, as in PyTorch, since what was saved for backward has another shape now. History:
the tensor becomes the view of what it was, also where it was a view of something else.
"""

from __future__ import annotations

from ...core import modes
from ...core.modes import ambient
from ...core.node import Autograd, View, edge_of, requires_grad
from ...core.storage import storage_of
from ...core.tensor import DISPATCH_SUBCLASS, FAKE, Tensor
from ..family.base import Family
from ..system.calls import export_operator
from ..system.execute import execute
from ..system.inplace import bump
from ..system.operator import Operator
from ..system.overloads import publish, resolve
from ..system.overrides import call_dispatch
from .views import as_strided, squeeze_all, squeeze_dim, squeeze_dims, t, transpose, unsqueeze


class Metadata(Family):
    """In-place forms of views."""

    def execute(self, op: Operator, args: tuple) -> Tensor:
        return reshape_in_place(op, args)

    run_meta = execute


METADATA = Metadata()


def reshape_in_place(inplace: Operator, args: tuple) -> Tensor:
    """Give `args[0]` the geometry that the view operator of which `inplace` is the in-place form would give a view of it."""
    target, op = args[0], inplace.inplace_of
    recording = ambient.mode & modes.GRAD and not ambient.mode & modes.BELOW_AUTOGRAD
    before = target.shallow(Autograd(True, edge_of(target)) if requires_grad(target) else None)
    info, recorded = target._view_info, bool(recording) and requires_grad(target)
    unseen = info is None and not recording and not ambient.mode & modes.BELOW_AUTOGRAD and not target.is_leaf
    viewed = target.__dict__.get("view_edge") if unseen else None
    told = ambient.mode & modes.DISPATCH or target._keys & (DISPATCH_SUBCLASS | FAKE) == DISPATCH_SUBCLASS
    if not told or call_dispatch(inplace, args) is NotImplemented:
        result = execute(op, args, target._keys)
        target._memory = storage_of(target)
        target._array, target._offset = result._array, result._offset
        bump(target)
    else:
        result = target.shallow()
    if info is None:
        # views of it that were made before this version cannot be made again by the same calls
        target.__dict__["reshaped"] = target._counter[0]
    else:
        version = (
            target._counter[0] if recorded else info.version - 1
        )  # what was not recorded is made of the base again
        target._view_info = View(info.base, info, op, args, version, info.creation)
    if recorded or viewed is not None:
        op.record(result, before, *args[1:])
        target._autograd.edge = result._autograd.edge
        if viewed is not None and edge_of(before)[0] is viewed[0]:  # nothing was recorded so far, nor is this
            target.__dict__["view_edge"] = result._autograd.edge
    return target


def _inplace_view(op: Operator, text: str, **options) -> Operator:
    result = Operator(
        text,
        METADATA,
        vjp=op.vjp,
        lazy_bits=True,
        names_memory=op.declared.names_memory,
        **{"function": False, **options},
    )
    result.inplace_of = op
    return export_operator(result)


transpose_ = _inplace_view(transpose, "transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)")
swapaxes_ = _inplace_view(transpose, "swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)")
swapdims_ = _inplace_view(transpose, "swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)")
t_ = _inplace_view(t, "t_(Tensor(a!) self) -> Tensor(a!)")
unsqueeze_ = _inplace_view(unsqueeze, "unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)")
as_strided_ = _inplace_view(
    as_strided,
    "as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a!)",
    function=True,
)
_squeezes = (
    _inplace_view(squeeze_all, "squeeze_(Tensor(a!) self) -> Tensor(a!)", method=False),
    _inplace_view(squeeze_dim, "squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)", method=False),
    _inplace_view(squeeze_dims, "squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)", method=False),
)


def squeeze_(*args, **kwargs):
    """Drop dimensions of size 1 in place: all, one, or some."""
    return resolve(squeeze_, _squeezes, args, kwargs)


publish(squeeze_, "squeeze_", homes=("Tensor",))
