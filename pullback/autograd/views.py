"""Views and in-place writes: how history follows memory.

A write to a view is a write to its base: the base's history becomes a `CopySlices` node that sends gradients of the
written part through the write and the rest straight on, and the view's own history is derived from the base's again.
A view is out of date when its base was written after its history was made; `refresh` makes it again by replaying the
calls that made the view.
"""

from __future__ import annotations

from ..core import modes
from ..core import node as nodes
from ..core.layers import above
from ..core.modes import ambient
from ..core.node import Node, View, as_leaf, edge_of, next_sequence, own_autograd, requires_grad
from ..core.size import Size
from ..core.tensor import FAKE, META, NESTED, Tensor, stride_of
from ..ops.layout.nested.operators import own_memory
from ..ops.shape.views import as_strided
from ..ops.system.dispatch import dispatch

_AMBIGUOUS = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either "
    "both inside the {} block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)
_REASONS = {
    "multi_output": "This view is the output of a function that returns multiple views. Such functions do not allow the output views to be modified "
    "inplace. You should replace the inplace operation by an out-of-place one.",
    "no_grad": _AMBIGUOUS.format("no_grad"),
    "inference": _AMBIGUOUS.format("inference_mode"),
    "function": "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle view+inplace "
    "would override the custom backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix "
    "this by cloning the output of the custom Function.",
}


def recipe(view: View) -> tuple:
    """The calls that made a view, from its base on: (operator, arguments after the source, which of several results)."""
    args, index = view.args, None
    if len(args) == 2 and isinstance(args[0], int) and isinstance(args[1], tuple):
        index, args = args
    before = recipe(view.parent) if view.parent is not None else ()
    return (*before, (view.op, args[1:], index))


def replay(calls: tuple, base: Tensor) -> Tensor:
    """The same view of another base."""
    for op, args, index in calls:
        base = dispatch(op, (base, *args))
        base = base if index is None else base[index]
    return base


def view_func(self: Tensor, new_base: Tensor) -> Tensor | None:
    """The same view of another base; None of a tensor that is no view, and of a base that lies otherwise."""
    base = self._base
    if base is None or new_base.dtype is not base.dtype or new_base.device != base.device:
        return None
    if new_base.shape != base.shape or stride_of(new_base) != stride_of(base):
        return None
    return replay(recipe(self._view_info), new_base)


class original_view_tracking:
    """How views are made again after a write to their base: with `True` by replaying the calls that made them, with `False`
    (PyTorch's default) by one `as_strided` call where the memory allows it. Takes effect at once; as a context, until it ends."""

    def __init__(self, mode: bool):
        self.before = ambient.view_replay
        ambient.view_replay = self.mode = bool(mode)

    def __enter__(self) -> None:
        ambient.view_replay = self.mode

    def __exit__(self, *exc) -> None:
        ambient.view_replay = self.before


def is_view_replay_enabled() -> bool:
    """Whether views are made again by replaying the calls that made them."""
    return ambient.view_replay


def remake(target: Tensor) -> Tensor:
    """A view's like, made from its base as the base is now."""
    info = target._view_info
    keys = target._keys | info.base._keys
    replayed = bool(keys) or ambient.view_replay
    if "reshaped" in info.base.__dict__ and not keys & ~(META | FAKE):  # the calls were made of another shape
        replayed = False
    if not replayed and target.dtype is info.base.dtype and target._memory is info.base._memory:
        return info.base.as_strided(target.shape, target.stride(), target._offset)
    return replay(recipe(info), info.base)


class CopySlices(Node):
    """A write to a view, as history of the base."""

    __slots__ = ("calls", "write", "base_geometry", "base_form", "is_conjugate")

    def __init__(self, base: Tensor, calls: tuple, write: Node):
        self.calls, self.write = calls, write  # not the view itself: it leads to the base, and so to this node
        self.base_geometry = base._array.shape, stride_of(base)
        self.base_form = (*base._array.form[:2], stride_of(base._array.values)) if base._keys & NESTED else None
        self.is_conjugate = (
            base.is_conj()
        )  # whether views of the base are made of a conjugate: some refuse it, some need it
        self.edges = (edge_of(base), *write.edges[1:])
        self.outputs = ((base._array.shape, base.dtype, base.device),)
        self.saved = []
        self.sequence = next_sequence()

    def run(self, grads: list) -> tuple:
        return self.run_for(grads, self.edges)

    def run_for(self, grads: list, edges: tuple) -> tuple:
        if self.write is None:
            nodes.raise_freed()
        g = grads[0]
        if g is None:
            return (None,) * len(edges)
        whole = self._whole(g, g)
        onto = self.write.edges[0] if edges[0] is not None else None
        through = self.write.run_for([replay(self.calls, whole).clone()], (onto, *edges[1:]))
        if edges[0] is None:
            return (None, *through[1:])
        if through[0] is not None and ambient.mode & modes.TRANSFORM:
            whole = self._whole(g, through[0])
        part = replay(self.calls, whole)
        part.copy_(through[0]) if through[0] is not None else part.zero_()
        return (whole, *through[1:])

    def _whole(self, g: Tensor, other: Tensor) -> Tensor:
        """The gradient of the base in memory of its own, laid out as the base; inside vmap, batched if either tensor is."""
        if self.base_form is not None:
            return own_memory(g, *self.base_form)
        shape, stride = self.base_geometry
        if not ambient.mode & modes.TRANSFORM:
            room = g.new_empty_strided(shape, stride)
            return (room.conj() if self.is_conjugate else room).copy_(g)
        source = g.new_zeros(()) + other.new_zeros(())
        order = sorted(range(len(shape)), key=lambda d: -stride[d])
        room = source.new_zeros([shape[d] for d in order])
        return room.permute([order.index(d) for d in range(len(shape))]).copy_(g)

    def saved_state(self, differentiable: bool = False) -> dict:
        if self.write is None:
            nodes.raise_freed()
        shape, stride = self.base_geometry
        own = {"calls": self.calls, "write": self.write, "base_form": self.base_form, "is_conjugate": self.is_conjugate}
        return {**own, "base_geometry": (Size(shape), Size(stride))}

    def release(self) -> None:
        if self.write is not None:
            self.write.release()
            self.write = None


