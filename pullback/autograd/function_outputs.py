"""How the outputs of a custom function get their history.

`connect(ctx, raw, inputs, ...)` takes what `forward` returned and gives the outputs as the caller sees them. A new
tensor gets the function's node as its history; an input returned as it is becomes a view of itself, so that the input
keeps its own history; an input changed in place takes the node as its new history. Views of inputs are marked so that
changing them in place is refused: it would go past the user's backward. `save_tensors(ctx)` keeps what was asked for.
"""

from __future__ import annotations

import warnings

from ..core import modes
from ..core.modes import ambient
from ..core.node import SAVED_OUTPUT, WeakEdge, edge_of, own_autograd, save, save_output
from ..core.size import Size
from ..core.tensor import NESTED, Tensor
from ..ops.system.inplace import bump, check_writable
from .views import rebase_history

_VIEW = (
    "Output {} of {} is a view and is being modified inplace. This view was created inside a custom Function (or "
    "because an input was returned as-is) and the autograd logic to handle view+inplace would override the custom "
    "backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. You can "
    "fix this by cloning the output of the custom Function."
)
_NOT_INPUT = (
    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be "
    "passed to ctx.mark_dirty()."
)
_SAVED_INPUT = (
    "An input that has been returned as-is as output is being saved for backward. This is not supported if you "
    "override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup "
    "ctx inside the forward function itself."
)
_LEAF_VIEW = "a view of a leaf Variable that requires grad is being used in an in-place operation."
_VIEW_AND_MORE = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
    "than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is "
    "not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it "
    "into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other "
    "operations). You can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
)


def _ids(tensors: tuple | None, complaint: str) -> set[int]:
    """Identities of the tensors that the user listed."""
    for t in tensors or ():
        if t is not None and not isinstance(t, Tensor):
            raise RuntimeError(complaint)
    return {id(t) for t in tensors or () if t is not None}


def connect(ctx, raw: tuple, inputs: tuple[Tensor, ...], recording: bool, separate: bool) -> tuple:
    """The outputs of a call, with history; see the module's docstring."""
    if recording and len(raw) == 1 and _is_new(ctx, raw[0], inputs):
        return _connect_one(ctx, raw[0])
    dirty = _ids(ctx.dirty_tensors, "mark_dirty can only accept variables, but argument ")
    fixed = _ids(ctx.non_differentiable, "mark_non_differentiable only accepts variable arguments, but got ")
    for t in ctx.dirty_tensors:
        bump(t)
    ctx.dirty_ids, ctx.fixed_ids = dirty, fixed
    to_save = {id(t) for t in (*(ctx.to_save or ()), *(ctx.saved_for_forward or ()))} if separate else set()
    given = {id(t) for t in inputs}
    if ctx._is_pure_view and (len(inputs) != 1 or sum(isinstance(t, Tensor) for t in raw) != 1):
        raise RuntimeError(
            "Pure view custom Function can only have one input Tensor and one output Tensor. Open an issue if you need "
            "to support more."
        )
    differentiable = [_has_gradient(t) and id(t) not in fixed and recording for t in raw]
    ctx.outputs = tuple(
        (t._array.shape, t.dtype, t.device) if live else None for t, live in zip(raw, differentiable, strict=True)
    )
    ctx.zeros = tuple(_metadata(t) if isinstance(t, Tensor) else None for t in raw) if recording else ()
    outputs: list = []
    result: dict[int, Tensor] = {}  # an object returned twice stays one object
    for i, t in enumerate(raw):
        if not isinstance(t, Tensor):
            outputs.append(t)
            continue
        if id(t) not in result:
            kept = id(t) in given, id(t) in dirty
            result[id(t)] = _connected(ctx, t, i, *kept, differentiable[i], id(t) in to_save, len(raw))
            if ambient.mode & modes.GRAD:
                _mark_view(ctx, result[id(t)], i, kept == (True, True), sum(differentiable), inputs)
        elif differentiable[i] and id(t) in given:
            result[id(t)] = _connected(ctx, t, i, True, id(t) in dirty, True, False, 1)
        elif differentiable[i]:
            result[id(t)]._autograd.edge = (ctx, i)
        outputs.append(result[id(t)])
    if not dirty <= {id(t) for t in raw if isinstance(t, Tensor)}:
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function."
        )
    return tuple(outputs)


