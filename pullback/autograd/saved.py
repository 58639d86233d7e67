"""Saved-tensor hooks: what a graph keeps for backward passes through the user's hands.

While `saved_tensors_hooks(pack, unpack)` is open, each tensor that is saved is handed to `pack` and whatever that
returns is kept; when backward needs the tensor, `unpack` gives it back, and it takes its place in the graph again. The
innermost pair of hooks is the one that counts. `SavedTensor` is how one saved tensor of a node is seen from outside.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import contextmanager

from ..core import modes
from ..core.layers import above
from ..core.modes import ambient
from ..core.node import SAVED, SAVED_OUTPUT, Autograd, Node, WeakEdge, accumulator_of, edge_of
from ..core.node import SavedTensor as Packed
from ..core.tensor import Tensor, new_object
from .hook_calls import users_code

_FREED = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are "
    "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved variables after calling backward."
)


# ---- packing and unpacking
def pack(tensor: Tensor, is_output: bool, hooks: tuple | None = None) -> Packed:
    """Hand a tensor to the pack hook and remember its place in the graph."""
    pack_hook, unpack_hook = hooks if hooks is not None else ambient.saved_hooks[-1]
    entry = new_object(Packed)
    entry.unpack_hook = unpack_hook
    a = tensor._autograd
    entry.tangents = a.tangents if a is not None else None
    edge = edge_of(tensor)
    entry.accumulator = None
    entry.edge, entry.is_output = edge, is_output and edge is not None  # gradients never flow from some results
    if entry.is_output:
        entry.edge = edge[1]  # the node itself is known when it is unpacked
    elif edge is not None and a.edge is None:
        entry.edge, entry.accumulator = None, weakref.ref(accumulator_of(tensor))
    version = tensor._counter[0]
    with modes.masked(modes.GRAD):
        entry.packed = pack_hook(tensor)
    if tensor._counter[0] != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not "
            "be modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if "
            "you need to perform in-place operations on the input to a pack hook."
        )
    return entry


def unpack(entry: Packed, node: Node) -> Tensor:
    """Ask the unpack hook for a tensor and give it its place in the graph."""
    stack = list(ambient.saved_hooks)
    try:
        with users_code():
            data = entry.unpack_hook(entry.packed)
    finally:  # hooks that an unpack hook opens or closes are not the caller's
        _set_stack(stack)
    if not isinstance(data, Tensor):
        raise TypeError(
            f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(data).__name__}"
        )
    edge = entry.edge
    if entry.is_output:
        edge = edge.get() or (node, 0) if isinstance(edge, WeakEdge) else (node, edge)
    if edge is None and entry.accumulator is None and not data.requires_grad and not entry.tangents:
        return data
    a = Autograd(edge is not None or entry.accumulator is not None, edge)
    if entry.accumulator is not None:
        a.accumulator = entry.accumulator
    if entry.tangents:
        a.tangents = entry.tangents
    return data.shallow(a)


above.pack_saved = pack
above.unpack_saved = unpack


# ---- default hooks
def _set_stack(stack: list) -> None:
    ambient.saved_hooks = stack
    ambient.switch(modes.SAVED_HOOKS, stack)


class saved_tensors_hooks:
    """Pack what is saved in a block with one function, and unpack it with another."""

    def __init__(self, pack_hook: Callable, unpack_hook: Callable) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if ambient.saved_hooks_disabled is not None:
            raise RuntimeError(ambient.saved_hooks_disabled)
        _set_stack([*ambient.saved_hooks, (self.pack_hook, self.unpack_hook)])

    def __exit__(self, *exc: object) -> None:
        _set_stack(ambient.saved_hooks[:-1])


class unhooked:
    """A block in which no hook packs what is saved: a graph that is walked before its end."""

    def __enter__(self) -> None:
        self.before = ambient.saved_hooks
        _set_stack([])

    def __exit__(self, *exc: object) -> None:
        _set_stack(self.before)


class save_on_cpu(saved_tensors_hooks):
    """Keep what is saved in a block in the memory of the CPU."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def to_cpu(tensor: Tensor):
            kept = tensor.cpu()
            return tensor.device, kept.pin_memory() if pin_memory and tensor.is_cuda else kept

        def back(packed) -> Tensor:
            device, kept = packed
            return kept.to(device, non_blocking=pin_memory)

        super().__init__(to_cpu, back)


