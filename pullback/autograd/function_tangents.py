"""Forward mode through a custom function: its `jvp` at every open level.

The tangents of the inputs go to the user's `jvp`, at each level with the levels inside it closed; what comes back is
put on the outputs, after checks that it follows what `forward` did: in place where that was in place, a view where that
was a view.
"""

from __future__ import annotations

from ..core.modes import ambient
from ..core.tensor import Tensor
from .forward import at_levels, recording, tangent_of, with_tangent


def push_tangents(ctx, args: tuple, raw: tuple, outputs: tuple) -> None:
    """Give outputs their tangents at every open level at which an input has one."""
    levels = ambient.forward_levels
    for i, level in enumerate(levels):
        tangents = [tangent_of(a, level) for a in args]
        if any(t is not None for t in tangents):
            _push_level(ctx, args, raw, outputs, tangents, level, levels[:i])
    ctx.__dict__.pop("saved_for_forward", None)


def _push_level(ctx, args: tuple, raw: tuple, outputs: tuple, tangents: list, level: int, outer: tuple) -> None:
    given = [_filled(a, t, ctx) for a, t in zip(args, tangents, strict=True)]
    versions = [None if t is None else t._counter[0] for t in tangents]
    saved, ctx.saved_for_forward = ctx.saved_for_forward, ctx.saved_for_forward or ()
    try:
        with at_levels(outer), recording(level):
            result = ctx.apply_jvp(*given)
    finally:
        ctx.saved_for_forward = saved
    result = result if isinstance(result, tuple) else (result,)
    if len(result) != len(outputs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got "
            f"{len(result)})"
        )
    for i, (was, out, t) in enumerate(zip(raw, outputs, result, strict=True)):
        if not _takes_tangent(ctx, was):
            if t is not None:
                raise RuntimeError(
                    f"A custom Function's jvp is returning a Tensor at position {i} but the corresponding output is "
                    "not a differentiable Tensor. You should return None at that position instead."
                )
        elif id(was) in ctx.dirty_ids:
            _check_in_place(was, t, args, tangents, versions)
            if t is not None:
                with_tangent(out, t, level)
        else:
            _check_view(out, t, args, tangents)
            if t is not None:
                with_tangent(out, t, level)


def _filled(a, tangent: Tensor | None, ctx) -> Tensor | None:
    """The tangent as `jvp` sees it: zeros for a tensor without one, None for anything that is no tensor."""
    if tangent is not None or not isinstance(a, Tensor) or a.dtype.category < 2 or not ctx.materialize_grads:
        return tangent
    return a.new_zeros(a.shape)


def _takes_tangent(ctx, was) -> bool:
    return isinstance(was, Tensor) and was.dtype.category >= 2 and id(was) not in ctx.fixed_ids


def _check_in_place(was: Tensor, t: Tensor | None, args: tuple, tangents: list, versions: list) -> None:
    place = next((i for i, a in enumerate(args) if a is was), None)
    if place is None:
        raise RuntimeError(
            "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need to "
            "pass it to mark_dirty()."
        )
    if tangents[place] is None:
        return
    if t is None or t._counter[0] == versions[place]:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
            "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace."
        )
    if t is not tangents[place]:
        raise RuntimeError(
            "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying "
            "an input inplace, then the jvp function must modify the gradient inplace and return it as-is."
        )


def _base(t: Tensor) -> Tensor:
    return t if t._view_info is None else t._view_info.base


def _check_view(out: Tensor, t: Tensor | None, args: tuple, tangents: list) -> None:
    """A view of an input must have a view of that input's tangent as its tangent."""
    if out._view_info is None:
        return
    base = out._view_info.base
    tangent = next((g for a, g in zip(args, tangents, strict=True) if g is not None and _base(a) is base), None)
    if tangent is None:
        return
    if t is None or t._view_info is None:
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
        )
    if t._view_info.base is _base(tangent):
        return
    kind = "given" if tangent._view_info is None else "same base as the given"
    raise RuntimeError(
        f"A custom Function is returning a view but the jvp is not returning a view of the {kind} grad input."
    )
