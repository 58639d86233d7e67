"""Types on traced values.

In: a value and a type. Out: the value; where it is a proxy, its node has the type. What always holds: a type is never
changed once it is set.
"""

from __future__ import annotations

from typing import Any

from .proxy import Proxy


def annotate(val: Any, type: Any) -> Any:
    """Give the node of a traced value a type."""
    if not isinstance(val, Proxy):
        return val
    if val.node.type is not None:
        raise RuntimeError(
            f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and new type is {type}. "
            "This could happen if you tried to annotate a function parameter value (in which case you should use the type "
            "slot on the function signature) or you called annotate on the same value twice"
        )
    val.node.type = type
    return val
