"""The order in which the engine would run a graph, found without running it.

In: the roots of a backward, and what it is wanted for. Out: the nodes in the engine's order. Which node is ready next
depends on the edges alone, never on gradients, so the order is a fact of the graph.
"""

from __future__ import annotations

from heapq import heappop, heappush

from ..autograd.dependencies import dependencies
from ..core.node import AccumulateGrad, Node


def schedule(roots: list, needed: dict | None) -> list[Node]:
    """The nodes that a backward from these roots reaches, in the order in which the engine takes them up."""
    waiting = {node: record[0] for node, record in dependencies(roots, needed).items()}
    heap: list[int] = []
    ready: dict[int, Node] = {}
    sinks: list[Node] = []

    def enqueue(node: Node) -> None:
        if node.__class__ is AccumulateGrad:
            sinks.append(node)
        else:
            ready[-node.sequence] = node
            heappush(heap, -node.sequence)

    for root in dict.fromkeys(e[0] for e in roots):
        if not waiting[root]:
            enqueue(root)
    order = []
    while heap or sinks:
        node = sinks.pop() if sinks else ready.pop(heappop(heap))
        order.append(node)
        if needed is not None and not needed.get(node):
            continue  # only what arrives there is wanted
        for edge in node.edges:
            if edge is not None and edge[0] in waiting:
                waiting[edge[0]] -= 1
                if not waiting[edge[0]]:
                    enqueue(edge[0])
    return order
