"""Nodes in an order that can run.

In: nodes, or a graph module, in any order. Out: each node after what it uses, otherwise as they were. What always holds:
a cycle raises.
"""

from __future__ import annotations

import heapq

from ..module import GraphModule
from ..node import Node


def topo_sort(nodes: list[Node]) -> list[Node]:
    """The nodes, each after those of its inputs that are among them; otherwise in the order given."""
    place = {node: i for i, node in enumerate(nodes)}
    missing = {node: sum(1 for used in node._input_nodes if used in place) for node in nodes}
    ready = [place[node] for node in nodes if not missing[node]]
    heapq.heapify(ready)
    done: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        done.append(node)
        for user in node.users:
            if user in missing:
                missing[user] -= 1
                if not missing[user]:
                    heapq.heappush(ready, place[user])
    if len(done) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return done


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Bring the nodes of a module into an order that can run, moving as few as possible."""
    root = gm.graph._root
    for node in topo_sort(list(gm.graph.nodes)):
        root.prepend(node)
    return gm


legalize_graph = stable_topological_sort