def _is_new(ctx, t, inputs: tuple[Tensor, ...]) -> bool:
    """Whether an output is the common case: a tensor of its own of which nothing was said."""
    return (
        isinstance(t, Tensor)
        and t._view_info is None
        and t.dtype.category >= 2
        and not ctx.dirty_tensors
        and not ctx.non_differentiable
        and not any(t is x for x in inputs)
    )


def _connect_one(ctx, t: Tensor) -> tuple:
    ctx.dirty_ids = ctx.fixed_ids = frozenset()
    ctx.outputs = ((t._array.shape, t.dtype, t.device),)
    ctx.zeros = (_metadata(t),)
    a = own_autograd(t)
    a.requires_grad, a.edge = True, (ctx, 0)
    return (t,)


def _has_gradient(t) -> bool:
    return isinstance(t, Tensor) and t.dtype.category >= 2


def _metadata(t: Tensor) -> tuple:
    """(shape, dtype, device); of a nested tensor, its form in the place of the shape, which alone makes no zeros."""
    return t._array.form if t._keys & NESTED else Size(t._array.shape), t.dtype, t.device


def _connected(ctx, t, i: int, is_input: bool, is_dirty: bool, live: bool, is_saved: bool, count: int) -> Tensor:
    """One output with its history."""
    if not live:
        return _without_history(t, is_input, is_dirty, is_saved)
    if is_dirty:
        if t._view_info is None and t.requires_grad and t.is_leaf:
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        if not is_input:
            if t._view_info is not None:
                raise RuntimeError(_NOT_INPUT)
            warnings.warn(_NOT_INPUT, stacklevel=5)
            return _set_edge(t, (ctx, i))
        if t._view_info is not None and count > 1:
            raise RuntimeError(_VIEW_AND_MORE)
        check_writable(t)
        rebase_history(t, (ctx, i))
        return t
    if is_input:
        if is_saved:
            raise RuntimeError(_SAVED_INPUT)
        t = _view_of_itself(t)
    return _set_edge(t, (ctx, i))


def _without_history(t: Tensor, is_input: bool, is_dirty: bool, is_saved: bool) -> Tensor:
    if not t.requires_grad:
        if is_input and not is_dirty:
            if is_saved:
                raise RuntimeError(_SAVED_INPUT)
            return _view_of_itself(t)
        return t
    if is_input:
        return t if is_dirty else t.detach()
    return t if t._view_info is not None else t.detach_()


def _view_of_itself(t: Tensor) -> Tensor:
    with modes.masked(modes.GRAD | modes.FORWARD):
        return t.view_as(t)


def _set_edge(t: Tensor, edge: tuple) -> Tensor:
    a = own_autograd(t)
    a.requires_grad, a.edge = True, edge
    if t._view_info is not None:
        t._view_info.version = t._counter[0]
    return t


def _mark_view(ctx, t: Tensor, i: int, is_rewritten: bool, live: int, inputs: tuple[Tensor, ...]) -> None:
    """Say on an output that is a view why it must not be changed in place; a pure view of the input may be."""
    if t._view_info is None or is_rewritten:
        return
    if ctx._is_pure_view:
        source = inputs[0] if inputs[0]._view_info is None else inputs[0]._view_info.base
        t._view_info.creation = None if t._view_info.base is source else _LEAF_VIEW
    else:
        t._view_info.creation = "multi_output" if live > 1 else _VIEW.format(i, ctx.name())


# ---- saving
def save_tensors(ctx) -> None:
    """Keep the tensors that `save_for_backward` named."""
    if ctx.to_save is None:
        return
    if not isinstance(ctx.to_save, tuple):
        kind = type(ctx.to_save).__name__
        raise TypeError(f"saved_tensors attribute 'to_save' is expected to be a tuple but is {kind}")
    for i, t in enumerate(ctx.to_save):
        if t is not None and not isinstance(t, Tensor):
            kind = type(t).__name__
            raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {kind}")
    ctx.saved = [_saved(ctx, t) for t in ctx.to_save]


def _saved(ctx, t: Tensor | None):
    if t is None:
        return None
    edge = edge_of(t)
    if edge is not None and edge[0] is ctx:
        return save_output(t)
    if id(t) in ctx.dirty_ids and t._view_info is not None and edge is not None:
        # Its history leads through the node itself, so it is known weakly.
        return (SAVED_OUTPUT, t.shallow(), t._counter[0], WeakEdge(edge))
    return save(t)