def rebase_history(target: Tensor, edge: tuple) -> None:
    """Make `edge` the history of a tensor that was just written."""
    info = target._view_info
    if info is None:
        set_history(target, edge)
        return
    base = info.base
    calls = recipe(info)
    if (
        "reshaped" in base.__dict__ and target.dtype is base.dtype and target._memory is base._memory
    ):  # since they were made
        calls = ((as_strided, (target.shape, target.stride(), target._offset), None),)
    node = CopySlices(base, tuple(_from_start(c, base._offset) for c in calls), edge[0])
    set_history(base, (node, 0))
    refresh(target)


def _from_start(call: tuple, offset: int) -> tuple:
    """A call that makes a view of a base, as one of a tensor like the base that begins its memory."""
    op, args, index = call
    if op is as_strided and len(args) > 2 and args[2] is not None:
        args = (*args[:2], args[2] - offset)
    return op, args, index


def set_history(target: Tensor, edge: tuple) -> None:
    """Give a written tensor its new history; a gradient that is to be retained is that of the new value."""
    if ambient.reverse_levels:
        ambient.reverse_levels[-1].wrote(target)
    a = own_autograd(target)
    retained = a.edge is not None and a.retains_grad and (a.edge[0].retain_grad_hooks or {}).pop(a.edge[1], None)
    a.requires_grad, a.edge = True, edge
    if retained:
        node, number = edge
        node.retain_grad_hooks = {**(node.retain_grad_hooks or {}), number: retained}
        node.hooked = True


def refuse(target: Tensor, what: str = "is being") -> None:
    """Raise for views that may not be written, or whose history cannot be made again after a write to their base."""
    info, a = target._view_info, target._autograd
    if info.creation is None:
        return
    if info.creation not in _REASONS:  # a custom Function says itself why
        raise RuntimeError(info.creation.replace("is being modified", f"{what} modified", 1))
    edge = a.edge if a is not None else None
    made_by = f"Output {edge[1]} of {edge[0].name()} is a view" if edge is not None else None
    if info.creation == "inference":
        head = f"{made_by + ' of a view which' if made_by else 'A view'} was created in inference mode and {what} modified inplace in normal mode."
    elif info.creation == "no_grad" or made_by is None:
        head = f"{made_by + ' of a view which' if made_by else 'A view'} was created in no_grad mode and {what} modified inplace with grad mode enabled."
    else:
        head = f"{made_by} and {what} modified inplace."
    raise RuntimeError(f"{head} {_REASONS[info.creation]}")


def refresh(target: Tensor) -> None:
    """Bring a view's history up to date with its base's."""
    info = target._view_info
    if not requires_grad(info.base):
        info.version = target._counter[0]
        if info.creation is None and target._autograd.edge is not None:  # the base was detached and written
            set_history(target, _dead_end(target))
        return
    refuse(target, "its base or another view of its base has been")
    _refuse_reshaped(info, target)
    info.version = target._counter[0]
    with modes.masked(modes.ANOMALY, modes.GRAD):
        result = remake(target)
    if result._autograd is not None and result._autograd.requires_grad:
        set_history(target, result._autograd.edge)


def _refuse_reshaped(info: View, target: Tensor) -> None:
    """A base that stands for a view in a trace: views of another dtype go on being views of what it is a view of."""
    facts = info.base.__dict__
    if "view_edge" in facts and info.version < facts.get("reshaped", 0) and target.dtype is not info.base.dtype:
        raise NotImplementedError(
            "changing the shape of an input in place, where it is a view that requires grad and has a view of another "
            "dtype, is not implemented in traces"
        )


def _dead_end(target: Tensor) -> tuple:
    """History of a view whose base has none: that of the view alone, which leads nowhere."""
    info = target._view_info
    with modes.masked(modes.ANOMALY, modes.GRAD):
        base = as_leaf(info.base.detach())
        if (target._keys | base._keys) & NESTED:
            result = replay(recipe(info), base)
        else:
            result = base.as_strided(target.shape, target.stride(), target._offset)
    result._autograd.edge[0].edges = (None,)
    return result._autograd.edge


above.rebase_history = rebase_history
above.check_view = refuse
above.refresh_view = refresh
