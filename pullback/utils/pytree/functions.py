"""Functions over nested values: flattening, mapping, asking, and the same with the path to each leaf.

In: any Python value. Out: its leaves and a `TreeSpec`, or the value with other leaves. What always holds:
`tree_unflatten(*tree_flatten(x))` is like `x`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from ...core import tree as core_tree
from .registry import SUPPORTED_NODES, PyTree, _node_type
from .structures import _LEAF_SPEC, TreeSpec


def _flatten(tree: PyTree, leaves: list, is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    kind = None if is_leaf is not None and is_leaf(tree) else _node_type(tree)
    if kind is None:
        leaves.append(tree)
        return _LEAF_SPEC
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list, TreeSpec]:
    """The leaves of a value, in order, and its structure."""
    leaves: list = []
    return leaves, _flatten(tree, leaves, is_leaf)


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> PyTree:
    """The value with a structure and leaves."""
    if isinstance(treespec, TreeSpec):
        return treespec.unflatten(leaves)
    if core_tree.is_spec(treespec):
        return core_tree.tree_unflatten(leaves, treespec)
    raise TypeError(
        f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item of type {type(treespec)}."
    )


def tree_iter(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None):
    yield from tree_flatten(tree, is_leaf)[0]


def tree_leaves(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> list:
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    """A value with `func` applied to each leaf (and to what stands in the same place of `rests`)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    """`tree_map` for what `func` does: the value itself is returned."""
    leaves, spec = tree_flatten(tree, is_leaf)
    deque(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)), maxlen=0)
    return tree


def map_only(kinds, /) -> Callable:
    """A decorator: the function is applied to values of some types, or where a predicate holds; others stay."""
    test = kinds if callable(kinds) and not isinstance(kinds, type) else lambda x: isinstance(x, kinds)

    def decorate(func):
        return lambda x: func(x) if test(x) else x

    return decorate


def tree_map_only(kinds, /, func: Callable, tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    return tree_map(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_map_only_(kinds, /, func: Callable, tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    return tree_map_(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf=None) -> bool:
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf=None) -> bool:
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(kinds, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf=None) -> bool:
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, kinds))


def tree_any_only(kinds, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf=None) -> bool:
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, kinds))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list:
    """The leaves of a call's arguments."""
    leaves: list = []
    for value in (*args, *kwargs.values()):
        _flatten(value, leaves, None)
    return leaves


def _paths(path: tuple, tree: PyTree, is_leaf) -> Iterable[tuple[tuple, Any]]:
    kind = None if is_leaf is not None and is_leaf(tree) else _node_type(tree)
    if kind is None:
        yield path, tree
        return
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in with_keys(tree)[0]:
        yield from _paths((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf=None) -> list[tuple[tuple, Any]]:
    return list(_paths((), tree, is_leaf))


def tree_flatten_with_path(tree: PyTree, is_leaf=None) -> tuple[list[tuple[tuple, Any]], TreeSpec]:
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable, tree: PyTree, *rests: PyTree, is_leaf=None) -> PyTree:
    """`tree_map` where `func` gets the path of each leaf first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = list(zip(*pairs)) or [(), ()]
    return spec.unflatten(map(func, *columns, *(spec.flatten_up_to(rest) for rest in rests)))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf=None) -> list | None:
    """One value for each leaf of a structure, where a value may stand for a whole part of it; None if it does not fit."""
    kind = None if is_leaf is not None and is_leaf(tree) else _node_type(tree)
    if kind is None:
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or kind is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    children = list(children)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found: list = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        flat = _broadcast_to_and_flatten(child, spec, is_leaf)
        if flat is None:
            return None
        found += flat
    return found
