"""Values of nodes that compute sizes.

In: a graph whose tensors have their fakes on them. Out: the same graph, with symbolic numbers on the nodes that make
them. What always holds: nothing is computed but sizes.
"""

from __future__ import annotations

from ..capture.fake.mode import FakeTensorMode
from ..graph import Graph, Node
from ..graph.assertions import _assert


def fill_numbers(graph: Graph, mode: FakeTensorMode) -> None:
    """Give nodes without a value theirs, where all that they take have one."""
    with mode:
        for node in graph.nodes:
            if node.op != "call_function" or "val" in node.meta or node.target is _assert or node.kwargs:
                continue
            if node.args and all(
                "val" in a.meta if isinstance(a, Node) else isinstance(a, (int, float)) for a in node.args
            ):
                node.meta["val"] = node.target(*[a.meta["val"] if isinstance(a, Node) else a for a in node.args])
