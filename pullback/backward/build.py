"""A backward as a graph: one call per node, hook, sum and sink, in the engine's order.

In: what `run_graph` of the engine gets. Out: a `Backward`: the key of its structure, the inputs that hold this run's
values, and `graph()`, which writes the structure down, for those who do not know it yet. The same order, checks and hooks
as the engine's, by calling the engine's own functions (`replay`).
"""

from __future__ import annotations

import operator
from typing import Any

from ..capture.front.boxing import taken
from ..core.node import AccumulateGrad, Node
from ..core.tensor import Tensor
from ..graph import Graph, has_side_effect
from ..graph import Node as GraphNode
from . import replay
from .lift import Inputs, Slot, lift
from .module import BackwardModule
from .scan import scan
from .schedule import schedule

NAMES = ("inputs", "sizes", "scalars", "hooks", "packed_data")
LISTS = {"tensors": 0, "sizes": 1, "scalars": 2, "hooks": 3, "packed": 4}
for _effect in (
    replay.accumulate_grad, replay.tensor_hook, replay.pre_hook, replay.post_hook, replay.late_post_hooks, replay.retain_grad,
    replay.unpack_saved,
):  # fmt: skip
    has_side_effect(_effect)


class Step:
    """One node of the schedule: its call, its hooks, and where gradients come from and go to."""

    __slots__ = (
        "node", "call", "saved", "runs", "wanted", "tensor_hooks", "retained", "pre_hooks", "post_hooks", "meta",
        "calls_python",
    )  # fmt: skip

    def __init__(self, node: Node, runs: bool):
        self.node, self.runs = node, runs
        self.call = None
        self.saved: list = []
        self.wanted = self.tensor_hooks = self.retained = self.pre_hooks = self.post_hooks = self.meta = ()
        self.calls_python = False  # whether its call or its hooks go into the user's Python


class Backward:
    """One backward, taken in: its values and the `key` of its structure, which is equal for backwards of one structure."""

    def __init__(
        self, roots: list, grads: list, wanted: list | None, accumulate_inputs: bool, differentiable: bool, needed: dict | None,
    ):  # fmt: skip
        self.differentiable, self.grads = differentiable, grads
        self.task_roots, self.wanted_edges = roots, wanted if wanted is not None else ()
        self.wanted = wanted if wanted is not None and not accumulate_inputs else []
        self.needed = needed
        self.order = schedule(roots, needed)
        self.place = {node: i for i, node in enumerate(self.order)}
        self.watched_leaf = False  # whether a leaf has hooks that run when its gradient has come
        self.inputs = inputs = Inputs(differentiable)
        inputs.tensors += [g for g in grads if g is not None]
        self.key = self._key()
        self.calls_python = self.watched_leaf or bool(inputs.hooks)

    def _key(self) -> tuple:
        """The structure of the graph: calls, edges and hooks, by place. On the way, values go to the inputs."""
        place = self.place
        seen: set[tuple[Node, int]] = set()
        steps = tuple([self._step_key(node, seen) for node in self.order])
        pairs = zip(self.task_roots, self.grads, strict=True)
        roots = tuple([(place[node], number, g is None) for (node, number), g in pairs])
        return roots, steps, tuple([(place.get(n), k) for n, k in self.wanted]), self.differentiable

    def _step_key(self, node: Node, seen: set) -> tuple:
        inputs, place = self.inputs, self.place
        wanted = tuple([n for n in range(len(node.outputs)) if (node, n) in self.wanted]) if self.wanted else ()
        hooks = scan_hooks(node, inputs) if node.hooked else None
        if self.needed is not None and not self.needed.get(node):
            return None, hooks, wanted
        if node.__class__ is AccumulateGrad:
            own = node.variable.autograd
            inputs.tensors.append(node.variable)
            self.watched_leaf = self.watched_leaf or bool(own.post_accumulate_hooks)
            return AccumulateGrad, own.grad is None, hooks, wanted
        own = scan(node, inputs)
        edges: list = []
        for edge in node.edges:
            if edge is None or edge[0] not in place:
                edges.append(None)
                continue
            edges.append((place[edge[0]], edge[1]))
            if edge not in seen:
                seen.add(edge)
                inputs.packed.append(edge[0].outputs[edge[1]])
        return own, tuple(edges), hooks, wanted, len(node.outputs)

    def graph(self) -> BackwardModule:
        return Writer(Apart(self)).write()


def scan_hooks(node: Node, inputs: Inputs) -> tuple:
    """Which hooks a node has: structure, unlike the hooks themselves, which are values."""
    by_number = (node.tensor_pre_hooks or {}).items()
    on_tensors = [(n, h) for n, hooks in by_number for h in hooks.values()]
    retained, before, after = node.retain_grad_hooks or {}, node.pre_hooks or {}, node.post_hooks or {}
    inputs.hooks += [*[h for _, h in on_tensors], *retained.values(), *before.values(), *after.values()]
    return tuple([n for n, _ in on_tensors]), tuple(retained), len(before), len(after)


