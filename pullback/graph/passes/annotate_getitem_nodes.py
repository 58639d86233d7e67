"""Types of items, by the types of what they are items of.

In: a graph in which some nodes have types. Out: the same graph, in which the items of typed tuples, lists and named tuples have types
too. What always holds: a node whose sequence has no type, or a type that does not say, is as it was.
"""

from __future__ import annotations

import operator
import typing
from typing import Any

from ..graph import Graph


def annotate_getitem_nodes(graph: Graph) -> None:
    """Give `getitem` nodes the types that their sequences' types say."""
    for node in graph.nodes:
        if node.target is operator.getitem and node.type is None:
            sequence, index = node.args
            found = _item_type(getattr(sequence, "type", None), index)
            if found is not None:
                node.type = found


def _item_type(kind: Any, index: Any) -> Any:
    """The type of an item of a sequence of a type; None where that does not say."""
    fields = getattr(kind, "_fields", None)
    if fields is not None:
        parts: tuple = tuple(typing.get_type_hints(kind).get(name) for name in fields)
    elif typing.get_origin(kind) is list:
        return typing.get_args(kind)[0]
    elif typing.get_origin(kind) is tuple:
        parts = typing.get_args(kind)
        if len(parts) == 2 and parts[1] is Ellipsis:
            return parts[0]
    else:
        return None
    return parts[index] if isinstance(index, int) and -len(parts) <= index < len(parts) else None


__all__ = ["annotate_getitem_nodes"]
