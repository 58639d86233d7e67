"""Nested Python containers as flat lists and back (optree, with None as a leaf)."""

from __future__ import annotations

from .lazy import lazy

optree = lazy("optree")
tuple_types: list[type] = []  # tuples with named fields that are inner nodes too; known to optree from the first use on


def _know_tuples() -> None:
    while tuple_types:
        kind = tuple_types.pop()
        optree.register_pytree_node(
            kind, lambda t: (tuple(t), None), lambda _, values, kind=kind: kind(values), namespace="pullback"
        )


def tree_flatten(tree):
    """(leaves, structure); tuples, lists, dicts, named tuples and ordered dicts are inner nodes."""
    _know_tuples()
    leaves, spec = optree.tree_flatten(tree, none_is_leaf=True, namespace="pullback")
    return list(leaves), spec


def tree_unflatten(leaves, spec):
    return optree.tree_unflatten(spec, leaves)


def parts_of(tree) -> tuple:
    """(what is directly inside, structure of that one level); (None, None) of a leaf."""
    _know_tuples()
    parts, spec = optree.tree_flatten(tree, is_leaf=lambda x: x is not tree, none_is_leaf=True, namespace="pullback")
    return (None, None) if spec.is_leaf() else (list(parts), spec)


def is_flat_tuple(spec) -> bool:
    """Whether a structure is one tuple of leaves."""
    return spec.type is tuple and spec.num_nodes == spec.num_leaves + 1


def tree_map(function, tree, *rest):
    _know_tuples()
    return optree.tree_map(function, tree, *rest, none_is_leaf=True, namespace="pullback")


def tree_leaves(tree) -> list:
    _know_tuples()
    return optree.tree_leaves(tree, none_is_leaf=True, namespace="pullback")


def tree_map_only(kind, function, tree):
    """`tree_map` over the leaves of one type (or of several); others stay."""
    return tree_map(lambda leaf: function(leaf) if isinstance(leaf, kind) else leaf, tree)


BUILT_IN = frozenset({tuple, list, dict})  # what optree takes apart without being told


def register(cls: type, flatten, unflatten) -> None:
    """Make a class an inner node everywhere: `flatten(x) -> (children, context)`, `unflatten(children, context) -> x`."""
    optree.register_pytree_node(
        cls,
        lambda value: tuple(flatten(value)),
        lambda context, children: unflatten(list(children), context),
        namespace="pullback",
    )


def deregister(cls: type) -> None:
    optree.unregister_pytree_node(cls, namespace="pullback")


def is_spec(value) -> bool:
    """Whether a value is a structure that `tree_flatten` gave."""
    return isinstance(value, optree.PyTreeSpec)
