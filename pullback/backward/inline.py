"""Backwards of functions compiled ahead of time, inside a larger backward: their graphs' operators in its graph.

In: the graph of a backward, where such a function is one call. Out: the graph with the function's own backward graph in
the place of the call, so that whoever compiles the whole sees all of it. A call that cannot be taken apart (subclasses
around it, attributes of its graph, gradients that are to be differentiated) stays one.
"""

from __future__ import annotations

import operator

from ..graph import Graph
from ..graph import Node as GraphNode
from ..joint.history import CompiledFunctionBackward
from .lift import NodeCall, slots_of


def inline(graph: Graph) -> None:
    """Put backward graphs in the places of their calls."""
    for node in [n for n in graph.nodes if can_inline(n)]:
        with graph.inserting_before(node):
            results = graph.create_node("call_function", gathered, (body(graph, node),), {}, name="results")
        node.replace_all_uses_with(results)
        graph.erase_node(node)


def can_inline(node: GraphNode) -> bool:
    """Whether a node is a call that the graph behind it can stand for."""
    call = node.target
    if not isinstance(call, NodeCall) or call.cls is not CompiledFunctionBackward or "primals" in call.template:
        return False
    compiled = call.template["compiled"]
    module = compiled.backward_module
    if module is None or compiled.joint.wrapping is not None or compiled.joint.backward_error is not None:
        return False
    return all(n.op in ("placeholder", "call_function", "output") for n in module.graph.nodes)


def body(graph: Graph, node: GraphNode) -> tuple:
    """The backward graph of one call, copied before it: its results."""
    call, (grads, values) = node.target, node.args
    compiled = call.template["compiled"]
    absent = tuple([k for k, n in enumerate(compiled.joint.differentiable) if grads[n] is None])
    fewer = compiled.without(absent) if absent else None
    find = Tangents(call, fewer is not None)
    tangents = graph.create_node("call_function", find, (grads, values), {}, name="tangents")
    slots = {id(slot): value for slot, value in zip(slots_of(list(call.template.values())), values, strict=True)}
    given = [slots.get(id(entry), entry) for entry in call.template["saved"]]
    inner = (fewer or compiled).backward_module.graph
    places = [n for n in inner.nodes if n.op == "placeholder"]
    given += [
        graph.create_node("call_function", operator.getitem, (tangents, k), {}) for k in range(len(places) - len(given))
    ]
    known = dict(zip(places, given, strict=True))
    return tuple(graph.graph_copy(inner, known))


class Tangents:
    """The gradients that arrive at a call, as the graph behind it takes them: all, or those that there are."""

    def __init__(self, call: NodeCall, given_only: bool):
        self.call, self.given_only = call, given_only
        self.__name__ = self.__qualname__ = "tangents"
        self.__module__ = "backward"

    def __call__(self, grads: list, values: list) -> list:
        node = self.call.node(iter(values))
        assert isinstance(node, CompiledFunctionBackward)  # `can_inline` takes no other
        return node.tangents(list(grads), self.given_only)


def gathered(results: tuple) -> tuple:
    """Results of a graph, as the call it stands for gives them."""
    return tuple(results)
