"""A backward as a graph: one call per node, hook, sum and sink, in the engine's order.

In: what `run_graph` of the engine gets. Out: a `Backward`: the key of its structure, the inputs that hold this run's
values, and `graph()`, which writes the structure down, from its key, for those who do not know it yet. The same order, checks
and hooks as the engine's, by calling the engine's own functions (`replay`).
"""

from __future__ import annotations

import operator
from typing import Any

from ..autograd.leaf_rules import LeafRule, rule_of
from ..capture.front.boxing import taken
from ..core.node import AccumulateGrad, Node
from ..graph import Graph, has_side_effect
from ..graph import Node as GraphNode
from . import replay
from .lift import NodeCall, ObjectCall, Places, Slot, lifted
from .module import BackwardModule
from .scan import Inputs, scan
from .schedule import schedule

NAMES = ("inputs", "sizes", "scalars", "hooks", "packed_data")
for _effect in (
    replay.accumulate_grad, replay.replace_grad, replay.tensor_hook, replay.pre_hook, replay.post_hook,
    replay.late_post_hooks, replay.retain_grad, replay.unpack_saved,
):  # fmt: skip
    has_side_effect(_effect)


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
        self.leaves: set[int] | None = None  # identities of the leaves that get gradients, where somebody asked
        self.inputs = inputs = Inputs(differentiable, needed)
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
        """A node that does not run: (None, hooks, wanted outputs, number of outputs); a sink: (AccumulateGrad, hooks, wanted,
        1, whether there is no gradient yet, and the key of the rule of its gradient, if any); any other: (its key, hooks, wanted, number of outputs, edges)."""
        inputs, place = self.inputs, self.place
        wanted = tuple([n for n in range(len(node.outputs)) if (node, n) in self.wanted]) if self.wanted else ()
        hooks = scan_hooks(node, inputs) if node.hooked else None
        if self.needed is not None and not self.needed.get(node):
            return None, hooks, wanted, len(node.outputs)
        if isinstance(node, AccumulateGrad):
            own = node.variable._autograd
            inputs.tensors.append(node.variable)
            rule = self.rule(node) if own.post_accumulate_hooks else None
            if rule is not None:
                inputs.tensors += [] if own.grad is None else [own.grad]
                return AccumulateGrad, hooks, wanted, 1, own.grad is None, rule.key()
            self.watched_leaf = self.watched_leaf or bool(own.post_accumulate_hooks)
            return AccumulateGrad, hooks, wanted, 1, own.grad is None
        key = scan(node, inputs)
        edges: list = []
        for edge in node.edges:
            if edge is None or edge[0] not in place:
                edges.append(None)
                continue
            edges.append((place[edge[0]], edge[1]))
            if edge not in seen:
                seen.add(edge)
                inputs.packed.append(edge[0].outputs[edge[1]])
        return key, hooks, wanted, len(node.outputs), tuple(edges)

    def rule(self, node: AccumulateGrad) -> LeafRule | None:
        """The rule by which the graph itself treats a leaf's gradient: all its members must be in this backward."""
        rule = rule_of(node.variable)
        if rule is None or node.post_hooks or self.differentiable:
            return None
        if self.leaves is None:
            runs = lambda n: self.needed is None or self.needed.get(n)
            self.leaves = {id(n.variable) for n in self.order if isinstance(n, AccumulateGrad) and runs(n)}
        return rule if all(id(m) in self.leaves for m in rule.members) else None

    def graph(self) -> BackwardModule:
        return Writer(self).write()


def scan_hooks(node: Node, inputs: Inputs) -> tuple:
    """Which hooks a node has: structure, unlike the hooks themselves, which are values."""
    by_number = (node.tensor_pre_hooks or {}).items()
    on_tensors = [(n, h) for n, hooks in by_number for h in hooks.values()]
    retained, before, after = node.retain_grad_hooks or {}, node.pre_hooks or {}, node.post_hooks or {}
    inputs.hooks += [*[h for _, h in on_tensors], *retained.values(), *before.values(), *after.values()]
    return tuple([n for n, _ in on_tensors]), tuple(retained), len(before), len(after)


class Step:
    """One node of the schedule, as its key says: its call, its hooks, and where its gradients go to."""

    __slots__ = (
        "call", "saved", "runs", "wanted", "outputs", "tensor_hooks", "retained", "pre_hooks", "post_hooks", "edges",
        "calls_python", "ruled",
    )  # fmt: skip

    def __init__(self, key: tuple, places: Places):
        kind, hooks, self.wanted, self.outputs, *rest = key
        hooks_before = places.hooks
        on_tensors, retained, before, after = hooks or ((), (), 0, 0)
        self.tensor_hooks = [(n, places.next("hooks")) for n in on_tensors]
        self.retained = [(n, places.next("hooks")) for n in retained]
        self.pre_hooks, self.post_hooks = places.several("hooks", before), places.several("hooks", after)
        self.runs = kind is not None
        self.call: NodeCall | ObjectCall | None = None  # None: a sink, or nothing runs
        self.saved: list[Slot] = []
        self.edges: tuple = ()
        self.ruled = kind is AccumulateGrad and len(rest) == 2  # a rule treats the leaf's gradient, in the graph
        if kind is AccumulateGrad:
            first = rest[0]
            self.saved = [places.next("tensors") for _ in range(1 if first or not self.ruled else 2)]
        elif kind is not None:
            self.call, self.saved = lifted(kind, places)
            (self.edges,) = rest
        self.calls_python = places.hooks > hooks_before  # whether its call or its hooks go into the user's Python


