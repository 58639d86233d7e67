"""Which node of which graph a node was made from, over several passes.

In: a node and the name of the pass that makes another from it. Out: a record that outlives the old graph. What always
holds: the record keeps names and numbers, never the node.
"""

from __future__ import annotations

from enum import Enum
from typing import Any


class NodeSourceAction(Enum):
    """What a pass did with the node."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """One step of a node's history, and the steps before it."""

    def __init__(self, node: Any, pass_name: str = "", action: NodeSourceAction | list[NodeSourceAction] | None = None):
        self.pass_name = pass_name
        self.action = [] if action is None else list(action) if isinstance(action, list) else [action]
        self.name = node.name if node is not None else ""
        self.target = str(node.target) if node is not None else ""
        self.graph_id = id(node.graph) if node is not None else -1
        self.from_node: list[NodeSource] = list(node.meta.get("from_node", ())) if node is not None else []

    def _actions(self) -> str:
        return "+".join(a.name.lower() for a in self.action)

    def __repr__(self) -> str:
        return self.print_readable()

    def print_readable(self, indent: int = 0) -> str:
        """The history, indented step by step."""
        if indent > 9:
            return ""
        head = f"{' ' * (indent * 4)}(name={self.name}, pass_name={self.pass_name}, action={self._actions()}, graph_id={self.graph_id})\n"
        return head + "".join(source.print_readable(indent + 1) for source in self.from_node)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._actions(),
            "from_node": [source.to_dict() for source in self.from_node],
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.target, self.graph_id, self.pass_name))
