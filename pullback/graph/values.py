"""Values in the place of nodes.

In: the frozen arguments of a node and the values computed so far. Out: the same structure of plain lists, tuples and
dicts, ready to be passed to a call. What always holds: nothing frozen gets out, so calls may do with it what they like.
"""

from __future__ import annotations

from typing import Any

from .arguments import ATOMS
from .node import Node


class MissingValue(LookupError):
    """A node that has no value yet."""

    def __init__(self, node: Node):
        super().__init__(node)
        self.node = node


def fetch(a: Any, values: dict[Node, Any]) -> Any:
    """`a` with each node replaced by its value."""
    cls = a.__class__
    if cls is Node:
        try:
            return values[a]
        except KeyError:
            raise MissingValue(a) from None
    if cls in ATOMS:
        return a
    if cls is tuple:
        return tuple([fetch(x, values) for x in a])
    if isinstance(a, list):
        return [fetch(x, values) for x in a]
    if isinstance(a, dict):
        return {k: fetch(v, values) for k, v in a.items()}
    if cls is slice:
        return slice(fetch(a.start, values), fetch(a.stop, values), fetch(a.step, values))
    if isinstance(a, tuple):
        result = [fetch(x, values) for x in a]
        return cls(*result) if hasattr(a, "_fields") else tuple(result)
    return a
