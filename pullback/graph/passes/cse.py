"""Common subexpressions, computed once.

In: a graph whose calls are functional. Out: a graph in which calls with equal targets and equal arguments are one call.
What always holds: calls that are random, that write to their arguments or have other effects, and calls that make
uninitialised memory, are never merged; `1`, `1.0` and `True` are different arguments.
"""

from __future__ import annotations

from typing import Any

from ..graph import Graph
from ..module import GraphModule
from ..node import Node, is_impure_call
from .pass_manager import PassBase, PassResult

_UNINITIALISED = frozenset(("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"))


def get_CSE_banned_ops() -> set:
    """Operators that the pass never merges beyond those it knows to be random or to write: none."""
    return set()


def fx_graph_cse(fx_g: Graph) -> Graph:
    """A copy of the graph with common subexpressions merged."""
    return merge_common(fx_g, set())[0]


def merge_common(graph: Graph, banned: set) -> tuple[Graph, bool]:
    """(a copy of the graph with common subexpressions merged, whether there were any)."""
    result = Graph(tracer_cls=graph._tracer_cls)
    result._codegen = graph._codegen
    copies: dict[Node, Node] = {}
    known: dict[Any, Node] = {}
    merged = False
    for node in graph.nodes:
        key = _key(node, copies) if is_mergeable(node, banned) else None
        if key is not None and key in known:
            copies[node] = known[key]
            merged = True
            continue
        copies[node] = result.node_copy(node, copies.__getitem__)
        if key is not None:
            known[key] = copies[node]
    return result, merged


def is_mergeable(node: Node, banned: set = frozenset()) -> bool:  # type: ignore[assignment]
    """Whether a second call with the same arguments may be replaced by the result of the first."""
    target = node.target
    if node.op != "call_function" or target in banned or getattr(target, "overloadpacket", None) in banned:
        return False
    if is_impure_call(target, node.kwargs, impure_random=True):
        return False
    name = getattr(getattr(target, "overloadpacket", target), "__name__", "")
    return name not in _UNINITIALISED and "rand" not in name


def _key(node: Node, copies: dict[Node, Node]) -> Any:
    """Equal for calls that give the same; None for arguments that cannot be compared."""
    key = (node.target, _comparable(node.args, copies), _comparable(node.kwargs, copies))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _comparable(a: Any, copies: dict[Node, Node]) -> Any:
    if isinstance(a, Node):
        return copies[a]
    if isinstance(a, (list, tuple)):
        return type(a), tuple(_comparable(x, copies) for x in a)
    if isinstance(a, dict):
        return dict, tuple((k, _comparable(v, copies)) for k, v in sorted(a.items(), key=lambda item: str(item[0])))
    if isinstance(a, slice):
        return slice, tuple(_comparable(x, copies) for x in (a.start, a.stop, a.step))
    if isinstance(a, float):
        return float, a.hex()  # 0.0 and -0.0 differ, and a NaN equals itself
    return type(a), a


class CSEPass(PassBase):
    """Common subexpression elimination as a pass."""

    def __init__(self, banned_ops: set | None = None):
        self.banned_ops = banned_ops or set()

    def call(self, graph_module: GraphModule) -> PassResult:
        graph, merged = merge_common(graph_module.graph, self.banned_ops)
        return PassResult(GraphModule(graph_module, graph) if merged else graph_module, merged)
