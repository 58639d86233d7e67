"""Which nodes a backward runs, and for how many gradients each waits.

In: the roots of a backward, and what it is wanted for. Out: a record for each node that can run. A node that stands for many
calls (`branches`) leads from each of its outputs to those edges only to which the calls themselves would have led.
"""

from __future__ import annotations

from ..core.node import Node

FIRST = 3  # where gradients start in a record


class branching:
    """Whether there ever was a node with branches: until then nobody looks for them."""

    exists = False


def dependencies(roots: list, needed: dict | None) -> dict:
    """A record (see `Walk`) for every node that can run: how many gradients it waits for, room for them."""
    records: dict = {}
    stack = []
    for root, _ in roots:
        if root not in records:
            outputs = root.outputs
            records[root] = [0, outputs, 0, *[None] * len(outputs)]
            stack.append(root)
    while stack:
        node = stack.pop()
        if needed is not None and not needed.get(node):
            continue
        for edge in node.edges:
            if edge is not None:
                child = edge[0]
                record = records.get(child)
                if record is not None:
                    record[0] += 1
                elif needed is None or child in needed:
                    outputs = child.outputs
                    records[child] = (
                        [1, outputs, 0, None] if len(outputs) == 1 else [1, outputs, 0, *[None] * len(outputs)]
                    )
                    stack.append(child)
    if branching.exists and any(node.branches is not None for node in records):
        return _by_branches(roots, needed, records)
    return records


def _by_branches(roots: list, needed: dict | None, records: dict) -> dict:
    """The records of those nodes alone to which an output that has a gradient leads."""
    runs = (lambda node: True) if needed is None else needed.get
    reached: dict[Node, set] = {}  # node -> the edges that are followed
    seen: set = set()
    stack = list(roots)
    while stack:
        node, number = stack.pop()
        if node not in records or (node, number) in seen:
            continue
        seen.add((node, number))
        followed = reached.setdefault(node, set())
        if not runs(node):
            continue
        branches = node.branches
        fresh = set(range(len(node.edges)) if branches is None else branches[number]) - followed
        followed |= fresh
        stack += [node.edges[i] for i in fresh if node.edges[i] is not None]
    result = {node: record for node, record in records.items() if node in reached}
    for record in result.values():
        record[0] = 0
    for node in result:  # a node that runs tells all its neighbours, those that it has nothing for too
        if runs(node):
            for edge in node.edges:
                if edge is not None and edge[0] in result:
                    result[edge[0]][0] += 1
    return result
