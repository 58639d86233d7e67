"""Graphs that take tensors in a list and empty it, so that each tensor lives until its last use and no longer.

A graph says by `set_locals_to_steal(module, names)` which of its arguments are lists that are its own to empty. When it is
compiled, the tensors of these lists reach the backend in one list, the graph's first input (`boxed`). A backend that wants
plain inputs takes the list apart again (`unboxed`). Whoever runs such a graph keeps no reference to the tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from ...core import tree
from ...graph import Graph, GraphModule, Node, has_side_effect

STOLEN = "locals_to_steal"  # in a module's meta


def set_locals_to_steal(module: GraphModule, names: list[str]) -> None:
    """Say which arguments of a graph are lists that a call of it, compiled, empties."""
    module.meta[STOLEN] = list(names)


def stolen_names(function: Callable) -> tuple[str, ...]:
    """The arguments of a function that are lists of its own to empty."""
    return tuple(function.meta.get(STOLEN) or ()) if isinstance(function, GraphModule) else ()


def taken(values: list) -> None:
    """All values of a list have been read: it lets go of them, so that each lives until its last use."""
    values.clear()


has_side_effect(taken)


def boxed(module: GraphModule, places: list[int], examples: list) -> tuple[GraphModule, list]:
    """A graph that takes some of its inputs in one list, its first input, which it empties; and examples of its inputs."""
    graph = module.graph
    given = [n for n in graph.nodes if n.op == "placeholder"]
    first = [given[i] for i in places]
    values = [n.meta.get("example_value") for n in first]
    with graph.inserting_before(given[0] if given else next(iter(graph.nodes))):
        inputs = graph.placeholder("inputs")
    inputs.meta.update(val=values, example_value=values)
    after = [n for n in graph.nodes if n.op == "placeholder"][-1]
    for i, node in enumerate(first):
        with graph.inserting_after(after):
            after = graph.call_function(operator.getitem, (inputs, i))
        after.meta = dict(node.meta)
        node.replace_all_uses_with(after)
        graph.erase_node(node)
    with graph.inserting_after(after):
        graph.call_function(taken, (inputs,))
    others = [e for i, e in enumerate(examples) if i not in places]
    return GraphModule(module, graph), [[examples[i] for i in places], *others]


def unboxed(module: GraphModule, examples: list) -> GraphModule:
    """A boxed graph with plain inputs in the place of lists."""
    graph = Graph()
    copies: dict[Node, object] = {}
    given = iter(examples)
    for node in module.graph.nodes:
        if node.op == "placeholder" and isinstance(example := next(given), list):
            copies[node] = [graph.placeholder(f"{node.name}_{i}") for i in range(len(example))]
            for place, value in zip(copies[node], node.meta.get("val") or (), strict=False):
                place.meta.update(val=value, example_value=value)
        elif node.target is operator.getitem and isinstance(copies.get(node.args[0]), list):
            copies[node] = copies[node.args[0]][node.args[1]]
        elif node.op == "output":
            graph.output(tree.tree_map_only(Node, copies.__getitem__, node.args[0])).meta = dict(node.meta)
        elif node.target is not taken:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    return GraphModule(module, graph)


def takes_lists(run: Callable) -> Callable:
    """What runs an unboxed graph, as one that takes lists and empties them."""

    def call(*args):
        given = []
        for a in args:
            given += a if type(a) is list else (a,)
            if type(a) is list:
                a.clear()
        return consumed(run, given)

    return call


def consumed(run: Callable, values: list):
    """A call with the values of a list. Where `run` has a way to take them from the list (`consume`), which it empties, each lives until
    its last use."""
    take = getattr(run, "consume", None)
    return run(*values) if take is None else take(values)
