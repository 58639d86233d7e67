"""What compilers make of graphs, as functions of positional arguments.

In: a graph, or what a compiler gave for it. Out: a callable; where it has `consume`, that takes its arguments from a list, which it
empties. A backward may wait for its first call to be compiled, and a graph without a backward may write the inputs itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..capture.front.boxing import boxed, consumed
from ..graph import Graph, GraphModule
from ..ops.system.operator import find
from .facts import Joint


def placeholder_values(module: GraphModule) -> list:
    return [n.meta.get("val") for n in module.graph.nodes if n.op == "placeholder"]


def callable_of(result) -> Callable:
    """A compiler's result as a function of positional arguments; "boxed" ones take a list, which they may empty."""
    if getattr(result, "_boxed_call", False):
        return lambda *args: result(list(args))
    return Run(result) if isinstance(result, GraphModule) else result


class Run:
    """A graph that no compiler has made anything else of. It runs by itself: no module hook hears of it."""

    def __init__(self, module: GraphModule):
        self.module = module

    def __call__(self, *args):
        return self.module.forward(*args)

    def consume(self, args: list):
        """The same of a list, which is emptied: each argument lives until its last use."""
        return self.of_a_list.forward(args)

    @functools.cached_property
    def of_a_list(self) -> GraphModule:
        graph = Graph()
        graph.output(graph.graph_copy(self.module.graph, {}))
        count = sum(n.op == "placeholder" for n in graph.nodes)
        return boxed(GraphModule(self.module, graph), list(range(count)), [None] * count)[0]


class Later:
    """A backward that is compiled when it first runs: many forwards have none."""

    def __init__(self, compile_backward: Callable, module: GraphModule):
        self.compile_backward, self.module = compile_backward, module

    @functools.cached_property
    def compiled(self) -> Callable:
        return self.compile_backward(self.module)

    def __call__(self, *args):
        return self.compiled(*args)

    def consume(self, args: list):
        """The same of a list, which it may empty."""
        return consumed(self.compiled, args)


def takes_symbols(module: GraphModule) -> bool:
    """Whether a graph is given numbers that are not known yet: what compiling it finds out of them is a condition of the forward, too."""
    return any(getattr(v, "is_symbolic", False) for v in placeholder_values(module))


def with_writes(joint: Joint) -> tuple[GraphModule, dict[int, int]]:
    """The graph of a joint without a backward, with inputs written in it instead of their new values given; and which results it
    does not give: {place: input}."""
    kept, copy = joint.replaced(), find("copy.default").inplace
    assert copy is not None
    module = GraphModule(joint.module, graph := Graph())
    graph.output(graph.graph_copy(joint.module.graph, {}))
    output = graph.output_node()
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    results = output.args[0]
    with graph.inserting_before(output):
        for place, i in kept.items():
            write = graph.call_function(copy, (inputs[i], results[place]))
            write.meta.update(results[place].meta)
    output.args = (tuple(r for place, r in enumerate(results) if place not in kept),)
    module.recompile()
    return module, kept


def giving_written(forward: Callable, kept: dict[int, int]) -> Callable:
    """A graph that writes inputs, as one that gives their new values, too: the inputs themselves."""

    def run(*args):
        versions = {i: args[i]._version for i in kept.values()}
        results = list(forward(*args))
        for place, i in sorted(kept.items()):
            results.insert(place, args[i])
            args[i]._counter[0] = versions[i]  # the call counts as it says itself
        return results

    return run
