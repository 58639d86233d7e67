"""Nested Python containers as flat lists and back (optree, with None as a leaf)."""

from __future__ import annotations

from .lazy import lazy

optree = lazy("optree")


def tree_flatten(tree):
    """(leaves, structure); tuples, lists, dicts, named tuples and ordered dicts are inner nodes."""
    leaves, spec = optree.tree_flatten(tree, none_is_leaf=True)
    return list(leaves), spec


def tree_unflatten(leaves, spec):
    return optree.tree_unflatten(spec, leaves)


def tree_map(function, tree, *rest):
    return optree.tree_map(function, tree, *rest, none_is_leaf=True)


def tree_leaves(tree) -> list:
    return optree.tree_leaves(tree, none_is_leaf=True)


def tree_map_only(kind, function, tree):
    """`tree_map` over the leaves of one type (or of several); others stay."""
    return tree_map(lambda leaf: function(leaf) if isinstance(leaf, kind) else leaf, tree)
