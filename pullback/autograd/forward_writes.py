"""In-place writes in forward mode: the tangent of what was written follows the write.

Comes in: an in-place operator and its arguments, some with a tangent at the innermost open level. Goes out: the written
tensor. Always holds: the tangent of a view is a view of its base's tangent, so a write to either is seen by both;
tangents of results that are no views have memory of their own (see `forward`), so a write to one changes no other.
"""

from __future__ import annotations

from ..core import modes
from ..core.modes import ambient
from ..core.tensor import Tensor
from ..ops import dispatch as dispatching
from ..ops.operator import Operator
from .forward import argument_tangents, below_level, jvp, primal_of, tangent_of, with_tangent
from .views import recipe, replay


def forward_inplace(op: Operator, args: tuple):
    """Run an in-place operator under the innermost open level."""
    level = ambient.forward_levels[-1]
    target, functional = args[0], op.inplace_of
    tangents = [argument_tangents(a, level) for a in args]
    if functional.is_view or all(t is None for t in tangents):
        with below_level():
            return _reshaped(op, args, tangents[0]) if functional.is_view else dispatching.autograd_layer(op, args)
    with below_level():
        made = _new_tangent(functional, tuple(primal_of(a, level) for a in args), tangents)
        dispatching.autograd_layer(op, args)
        if tangents[0] is not None:
            tangents[0].zero_() if made is None else tangents[0].copy_(made)
        elif made is not None:
            _first_tangent(target, made, level)
    return target


def _reshaped(op: Operator, args: tuple, tangent: Tensor | None):
    """`transpose_` and its kin: the tangent changes its shape with the tensor."""
    out = dispatching.autograd_layer(op, args)
    if tangent is not None:
        dispatching.dispatch(op, (tangent, *args[1:]))
    return out


def _new_tangent(op: Operator, primals: tuple, tangents: list) -> Tensor | None:
    """The tangent after the write, from values before it; None where it is zero."""
    if not op.differentiable or "nondeterministic_seeded" in op.tags or primals[0].dtype.category < 2:
        return None
    with modes.masked(modes.GRAD):
        out = dispatching.dispatch(op, primals)
    made = jvp(op, primals, tangents, out)
    return made.clone() if made is not None and made.version is primals[0].version else made


def _first_tangent(target: Tensor, made: Tensor, level: int) -> None:
    """A tensor without a tangent was written with one: if it is a view, its base has one from now on."""
    made = made.to(target.dtype)
    info = target.view_info
    if info is None or tangent_of(info.base, level) is not None:
        with_tangent(target, made.clone(), level)
        return
    whole = info.base.new_zeros(info.base.shape)
    part = replay(recipe(info), whole)
    part.copy_(made)
    with_tangent(info.base, whole, level)
    with_tangent(target, part, level)


dispatching.forward_inplace = forward_inplace
