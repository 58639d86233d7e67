"""Calls that write where nothing reads again, in the place of calls that make new memory.

In: a graph of functional operators and example inputs. Out: the same module, in which `add(a, b)` is `add_(a, b)` and
`select_scatter(base, v, 0, 1)` is a write to `select(base, 0, 1)`, wherever what is overwritten is memory that the graph made
itself and that nothing after the call reads. What always holds: inputs and constants are written only where they were
before, and results that shared no memory share none afterwards.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from typing import Any, NamedTuple

from ...core import tree
from ...core.geometry import may_overlap
from ...core.layers import above
from ...core.node import requires_grad
from ...core.storage import Storage, storage_of
from ...core.tensor import CONJ, FAKE, NEG, Tensor, stride_of
from ...ops.system.operator import Operator, find
from ..interpreter import Interpreter
from ..module import GraphModule
from ..node import Node
from .fake_tensor_prop import FakeTensorProp

# What puts a value at the place that a view shows, and the view.
_VIEWS = {
    "select_scatter.default": "select.int",
    "slice_scatter.default": "slice.Tensor",
    "diagonal_scatter.default": "diagonal.default",
    "as_strided_scatter.default": "as_strided.default",
}


def reinplace(gm: GraphModule, *sample_args: Any) -> GraphModule:
    """The module, changed: calls write to memory of the graph that nothing reads again instead of making new memory.

    What shares memory with what is read off a run on fakes of `sample_args`. Calls whose results want gradients stay as they
    are, since what they overwrite may be what a gradient is computed of.
    """
    fakes = [t for t in tree.tree_leaves(sample_args) if isinstance(t, Tensor) and t._keys & FAKE]
    mode = fakes[0].__dict__["fake_mode"] if fakes else above.fake_mode(True)
    run = _Values(gm, mode)
    run.propagate_dont_convert_inputs(*tree.tree_map_only(Tensor, mode.from_tensor, sample_args))
    nodes = list(gm.graph.nodes)
    with mode:
        memories = _Memories(nodes, run.values)
        for n in nodes:
            if isinstance(n.target, Operator) and n.args and isinstance(n.args[0], Node):
                if _view_of(n) is not None:
                    _write_into(gm, memories, n)
                else:
                    _overwrite(memories, n)
    gm.graph.lint()
    gm.recompile()
    return gm


class _Place(NamedTuple):
    """Where in memory a tensor lies, in bytes, and whether its elements are conjugated or negated when they are read."""

    memory: Storage
    offset: int
    shape: tuple
    stride: tuple
    bits: int


class _Values(FakeTensorProp):
    """A run on fakes that keeps what each node gives, and says nothing of it on the nodes."""

    def __init__(self, module: GraphModule, mode: Any):
        super().__init__(module, mode)
        self.values: dict[Node, Any] = {}

    def run_node(self, n: Node) -> Any:
        self.values[n] = result = Interpreter.run_node(self, n)
        return result


class _Memories:
    """Which nodes are tensors on which memory, while calls become writes whose results lie where their targets lay."""

    def __init__(self, nodes: list[Node], values: dict[Node, Any]):
        self.values = values
        self._number = {n: i for i, n in enumerate(nodes)}
        self._moved: dict[
            Storage, tuple[Storage, int]
        ] = {}  # memory that is none of its own -> (where it lies, at which byte)
        self._readers: dict[Storage, list[Node]] = defaultdict(list)
        self._own: set[Storage] = set()  # made by operators of the graph
        seen: set[Storage] = set()
        for n in nodes:
            for memory in dict.fromkeys(m for a in n.all_input_nodes for m in self.of(a)):
                self._readers[memory].append(n)
            new = set(self.of(n)) - seen
            seen |= new
            if isinstance(n.target, Operator):
                self._own |= new

    def of(self, n: Node) -> list[Storage]:
        return [self.place(t).memory for t in tree.tree_leaves(self.values.get(n)) if isinstance(t, Tensor)]

    def place(self, t: Tensor) -> _Place:
        memory, size = storage_of(t), t.dtype.itemsize
        offset = t._offset * size
        while memory in self._moved:
            memory, shift = self._moved[memory]
            offset += shift
        stride = tuple(s * size for s in stride_of(t))
        return _Place(memory, offset, tuple(t._array.shape), stride, t._keys & (CONJ | NEG))

    def written_by(self, n: Node) -> _Place | None:
        """The place in its first argument at which a call puts something that lies elsewhere."""
        view = _view_of(n)
        if view is None or not isinstance(n.args[0], Node):
            return None
        place = self.place(view(self.values[n.args[0]], *n.args[2:], **n.kwargs))
        return None if any(place.memory in self.of(a) for a in n.all_input_nodes if a is not n.args[0]) else place

    def may_write(self, n: Node, target: Node, covering: list[_Place]) -> bool:
        """Whether a call may write its result to a tensor, of which places in `covering` show all."""
        old, new = self.values[target], self.values[n]
        if not isinstance(old, Tensor) or not isinstance(new, Tensor) or requires_grad(old) or requires_grad(new):
            return False
        a, b = self.place(old), self.place(new)
        if old.dtype is not new.dtype or old.device != new.device or a.shape != b.shape or a.bits != b.bits:
            return False
        if a.memory not in self._own or a.stride != b.stride and not _is_only_copied(n):
            return False
        if may_overlap(a.shape, a.stride) or n.args.count(target) > 1:
            return False
        return not any(
            self._number[reader] > self._number[n] and self.written_by(reader) not in covering
            for reader in self._readers[a.memory]
        )

    def settle(self, n: Node, target: Node) -> None:
        """A result lies where the target of the write lies."""
        new, old = self.place(self.values[n]), self.place(self.values[target])
        if new.memory is not old.memory:
            self._moved[new.memory] = (old.memory, old.offset - new.offset)
            self.values[n] = self.values[target]
            self._readers[old.memory] += self._readers.pop(new.memory, [])


def _view_of(n: Node) -> Operator | None:
    """The view at whose place a call puts a value."""
    if not isinstance(n.target, Operator) or n.target.namespace != "aten":
        return None
    name = _VIEWS.get(n.target.__name__)
    return find(name) if name else None


def _is_only_copied(n: Node) -> bool:
    """Whether all that is done with a value is to put it into others, wherever its elements lie."""
    return all(_view_of(user) is not None and user.args[0] is not n for user in n.users)


def _covering(memories: _Memories, n: Node | Any) -> list[_Place]:
    """The places of a tensor and of all that it was made of by views: each shows all that the first shows."""
    places: list[_Place] = []
    while isinstance(n, Node):
        if isinstance(value := memories.values[n], Tensor):
            places.append(memories.place(value))
        target = n.target
        within = isinstance(target, Operator) and (target.is_view or target.inplace_of is not None)
        if not (within or target is operator.getitem) or target is find("as_strided.default"):
            break
        n = n.args[0]
    return places


def _overwrite(memories: _Memories, n: Node) -> None:
    """Make a call the in-place one on its first argument, where that may be overwritten."""
    op, target = n.target, n.args[0]
    if op.is_view or op.inplace_of is not None or op.inplace is None or not isinstance(memories.values[n], Tensor):
        return
    if not memories.may_write(n, target, _covering(memories, target)):
        return
    memory = memories.place(memories.values[target]).memory
    if any(memory in memories.of(a) for a in n.all_input_nodes if a is not target):
        return
    n.target = op.inplace
    memories.settle(n, target)


def _write_into(gm: GraphModule, memories: _Memories, n: Node) -> None:
    """Make a value put at a view's place in another a write to that view, or nothing where the value lies there already."""
    view, (base, value) = _view_of(n), n.args[:2]
    copy = find("copy.default").inplace
    assert view is not None and copy is not None
    place = memories.place(view(memories.values[base], *n.args[2:], **n.kwargs))
    there = isinstance(value, Node) and memories.place(memories.values[value]) == place
    if not there and memories.written_by(n) is None:
        return
    if may_overlap(place.shape, place.stride) or not memories.may_write(n, base, [place, *_covering(memories, base)]):
        return
    memories.settle(n, base)
    if not there:
        with gm.graph.inserting_before(n):
            target = gm.graph.call_function(view, (base, *n.args[2:]), n.kwargs)
            gm.graph.call_function(copy, (target, value))
    n.replace_all_uses_with(base)
    gm.graph.erase_node(n)
