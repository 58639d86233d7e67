"""In-place writes in forward mode: the tangent of what was written follows the write.

Comes in: an in-place operator and its arguments, some with a tangent at the innermost open level. Goes out: the written
tensor. Always holds: the tangent of a view is a view of its base's tangent, so a write to either is seen by both;
tangents of results that are no views have memory of their own (see `forward`), so a write to one changes no other.
"""

from __future__ import annotations

from functools import partial

from ..core import modes
from ..core.layers import above
from ..core.modes import ambient
from ..core.tensor import Tensor
from ..ops.system import dispatch as dispatching
from ..ops.system.inplace import run_inplace
from ..ops.system.operator import Operator
from .forward import argument_tangents, at_levels, below_level, jvp, primal_of, recording, tangent_of, with_tangent
from .views import recipe, replay


def forward_inplace(op: Operator, args: tuple, written=None):
    """Run an in-place operator under the innermost open level; `written` is called between the write and its recording.

    The tangent is computed from the values before the write and stored right after it, so that what is recorded of the
    result has it; each level does so one level further out.
    """
    level = ambient.forward_levels[-1]
    tangents = [argument_tangents(a, level) for a in args]
    with below_level():
        outer = ambient.forward_levels
        if op.inplace_of.is_view:
            return _reshaped(op, args, tangents[0], level)
        if any(t is not None for t in tangents):
            with recording(level):
                result = _new_tangent(op.inplace_of, tuple(primal_of(a, level) for a in args), tangents)
            written = partial(_store, args[0], tangents[0], result, level, outer, written)
        return forward_inplace(op, args, written) if outer else run_inplace(op, args, written)


def _store(target: Tensor, tangent: Tensor | None, result: Tensor | None, level: int, outer: tuple, then) -> None:
    """Put the new tangent where the old one is, with the levels open that are further out."""
    with at_levels(outer), recording(level):
        if tangent is not None:
            tangent.zero_() if result is None else tangent.copy_(result)
        elif result is not None:
            _first_tangent(target, result, level)
    if then is not None:
        then()


def _reshaped(op: Operator, args: tuple, tangent: Tensor | None, level: int):
    """`transpose_` and its kin: the tangent changes its shape with the tensor."""
    out = dispatching.dispatch(op, args)
    if tangent is not None:
        with recording(level):
            dispatching.dispatch(op, (tangent, *args[1:]))
    return out


def _apart(arg, memory: list):
    """An argument that no write to tensors of these versions changes."""
    if isinstance(arg, (tuple, list)):
        return type(arg)([_apart(a, memory) for a in arg])
    return arg.clone() if isinstance(arg, Tensor) and any(arg._counter is v for v in memory) else arg


def _new_tangent(op: Operator, primals: tuple, tangents: list) -> Tensor | None:
    """The tangent after the write, from values before it; None where it is zero."""
    if not op.differentiable or "nondeterministic_seeded" in op.tags or primals[0].dtype.category < 2:
        return None
    if ambient.mode & modes.GRAD:  # reverse mode may run over this: neither value nor tangent may be written after
        memory = [t._counter for t in (primals[0], tangents[0]) if t is not None]
        primals, tangents = ([_apart(a, memory) for a in group] for group in (primals, tangents))
    out = dispatching.dispatch(op, tuple(primals))
    result = jvp(op, tuple(primals), tangents, out)
    return result.clone() if result is not None and result._counter is primals[0]._counter else result


def _first_tangent(target: Tensor, result: Tensor, level: int) -> None:
    """A tensor without a tangent was written with one: if it is a view, its base has one from now on."""
    result = result.to(target.dtype)
    info = target._view_info
    if info is None or tangent_of(info.base, level) is not None:
        with_tangent(target, result.clone(), level)
        return
    source = info.base.new_zeros(()) + result.new_zeros(())  # inside vmap, batched if either is
    whole = source.new_zeros(info.base.shape)
    part = replay(recipe(info), whole)
    part.copy_(result)
    with_tangent(info.base, whole, level)
    with_tangent(target, part, level)


above.forward_inplace = forward_inplace
