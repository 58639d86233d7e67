"""A backward in pieces: what lies between calls into Python is compiled, those are made as they are, in their order.

In: the graph of a backward, which nodes of it call into Python, and `make(function)`, which compiles one graph. Out: a
callable of the backward's arguments. Pieces of the same structure (the layers of a model, the parts of a checkpointed one)
are compiled once, and so are those of a backward that is too large for one graph. A value is let go at its last use, as the code of the graph itself does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..capture.front.effects import uses_libraries
from ..graph import Graph, GraphModule
from ..graph import Node as GraphNode
from . import replay
from .lift import ForeignCall, ObjectCall

LARGE = 1000  # calls of rules in one graph: compiling more takes longer than it is worth
PIECE = 8  # calls in a piece of what is larger: repeated structure gives few different pieces, whatever its period
PASSING = (replay.checked, replay.box)  # with reads, what is not worth a graph of its own


def passes(node: GraphNode) -> bool:
    """Whether a node only hands values on. What the user's code gave may have to be summed or cast to be what is expected."""
    if node.target is replay.checked and is_foreign(giver(node.args[0]).target):
        return False
    return node.target in PASSING or getattr(node.target, "__module__", "") == "_operator"


def is_foreign(call: Callable) -> bool:
    """Whether a call gives what the user's code made."""
    return isinstance(call, ForeignCall) or isinstance(call, ObjectCall) and call.users_backward() is not None


def giver(results: GraphNode) -> GraphNode:
    """The call that gave some gradients, before hooks saw them."""
    while results.target in (replay.post_hook, replay.late_post_hooks):
        results = results.args[1 if results.target is replay.post_hook else 0]
    return results


class Ref:
    """A value of an earlier step, in the arguments of a step."""

    __slots__ = ("index",)

    def __init__(self, index: int):
        self.index = index


class Action(NamedTuple):
    """One call: of a function on arguments that hold `Ref`s. `into`: where its result goes, or its results, if there are
    several; `dead`: values that are used here for the last time."""

    function: Callable
    args: tuple
    into: int | tuple[int, ...]
    dead: tuple[int, ...]


def is_rule(node: GraphNode) -> bool:
    """Whether a node calls the rule of an operator."""
    return hasattr(node.target, "key")


def is_large(graph: Graph) -> bool:
    """Whether a backward is too large for one graph."""
    return sum(map(is_rule, graph.nodes)) > LARGE


class Pieces:
    """The actions of one backward, in order. Called with its arguments."""

    def __init__(
        self, graph: Graph, into_python: Callable[[GraphNode], bool], make: Callable, in_segments: bool = False
    ):
        self.make, self.into_python, self.in_segments = make, into_python, in_segments
        self.number = {node: i for i, node in enumerate(graph.nodes)}
        self.last = {n: user for user in graph.nodes for n in user.all_input_nodes}
        self.arguments = [self.number[n] for n in graph.nodes if n.op == "placeholder"]
        self.known: dict[tuple, Callable] = {}  # what was compiled, by structure
        self.actions: list[Action] = []
        limit = PIECE if is_large(graph) else LARGE
        segment: list[GraphNode] = []
        calls = 0
        for node in graph.nodes:
            if node.op == "output":
                self.wanted = self._refs(node.args[0])
            elif node.op == "placeholder":
                continue
            elif all(n.op == "placeholder" for n in node.all_input_nodes):
                self._act(node)  # reads of the arguments
            elif into_python(node):
                self._flush(segment)
                self._act(node)
                calls = 0
            else:
                calls += is_rule(node)
                if calls > limit:
                    self._flush(segment)
                    calls = 1
                segment.append(node)
        self._flush(segment)

    def _refs(self, value):
        if isinstance(value, GraphNode):
            return Ref(self.number[value])
        return type(value)([self._refs(v) for v in value]) if isinstance(value, (tuple, list)) else value

    def _act(self, node: GraphNode) -> None:
        dead = tuple(self.number[n] for n in node.all_input_nodes if self.last[n] is node and n.op != "placeholder")
        self.actions.append(Action(self._called(node.target), self._refs(node.args), self.number[node], dead))

    def _called(self, target: Callable) -> Callable:
        """What is called between graphs: the backward of a custom function is compiled on its own where it may break, and
        where there is something in it to compile."""
        if not self.in_segments or not isinstance(target, ObjectCall):
            return target
        backward = target.users_backward()
        if backward is None or uses_libraries(backward):
            return target
        return self.known.setdefault(target.key, InSegments(self.make))

    def _flush(self, segment: list[GraphNode]) -> None:
        """Compile what came since the last call into Python, if there is something to compute in it."""
        nodes = segment[:]
        segment.clear()
        if all(map(passes, nodes)):
            for node in nodes:
                self._act(node)
            return
        inside = set(nodes)
        inputs = list(dict.fromkeys(n for node in nodes for n in node.all_input_nodes if n not in inside))
        outputs = [n for n in nodes if any(user not in inside for user in n.users)]
        function = self._compiled(nodes, inputs, outputs)
        dead = tuple(self.number[n] for n in inputs if self.last[n] in inside)
        self.actions.append(Action(function, self._refs(tuple(inputs)), tuple(self.number[n] for n in outputs), dead))

    def _compiled(self, nodes: list[GraphNode], inputs: list[GraphNode], outputs: list[GraphNode]) -> Callable:
        place = {n: i for i, n in enumerate((*inputs, *nodes))}
        key = (len(inputs), tuple(signature(n, place) for n in nodes), tuple(place[n] for n in outputs))
        if key not in self.known:
            graph = Graph()
            copies = {n: graph.placeholder(n.name) for n in inputs}
            for node in nodes:
                copies[node] = graph.node_copy(node, lambda n: copies[n])
            graph.output(tuple(copies[n] for n in outputs))
            self.known[key] = self.make(GraphModule({}, graph, class_name="CompiledAutograd"))
        return self.known[key]

    def __call__(self, *lists):
        values: list = [None] * len(self.number)
        for i, given in zip(self.arguments, lists, strict=True):
            values[i] = given
        for function, args, into, dead in self.actions:
            given = fill(args, values)
            for i in dead:
                values[i] = None
            if into.__class__ is int:
                values[into] = function(*given)
            else:
                for i, result in zip(into, function(*given), strict=True):
                    values[i] = result
            given = result = None
        return fill(self.wanted, values)


class InSegments:
    """A node of a custom function that is run itself, its Python in graphs as far as they go."""

    def __init__(self, make: Callable):
        self.make = make
        self.compiled: dict[Callable, Callable] = {}

    def __call__(self, grads: list, saved: list) -> tuple:
        return replay.run_node(saved[0], grads, by=self.call)

    def call(self, function: Callable, *args):
        if function not in self.compiled:
            self.compiled[function] = self.make(function)
        return self.compiled[function](*args)


def fill(args, values: list):
    """Arguments with the values that their `Ref`s stand for."""
    kind = args.__class__
    if kind is Ref:
        return values[args.index]
    if kind is tuple:
        return tuple([fill(a, values) for a in args])
    return [fill(a, values) for a in args] if isinstance(args, list) else args


def signature(node: GraphNode, place: dict) -> tuple:
    """What a node computes, with places for nodes: equal for nodes that may share a compiled graph."""

    def frozen(value):
        if isinstance(value, GraphNode):
            return ("node", place[value])
        if isinstance(value, (tuple, list)):
            return tuple([frozen(v) for v in value])
        return (type(value), value)

    return getattr(node.target, "key", node.target), frozen(node.args), node.meta.get("expects")
