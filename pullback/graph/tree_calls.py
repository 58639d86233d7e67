"""`fx_pytree`: what generated code calls to flatten its arguments.

In: arguments and the structure they had when traced. Out: their leaves. What always holds: another structure raises.
"""

from __future__ import annotations

from typing import Any

from ..core import tree


def tree_flatten_spec(value: Any, spec: Any, exact_structural_match: bool = False) -> list:
    """The leaves of `value`, which must have the structure `spec`; at the top, lists stand for tuples too."""
    value = _as_traced(value, spec)
    leaves, found = tree.tree_flatten(value)
    if found != spec:
        raise TypeError(f"Input pytree structure does not match the one traced: expected {spec}, got {found}")
    return leaves


def _as_traced(value: Any, spec: Any) -> Any:
    """Lists that generated code wrote, as the tuples that the structure has in their place."""
    if spec.type is tuple and isinstance(value, (list, tuple)):
        children = spec.children()
        if len(children) == 2 and len(value) == 2 and children[1].type is dict and isinstance(value[1], dict):
            return (_as_traced(value[0], children[0]), value[1])
        return tuple(value)
    return value
