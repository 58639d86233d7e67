"""`fx_pytree`: what generated code calls to flatten its arguments.

In: arguments and the structure they had when traced. Out: their leaves. What always holds: another structure raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import tree

# Classes whose parts are found by the structure that was traced: `flatten(value, spec) -> parts`.
SUPPORTED_NODES: dict[type, Callable[[Any, Any], list]] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[type, Callable[[Any, Any], bool] | None] = {}


def register_pytree_flatten_spec(
    cls: type,
    flatten_fn_spec: Callable[[Any, Any], list],
    flatten_fn_exact_match_spec: Callable[[Any, Any], bool] | None = None,
) -> None:
    """Let `flatten_fn_spec(value, spec)` give the parts of a class's instances, where generated code takes them apart."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(value: Any, spec: Any, exact_structural_match: bool = False) -> list:
    """The leaves of `value`, which must have the structure `spec`; at the top, lists stand for tuples too."""
    value = _as_traced(value, spec)
    leaves, found = tree.tree_flatten(value)
    if found == spec and not (SUPPORTED_NODES and _is_registered(spec)):
        return leaves
    return _leaves(value, spec, exact_structural_match)


def _is_registered(spec: Any) -> bool:
    return spec.type in SUPPORTED_NODES or any(map(_is_registered, spec.children()))


def _leaves(value: Any, spec: Any, exact: bool) -> list:
    """The leaves, part by part: classes that are registered say what theirs are, and the parts of a proxy are read from it."""
    if spec.is_leaf():
        return [value]
    parts, children = _parts(value, spec, exact), spec.children()
    if len(parts) != len(children):
        raise _mismatch(value, spec)
    return [leaf for part, child in zip(parts, children, strict=True) for leaf in _leaves(part, child, exact)]


def _parts(value: Any, spec: Any, exact: bool) -> list:
    if spec.type in SUPPORTED_NODES:
        matches = SUPPORTED_NODES_EXACT_MATCH[spec.type]
        if exact and matches is not None and not matches(value, spec):
            raise _mismatch(value, spec)
        return SUPPORTED_NODES[spec.type](value, spec)
    if getattr(type(value), "is_recorded", False):  # a proxy
        return [value[key] for key in (spec.entries() if spec.type is dict else range(spec.num_children))]
    parts, found = tree.parts_of(value)
    if parts is None or found != spec.one_level():
        raise _mismatch(value, spec)
    return parts


def _mismatch(value: Any, spec: Any) -> TypeError:
    found = tree.tree_flatten(value)[1]
    return TypeError(f"Input pytree structure does not match the one traced: expected {spec}, got {found}")


def _as_traced(value: Any, spec: Any) -> Any:
    """Lists that generated code wrote, as the tuples that the structure has in their place."""
    if spec.type is tuple and isinstance(value, (list, tuple)):
        children = spec.children()
        if len(children) == 2 and len(value) == 2 and children[1].type is dict and isinstance(value[1], dict):
            return (_as_traced(value[0], children[0]), value[1])
        return tuple(value)
    return value
