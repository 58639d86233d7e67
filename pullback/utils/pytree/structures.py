"""Structures: what is left of a value when its leaves are taken out.

In: the type, the context and the children of a node. Out: a `TreeSpec`, which makes values again from leaves.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any

from .registry import STANDARD_DICT_TYPES, SUPPORTED_NODES, Context, PyTree, _node_type


class TreeSpec:
    """The structure of a value: its type, its context, and the structures of its children."""

    __slots__ = ("type", "_context", "_children", "num_nodes", "num_leaves", "num_children")

    def __init__(self, type: Any, context: Context = None, children_specs: list[TreeSpec] | None = None):
        self.type, self._context, self._children = type, context, list(children_specs or ())
        self.num_children = len(self._children)
        self.num_nodes = 1 + sum(c.num_nodes for c in self._children)
        self.num_leaves = sum(c.num_leaves for c in self._children)

    @property
    def context(self) -> Context:
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        return self._children

    def children(self) -> list[TreeSpec]:
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        return self._children[index]

    def is_leaf(self) -> bool:
        return False

    def unflatten(self, leaves: Iterable) -> PyTree:
        """The value with this structure and these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds "
                f"{self.num_leaves} items ({self})."
            )
        return self._fill(iter(leaves))

    def _fill(self, leaves) -> PyTree:
        return SUPPORTED_NODES[self.type].unflatten_fn([c._fill(leaves) for c in self._children], self._context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The parts of a value that stand where this structure has leaves."""
        found: list[PyTree] = []
        self._collect(tree, found)
        return found

    def _collect(self, tree: PyTree, found: list) -> None:
        kind = _node_type(tree)
        both_dicts = self.type in STANDARD_DICT_TYPES and kind in STANDARD_DICT_TYPES
        if kind is None or (kind is not self.type and not both_dicts):
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        if both_dicts:
            expected = self._context[1] if self.type is defaultdict else self._context
            if set(tree) != set(expected):
                raise ValueError(f"Node keys mismatch; expected keys {list(expected)}, but got {list(tree)}.")
            children = [tree[key] for key in expected]
        else:
            children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
            children = list(children)
            if len(children) != self.num_children:
                raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
            if kind is not deque and context != self._context:
                raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        for child, spec in zip(children, self._children, strict=True):
            spec._collect(child, found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self._context, self._children) == (other.type, other._context, other._children)

    def __hash__(self) -> int:
        context = self._context
        if self.type is defaultdict:
            context = (context[0], tuple(context[1]))
        elif self.type in (dict, OrderedDict):
            context = tuple(context)
        return hash((self.type, repr(context), tuple(map(hash, self._children))))

    def __repr__(self, indent: int = 0) -> str:
        name = getattr(self.type, "__name__", str(self.type))
        if not self._children:
            return f"TreeSpec({name}, {self._context}, [])"
        inner = indent + 2
        children = f",\n{' ' * inner}".join(c.__repr__(inner) for c in self._children)
        return f"TreeSpec({name}, {self._context}, [{children}])"

    __str__ = __repr__


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])
        self.num_leaves = 1

    def is_leaf(self) -> bool:
        return True

    def _fill(self, leaves) -> PyTree:
        return next(leaves)

    def _collect(self, tree: PyTree, found: list) -> None:
        found.append(tree)

    def __repr__(self, indent: int = 0) -> str:
        return "*"

    __str__ = __repr__


PyTreeSpec = TreeSpec
_LEAF_SPEC = LeafSpec()


def treespec_leaf() -> LeafSpec:
    return LeafSpec()


def treespec_tuple(iterable: Iterable[TreeSpec] = ()) -> TreeSpec:
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping: Mapping | Iterable = (), **kwargs: TreeSpec) -> TreeSpec:
    specs = dict(mapping, **kwargs)
    return TreeSpec(dict, list(specs), list(specs.values()))


def treespec_pprint(treespec: TreeSpec) -> str:
    """A structure with a star for each leaf, as Python would print the value."""

    class Star:
        def __repr__(self) -> str:
            return "*"

    return repr(treespec.unflatten([Star() for _ in range(treespec.num_leaves)]))
