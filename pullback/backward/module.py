"""The graph of a backward as a module, and how `compile` takes it.

What a backward calls is of two kinds: rules of operators, which only compute, and calls into the user's Python (hooks,
custom functions, unpacking of saved tensors) or into tensors' state (`.grad`). Compiling keeps the second kind out of
graphs, in its place and order, unless one graph is demanded: then hooks and custom functions that only compute are traced,
and gradients are added to `.grad` at the end.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

from ..autograd.function import BackwardCFunction
from ..capture.front.boxing import set_locals_to_steal, taken
from ..capture.front.config import config
from ..capture.front.effects import is_output
from ..capture.trace.program import Unsupported
from ..core import modes
from ..core.modes import ambient
from ..core.node import Node
from ..graph import Graph, GraphModule
from ..graph import Node as GraphNode
from . import replay
from .custom import Variants, read, users_python
from .inline import can_inline, inline
from .lift import ObjectCall
from .pieces import Pieces, is_large
from .scan import Unpacking

STATE = (replay.accumulate_grad, replay.replace_grad, replay.box, replay.retain_grad)
SINKS = (replay.accumulate_grad, replay.replace_grad, replay.box)
LEAVES = (replay.accumulate_grad, replay.replace_grad)  # these write to a leaf
PYTHON = (replay.tensor_hook, replay.pre_hook, replay.post_hook, replay.late_post_hooks, replay.unpack_saved)


def into_python(node: GraphNode) -> bool:
    """Whether a node calls the user's Python or changes a tensor's state."""
    return node.op == "call_function" and (
        node.target in STATE or node.target in PYTHON or isinstance(node.target, ObjectCall)
    )


class BackwardModule(GraphModule):
    """A backward. Called with (inputs, sizes, scalars, hooks, packed_data); gives the gradients that were asked for."""

    of_nodes: BackwardModule | None = None  # the same with one call for each node, where this has more

    def compile_with(self, make: Callable[..., Callable], fullgraph: bool) -> Callable:
        """Compile by `make(function)`, which compiles one graph. Its numbers are sizes, which change from step to step."""
        make = functools.partial(make, numbers=True, marks_bind=False)
        if not (is_large(self.graph) or any(into_python(n) and n.target not in SINKS for n in self.graph.nodes)):
            whole = WithSinksLast(self, make)
            return whole if config.compiled_autograd_create_graph else unless_recorded(self, whole)
        return unless_recorded(self, Whole(self, make) if fullgraph else in_pieces(self.of_nodes or self, make, True))


def inlined(module: BackwardModule) -> BackwardModule:
    """A backward with the graphs of functions that were compiled ahead of time in it."""
    if not any(map(can_inline, module.graph.nodes)):
        return module
    graph = Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    inline(graph)
    result = BackwardModule({}, graph, class_name="CompiledAutograd")
    result.__dict__["of_nodes"] = module
    return result


def unless_recorded(module: BackwardModule, compiled: Callable) -> Callable:
    """What runs a backward: gradients that are differentiated again (`create_graph`) have the history of their operators,
    which users look at and which goes through their Python, so those calls are made one by one."""

    def call(*lists):
        return module(*lists) if ambient.mode & modes.GRAD else compiled(*lists)

    return call


class Whole:
    """A backward of which one graph is wanted: hooks and custom functions are traced. Where they do more than compute,
    that backward is run in pieces, since a graph would do it once and never again."""

    def __init__(self, module: BackwardModule, make: Callable):
        self.module, self.make = module, make
        self.graphs: dict[tuple, WithSinksLast] = {}  # by what the traced hooks depend on
        self.variants = Variants()
        self.pieces: Callable | None = None
        self.keeps = any(n.target is replay.retain_grad for n in module.graph.nodes)
        self.traced = traced_hooks(module.graph)

    def __call__(self, *lists):
        found = [read_hook(lists[3][i]) for i in self.traced]
        effect = next(filter(None, [effect for _, effect in found]), None)
        if effect is not None and is_output(effect):
            raise Unsupported(f"a hook or custom function of the backward {effect}")
        key = tuple([key for key, _ in found])
        if effect is not None or self.keeps or self.variants.effect(key) is not None:
            self.pieces = self.pieces or in_pieces(self.module.of_nodes or self.module, self.make)
            return self.pieces(*lists)
        if key not in self.graphs:
            self.graphs[key] = WithSinksLast(self.module, self.make)
        return self.graphs[key](*lists)


def traced_hooks(graph: Graph) -> list[int]:
    """Places, among the hooks, of what one graph of the backward would trace: all but what follows a sink."""
    hooks = next(n for n in graph.nodes if n.op == "placeholder" and n.name == "hooks")
    after: set[GraphNode] = set()
    out: dict[int, None] = {}
    for node in graph.nodes:
        if node.target in LEAVES or any(n in after for n in node.all_input_nodes):
            after.add(node)
        elif into_python(node):
            reads = [n for n in node.all_input_nodes if n.target is operator.getitem and n.args[0] is hooks]
            out.update({n.args[1]: None for n in reads})
    return list(out)


def read_hook(hook) -> tuple[tuple, str | None]:
    """(what it depends on, what it does besides computing) of a hook, a node that is run itself, or the unpacking of a
    saved tensor."""
    if isinstance(hook, Node):
        return users_python(hook) if isinstance(hook, BackwardCFunction) else ((), f"calls {hook.name()}")
    return read(hook.hook if isinstance(hook, Unpacking) else hook)[:2]


class WithSinksLast:
    """One graph of everything but sinks, which take their gradients when it is done."""

    def __init__(self, module: BackwardModule, make: Callable):
        graph = Graph()
        copies: dict[GraphNode, GraphNode] = {}
        self.sinks, after = [], set()
        for node in module.graph.nodes:
            if node.op == "output":
                wanted = node.args[0]
            elif node.target in LEAVES or any(n in after for n in node.all_input_nodes):
                self.sinks.append(node)
                after.add(node)
            elif node.target is not taken:  # the compiled graph empties its list itself
                copies[node] = graph.node_copy(node, lambda n: copies[n])
        self.used = list(dict.fromkeys(n for s in self.sinks for n in s.all_input_nodes if n not in after))
        results = tuple(copies[n] if isinstance(n, GraphNode) else n for n in wanted)
        graph.output((results, tuple(copies[n] for n in self.used)))
        result = GraphModule(module, graph, class_name="CompiledAutograd")
        set_locals_to_steal(result, ["inputs"])
        self.run = make(result)

    def __call__(self, *lists):
        captured, values = self.run(*lists)
        known = dict(zip(self.used, values, strict=True))
        for node in self.sinks:
            known[node] = node.target(*replaced(node.args, known))
        return captured


def replaced(value, known: dict):
    """Arguments of a graph's node with values for nodes."""
    if isinstance(value, GraphNode):
        return known[value]
    if isinstance(value, (tuple, list)):
        return (
            type(value)(replaced(v, known) for v in value)
            if type(value) is tuple
            else [replaced(v, known) for v in value]
        )
    return value


def in_pieces(module: BackwardModule, make: Callable, in_segments: bool = False) -> Callable:
    """Graphs of what lies between calls into Python, which are made as they are; or, for custom functions, in segments."""
    return Pieces(module.graph, into_python, make, in_segments)