class Writer:
    """Writes the graph of a backward, as its key says."""

    def __init__(self, backward: Backward):
        self.backward, self.graph = backward, Graph()
        self.lists = [self.graph.placeholder(name) for name in NAMES]
        self.read: dict[tuple[int, int], GraphNode] = {}
        roots, steps, self.wanted, _ = backward.key
        places = Places()
        self.roots = [(place, n, places.next("tensors")) for place, n, absent in roots if not absent]
        self.steps = [Step(key, places) for key in steps]
        self.metas: dict[tuple[int, int], Slot] = {}  # what is expected of gradients that go to an output of a node
        for edge in [e for step in self.steps for e in step.edges if e is not None]:
            if edge not in self.metas:
                self.metas[edge] = places.next("packed")
        self.arrived: list[list] = [[None] * step.outputs for step in self.steps]
        self.captured: dict[tuple[int, int], Any] = {}
        self.ruled: dict[LeafRule, dict[int, tuple]] = {}  # (variable, gradient, place) of members, by their identity
        self.started: list[tuple[LeafRule, GraphNode]] = []

    def write(self) -> BackwardModule:
        for i in range(len(self.backward.inputs.tensors)):
            self._read(0, i)
        self._call(taken, self.lists[0])
        for place, number, given in self.roots:
            self._arrive(place, number, self._value(given))
        for place, step in enumerate(self.steps):
            self.place = place
            self._step(step, self.arrived[place])
            self.arrived[place] = []
        self._finish_rules()
        self.graph.output(tuple(self.captured.get(edge) for edge in self.wanted))
        return BackwardModule({}, self.graph, class_name="CompiledAutograd")

    def _call(self, function, *args) -> GraphNode:
        name = None if function is operator.getitem else function.__name__
        return self.graph.create_node("call_function", function, args, name=name)

    def _value(self, value):
        """A slot as the node that reads it; structures of them, and constants."""
        if isinstance(value, Slot):
            if value.kind == "unpack":
                return self._call(replay.unpack_saved, self._read(3, value.index), self.place)
            return self._read(value.list, value.index)
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
            self.captured[self.place, n] = gs[n]
        if not step.runs:
            return
        gs = self._tensor_hooks(step, gs)
        for hook in step.pre_hooks:
            result = self._call(replay.pre_hook, self._value(hook), gs, self.place)
            gs = [self._call(operator.getitem, result, i) for i in range(len(gs))]
        if step.ruled:
            self._rule(step, gs[0])
            return
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
        name = self.backward.order[self.place].name()
        for i, edge in enumerate(step.edges):
            if edge is not None:
                meta = self.metas[edge]
                g = self._call(replay.checked, results, i, self._value(meta), name)
                shape, dtype, _ = self.backward.inputs.packed[meta.index]
                g.meta["expects"] = (len(shape), dtype)
                self._arrive(edge[0], edge[1], g)

    def _tensor_hooks(self, step: Step, gs: list) -> list:
        gs = list(gs)
        for n, hook in step.tensor_hooks:
            gs[n] = self._call(replay.tensor_hook, self._value(hook), gs[n], self.place, n)
        for n, keep in step.retained:
            gs[n] = self._call(replay.retain_grad, self._value(keep), gs[n])
        return gs

    def _rule(self, step: Step, g) -> None:
        """A gradient whose leaf has a rule: the rule starts when those of all its members have come."""
        node = self.backward.order[self.place]
        rule = self.backward.rule(node) if isinstance(node, AccumulateGrad) else None
        if rule is None:
            raise AssertionError(f"{node} has no rule, and the key of its backward says that it has")
        variable, *old = [self._value(s) for s in step.saved]
        total = self._call(replay.total, old[0], g) if old else g
        have = self.ruled.setdefault(rule, {})
        have[id(node.variable)] = variable, total, self.place  # type: ignore[attr-defined]
        if len(have) == len(rule.members):
            totals = [have[id(m)][1] for m in rule.members]
            self.started.append((rule, self._call(rule.start, *totals)))

    def _finish_rules(self) -> None:
        for rule, started in self.started:
            result = self._call(rule.finish, started)
            for i, member in enumerate(rule.members):
                variable, _, place = self.ruled[rule][id(member)]
                boxed = self._call(replay.box, self._call(operator.getitem, result, i))
                self._call(replay.replace_grad, variable, boxed, place)
