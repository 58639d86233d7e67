"""A backward graph for results that got no gradient.

In: a graph that is linear in its tangents, and which of them there are none of. Out: the graph of the others. What
depends on absent tangents alone is not computed at all, as in a backward that does not go there: a zero in its place
would make NaN of an infinite derivative, and zeros of gradients that are None. What depends on others too gets zeros,
unless it is a sum.
"""

from __future__ import annotations

from ..core.tensor import Tensor
from ..graph import Graph, GraphModule, Node
from ..ops.system.operator import Operator, find
from .halves import descendants, flatten, is_sequence, is_tangent


def without_tangents(module: GraphModule, absent: tuple[int, ...]) -> GraphModule | None:
    """The module without these tangents, by their numbers; None where it cannot do without them."""
    try:
        return _Without(module, absent).run()
    except _Needed:
        return None


class _Needed(Exception):
    """Something that has no zero, or does more than compute, depends on an absent tangent."""


class _Without:
    def __init__(self, module: GraphModule, absent: tuple[int, ...]):
        self.module, self.graph = module, Graph()
        self.nodes = list(module.graph.nodes)
        tangents = [n for n in self.nodes if is_tangent(n)]
        self.dependent = descendants(self.nodes, tangents)
        self.gone = {tangents[k] for k in absent}
        self.copies: dict[Node, Node] = {}

    def run(self) -> GraphModule:
        for node in self.nodes:
            if node.op == "output":
                out = tuple([self._result(v) for v in flatten(node.args[0])])
                self.graph.output(out).meta = dict(node.meta)
            elif node not in self.gone:
                self._take(node)
        result = GraphModule(self.module, self.graph)
        result.graph.eliminate_dead_code()
        result.recompile()
        result.shape_env = getattr(self.module, "shape_env", None)
        return result

    def _result(self, value):
        if not isinstance(value, Node):
            return value
        return None if value in self.gone else self.copies[value]

    def _take(self, node: Node) -> None:
        """Copy a node, or see that it is gone too."""
        given = [n for n in node.all_input_nodes if n in self.dependent]
        missing = [n for n in given if n in self.gone]
        if missing and node.is_impure():
            raise _Needed
        if missing and len(missing) == len(given):
            if is_sum(node) and len(node.all_input_nodes) > len(given):
                raise _Needed  # a gradient that depends on no tangent: nothing says to which result it belongs
            self.gone.add(node)
            return
        other = rest_of_sum(node, missing)
        if other is not None:
            self.copies[node] = self.copies[other]
            return
        zeros = {n: self._zeros(n) for n in missing}
        self.copies[node] = self.graph.node_copy(node, lambda n: zeros[n] if n in zeros else self.copies[n])

    def _zeros(self, node: Node) -> Node:
        value = node.meta.get("val")
        if is_sequence(node) or not isinstance(value, Tensor) or any(type(s) is not int for s in value.shape):
            raise _Needed
        result = self.graph.call_function(
            find("zeros.default"), (list(value.shape),), {"dtype": value.dtype, "device": value.device}
        )
        result.meta = dict(node.meta)
        return result


def is_sum(node: Node) -> bool:
    return isinstance(node.target, Operator) and node.target.name == "add" and len(node.args) == 2


def rest_of_sum(node: Node, missing: list[Node]) -> Node | None:
    """The one gradient that is left of a sum of two."""
    if not missing or not is_sum(node):
        return None
    other = next((a for a in node.args if a not in missing), None)
    if not isinstance(other, Node) or node.kwargs:
        return None
    a, b = node.meta.get("val"), other.meta.get("val")
    same = isinstance(a, Tensor) and isinstance(b, Tensor) and a.dtype is b.dtype and tuple(a.shape) == tuple(b.shape)
    return other if same else None
