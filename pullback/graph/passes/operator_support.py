"""Which nodes a backend can take.

In: a node, and the submodules of its graph module. Out: yes or no. What always holds: questions combine (`chain`,
`any_chain`), and a node that nobody knows is not supported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..names import qualified_name, type_repr
from ..node import Node

SupportDict = Mapping[str, Any]


class OperatorSupportBase:
    """The question."""

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        raise NotImplementedError(f"{type(self).__name__} does not define is_node_supported")


class OperatorSupport(OperatorSupportBase):
    """By a table: name of the target -> dtypes of its arguments, or None for any."""

    _support_dict: SupportDict

    def __init__(self, support_dict: SupportDict | None = None):
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        if node.op not in ("call_module", "call_function", "call_method"):
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        wanted = self._support_dict[target]
        if wanted is None:
            return True
        positions, keywords = wanted
        for i, dtypes in enumerate(positions):
            if i < len(node.args) and isinstance(node.args[i], Node) and _dtype(node.args[i]) not in dtypes:
                return False
        for name, dtypes in keywords.items():
            arg = node.kwargs.get(name)
            if isinstance(arg, Node) and _dtype(arg) not in dtypes:
                return False
        return True


def get_node_target(submodules: Mapping[str, Any], node: Node) -> str:
    """The name of what a node calls."""
    if node.op == "call_module":
        return type_repr(type(submodules[node.target]))
    return qualified_name(node.target) if node.op == "call_function" else node.target


def _dtype(node: Node) -> Any:
    meta = node.meta.get("tensor_meta", node.meta.get("val"))
    return getattr(meta, "dtype", None)


def create_op_support(is_node_supported: Callable[[Mapping[str, Any], Node], bool]) -> OperatorSupportBase:
    """A question from a function."""

    class FunctionalOperatorSupport(OperatorSupportBase):
        def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
            return is_node_supported(submodules, node)

    return FunctionalOperatorSupport()


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supported where all say so."""
    return create_op_support(lambda modules, node: all(s.is_node_supported(modules, node) for s in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supported where one says so."""
    return create_op_support(lambda modules, node: any(s.is_node_supported(modules, node) for s in op_support))


class OpSupports:
    """Ready-made questions."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: Any) -> OperatorSupportBase:
        return create_op_support(lambda modules, node: all(_dtype(n) != dtype for n in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        return create_op_support(lambda modules, node: node.name not in disallow_set)


__all__ = [
    "OperatorSupportBase", "OperatorSupport", "create_op_support", "chain", "OpSupports", "any_chain",
]  # fmt: skip
