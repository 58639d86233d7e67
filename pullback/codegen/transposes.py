"""Transposes that undo each other, in graphs that run operator by operator: each is a call, and loops need none of them.

What always holds: results are tensors of their own where they were so before; no argument is one, nor is any given twice.
"""

from __future__ import annotations

from typing import TypeGuard

from ..graph.graph import Graph
from ..graph.node import Node
from ..ops.system.operator import find

_transpose = find("t.default")


def untransposed(graph: Graph) -> bool:
    """Read what was transposed twice as it was before, and say whether anything was."""
    found = False
    for node in list(graph.nodes):
        once = node.args[0] if _is_transpose(node) else None
        if not _is_transpose(once) or not _may_stand_for(once.args[0], node):
            continue
        node.replace_all_uses_with(once.args[0])
        graph.erase_node(node)
        if not once.users:
            graph.erase_node(once)
        found = True
    return found


def _is_transpose(value: object) -> TypeGuard[Node]:
    return isinstance(value, Node) and value.op == "call_function" and value.target is _transpose


def _may_stand_for(before: Node, node: Node) -> bool:
    """Whether a node may be left out for the one before it: as a result, only where that is none yet."""
    results = [user for user in node.users if user.op == "output"]
    return not results or before.op == "call_function" and not any(user in before.users for user in results)