@contextmanager
def disable_saved_tensors_hooks(error_message: str):
    """In this block, opening saved-tensor hooks raises `error_message`."""
    before = ambient.saved_hooks_disabled
    if ambient.saved_hooks:
        raise RuntimeError(error_message)
    ambient.saved_hooks_disabled = error_message
    try:
        yield
    finally:
        ambient.saved_hooks_disabled = before


_mutation_allowed = False


class _Copies:
    """What is kept by a block in which saved tensors may be changed."""

    open = True

    def clear(self) -> None:
        """Nothing is shared between the copies and the tensors, so nothing has to be forgotten."""


@contextmanager
def allow_mutation_on_saved_tensors():
    """In this block, tensors that are saved for backward may be changed in place: backward sees them as they were."""
    global _mutation_allowed
    if _mutation_allowed:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    copies = _Copies()

    def unpack_copy(kept: Tensor) -> Tensor:
        if not copies.open:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        return kept

    _mutation_allowed = True
    try:
        with saved_tensors_hooks(lambda tensor: tensor.detach().clone(), unpack_copy):
            yield copies
    finally:
        copies.open, _mutation_allowed = False, False


# ---- one saved tensor, seen from outside
class SavedTensor:
    """A tensor that a node keeps: `grad_fn._raw_saved_self`. It can be given hooks of its own."""

    __slots__ = ("_node", "_path")

    def __init__(self, *args) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden")

    def _place(self) -> tuple[list, int]:
        """The list that holds the entry, and where."""
        if self._node.saved is None:
            raise RuntimeError(_FREED)
        first, *rest = self._path
        entries = self._node.saved
        if rest:
            if isinstance(entries[first], tuple):
                entries[first] = list(entries[first])
            entries, first = entries[first], rest[0]
        return entries, first

    @property
    def data(self):
        """What is kept: the packed object, or the tensor."""
        entries, at = self._place()
        entry = entries[at]
        return entry.packed if isinstance(entry, Packed) else entry[1] if _is_saved(entry) else entry

    @property
    def unpack_hook(self) -> Callable | None:
        entries, at = self._place()
        return entries[at].unpack_hook if isinstance(entries[at], Packed) else None

    def register_hooks(self, *hooks: Callable) -> None:
        """Pack this tensor now with one function; backward will unpack it with the other."""
        if len(hooks) != 2 or not all(map(callable, hooks)):
            raise TypeError(
                "register_hooks(): incompatible function arguments. The following argument types are supported:\n"
                "    1. (self: SavedTensor, pack_hook: Callable, unpack_hook: Callable) -> None"
            )
        entries, at = self._place()
        entry = entries[at]
        if isinstance(entry, Packed):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
                "hooks is allowed at a time."
            )
        if not _is_saved(entry):
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        entries[at] = _packed_later(entry, hooks)


def _is_saved(entry) -> bool:
    return isinstance(entry, tuple) and bool(entry) and entry[0] in (SAVED, SAVED_OUTPUT)


def _packed_later(entry: tuple, hooks: tuple) -> Packed:
    """An entry that was saved without hooks, packed: the hook sees it without history."""
    mark, tensor, _, place = entry
    seen = tensor.detach()
    result = pack(seen, mark is SAVED_OUTPUT, hooks)
    if mark is SAVED_OUTPUT:
        result.edge = place
    else:
        edge = edge_of(tensor)
        leaf = edge is not None and tensor._autograd.edge is None
        result.edge = None if leaf else edge
        result.accumulator = weakref.ref(edge[0]) if leaf else None
    result.tangents = tensor._autograd.tangents if tensor._autograd is not None else None
    return result


def raw_saved(node: Node, index: int):
    """A saved entry of a node as `SavedTensor`; a tuple of them for a list of tensors."""
    entry = node.saved[index] if node.saved is not None else None
    if isinstance(entry, (list, tuple)) and not _is_saved(entry):
        return tuple(_handle(node, (index, i)) for i in range(len(entry)))
    return _handle(node, (index,))


def _handle(node: Node, path: tuple) -> SavedTensor:
    result = new_object(SavedTensor)
    result._node, result._path = node, path
    return result


above.saved_entry = raw_saved
