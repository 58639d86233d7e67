"""The two ends of a graph, and what compilers ask of a whole one.

In: a graph. Out: its inputs, or what it gives, as flat lists of nodes. What always holds: the graph is as it was.
"""

from __future__ import annotations

from ...core import tree
from ..graph import Graph
from ..node import Node
from .cse import fx_graph_cse


def get_placeholders(graph: Graph) -> list[Node]:
    """The inputs of a graph."""
    return list(graph.find_nodes(op="placeholder"))


def get_outputs(graph: Graph) -> list:
    """What a graph gives, without the containers around it."""
    return tree.tree_leaves(graph.output_node().args[0])


__all__ = ["fx_graph_cse", "get_outputs", "get_placeholders"]
