"""The arguments of a node: nested tuples, lists, dicts and slices with nodes at some leaves.

In: such a structure. Out: the same structure with lists and dicts frozen (`freeze`), or with its leaves replaced
(`map_arg` for nodes, `map_aggregate` for all). What always holds: named tuples keep their type, and containers that come
out are immutable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .immutable import immutable_dict, immutable_list

# Types that hold no node; extended by `node` with dtype, device, ... so that freezing does not look at them twice.
ATOMS: set[type] = {int, float, bool, str, type(None), complex, bytes, type(...)}


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Apply `fn` to every leaf of an argument structure."""
    cls = a.__class__
    if cls in ATOMS:
        return fn(a)
    if cls is tuple:
        return tuple([map_aggregate(x, fn) for x in a])
    if isinstance(a, tuple):
        result = [map_aggregate(x, fn) for x in a]
        return cls(*result) if hasattr(a, "_fields") else tuple(result)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict([(k, map_aggregate(v, fn)) for k, v in a.items()])
    if cls is slice:
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def freeze(a: Any, inputs: dict, node_class: type) -> Any:
    """The same structure, immutable; the nodes met on the way are added to `inputs`, in order."""
    cls = a.__class__
    if cls is node_class:
        inputs[a] = None
        return a
    if cls in ATOMS:
        return a
    if cls is tuple:
        return tuple([freeze(x, inputs, node_class) for x in a])
    if cls is list or cls is immutable_list:
        return immutable_list([freeze(x, inputs, node_class) for x in a])
    return _freeze_rare(a, inputs, node_class)


def _freeze_rare(a: Any, inputs: dict, node_class: type) -> Any:
    if isinstance(a, dict):
        return immutable_dict([(k, freeze(v, inputs, node_class)) for k, v in a.items()])
    if isinstance(a, slice):
        return slice(*(freeze(x, inputs, node_class) for x in (a.start, a.stop, a.step)))
    if isinstance(a, node_class):
        inputs[a] = None
        return a
    if isinstance(a, tuple):
        result = [freeze(x, inputs, node_class) for x in a]
        return type(a)(*result) if hasattr(a, "_fields") else tuple(result)
    if isinstance(a, list):
        return immutable_list([freeze(x, inputs, node_class) for x in a])
    return a


def replace_nodes(a: Any, node_class: type, fn: Callable[[Any], Any]) -> Any:
    """Apply `fn` to every node of an argument structure."""
    cls = a.__class__
    if cls is node_class:
        return fn(a)
    if cls in ATOMS:
        return a
    if cls is tuple:
        return tuple([replace_nodes(x, node_class, fn) for x in a])
    return map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, node_class) else leaf)