class Apart:
    """A backward taken apart: its steps, with what each calls and where its values are among the inputs."""

    def __init__(self, backward: Backward):
        self.inputs, self.place, self.wanted = Inputs(backward.differentiable), backward.place, backward.wanted
        self.needed = backward.needed
        pairs = zip(backward.task_roots, backward.grads, strict=True)
        self.roots = [(self.place[e[0]], e[1], self._given(g)) for e, g in pairs]
        self.metas: dict[tuple[Node, int], Slot] = {}
        self.steps = [self._step(node) for node in backward.order]
        found, known = (list(map(len, lists.lists())) for lists in (self.inputs, backward.inputs))
        if found != known:
            raise AssertionError(f"a backward has {known} values and its graph takes {found}")

    def _given(self, g: Tensor | None) -> Slot | None:
        return None if g is None else self.inputs.put("tensors", g)

    def _step(self, node: Node) -> Step:
        step = Step(node, self.needed is None or bool(self.needed.get(node)))
        inputs = self.inputs
        hooks_before = len(inputs.hooks)
        if self.wanted:
            step.wanted = tuple([n for n in range(len(node.outputs)) if (node, n) in self.wanted])
        if node.hooked:
            self._take_hooks(step, node)
        if not step.runs:
            return step
        if node.__class__ is AccumulateGrad:
            step.saved = [inputs.put("tensors", node.variable)]
        else:
            step.call, step.saved = lift(node, inputs)
            step.meta = tuple([self._meta(e) for e in node.edges])
        step.calls_python = len(inputs.hooks) > hooks_before
        return step

    def _take_hooks(self, step: Step, node: Node) -> None:
        put = self.inputs.put
        by_number = (node.tensor_pre_hooks or {}).items()
        step.tensor_hooks = tuple([(n, put("hooks", h)) for n, hooks in by_number for h in hooks.values()])
        step.retained = tuple([(n, put("hooks", keep)) for n, keep in (node.retain_grad_hooks or {}).items()])
        step.pre_hooks = tuple([put("hooks", h) for h in (node.pre_hooks or {}).values()])
        step.post_hooks = tuple([put("hooks", h) for h in (node.post_hooks or {}).values()])

    def _meta(self, edge) -> Slot | None:
        """What the node at the end of an edge expects of a gradient: shape, dtype and device."""
        if edge is None or edge[0] not in self.place:
            return None
        slot = self.metas.get(edge)
        if slot is None:
            slot = self.metas[edge] = self.inputs.put("packed", edge[0].outputs[edge[1]])
        return slot


class Writer:
    """Writes the graph of a backward."""

    def __init__(self, backward: Apart):
        self.backward, self.graph = backward, Graph()
        self.lists = [self.graph.placeholder(name) for name in NAMES]
        self.read: dict[tuple[int, int], GraphNode] = {}
        self.arrived: list[list] = [[None] * len(step.node.outputs) for step in backward.steps]
        self.captured: dict[tuple[Node, int], Any] = {}

    def write(self) -> BackwardModule:
        for i in range(len(self.backward.inputs.tensors)):
            self._read(0, i)
        self._call(taken, self.lists[0])
        for place, number, given in self.backward.roots:
            if given is not None:
                self._arrive(place, number, self._value(given))
        for place, step in enumerate(self.backward.steps):
            self.place = place
            self._step(step, self.arrived[place])
            self.arrived[place] = []
        self.graph.output(tuple(self.captured.get(edge) for edge in self.backward.wanted))
        return BackwardModule({}, self.graph, class_name="CompiledAutograd")

    def _call(self, function, *args) -> GraphNode:
        name = None if function is operator.getitem else function.__name__
        return self.graph.create_node("call_function", function, args, name=name)

    def _value(self, value):
        """A slot as the node that reads it; structures of them, and constants."""
        if isinstance(value, Slot):
            if value.kind == "unpack":
                return self._call(replay.unpack_saved, self._read(3, value.index), self.place)
            return self._read(LISTS[value.kind], value.index)
        if isinstance(value, (tuple, list)):
            return type(value)([self._value(v) for v in value])
        return value

    def _read(self, which: int, index: int) -> GraphNode:
        if (which, index) not in self.read:
            self.read[which, index] = self._call(operator.getitem, self.lists[which], index)
        return self.read[which, index]

    def _arrive(self, place: int, number: int, g) -> None:
        have = self.arrived[place][number]
        self.arrived[place][number] = g if have is None else self._call(replay.total, have, g)

    def _step(self, step: Step, gs: list) -> None:
        if not step.runs:
            gs = self._tensor_hooks(step, gs)
        for n in step.wanted:
            self.captured[step.node, n] = gs[n]
        if not step.runs:
            return
        gs = self._tensor_hooks(step, gs)
        for hook in step.pre_hooks:
            made = self._call(replay.pre_hook, self._value(hook), gs, self.place)
            gs = [self._call(operator.getitem, made, i) for i in range(len(gs))]
        if step.call is None:
            boxed = self._call(replay.box, gs[0])
            seen = self._call(
                replay.accumulate_grad, self._value(step.saved[0]), boxed, len(step.post_hooks), self.place
            )
            for hook in step.post_hooks:
                self._call(replay.post_hook, self._value(hook), (), seen, self.place)
            return
        results = self.graph.create_node(
            "call_function", step.call, (gs, self._value(step.saved)), name=step.call.__name__
        )
        hooks = [self._value(hook) for hook in step.post_hooks]
        for hook in hooks:
            results = self._call(replay.post_hook, hook, results, gs, self.place)
        if step.calls_python:
            results = self._call(replay.late_post_hooks, results, gs if hooks else [None] * len(gs), hooks, self.place)
        for i, (meta, edge) in enumerate(zip(step.meta, step.node.edges, strict=True)):
            if meta is not None:
                g = self._call(replay.checked, results, i, self._value(meta), step.node.name())
                shape, dtype, _ = self.backward.inputs.packed[meta.index]
                g.meta["expects"] = (len(shape), dtype)
                self._arrive(self.backward.place[edge[0]], edge[1], g)

    def _tensor_hooks(self, step: Step, gs: list) -> list:
        gs = list(gs)
        for n, hook in step.tensor_hooks:
            gs[n] = self._call(replay.tensor_hook, self._value(hook), gs[n], self.place, n)
        for n, keep in step.retained:
            gs[n] = self._call(replay.retain_grad, self._value(keep), gs[n])
        return gs
