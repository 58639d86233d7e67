"""Checks that a graph is well formed.

In: a graph. Out: nothing, or an error that names the node. Checked: order, ownership, names, users, the index of
`find_nodes`, and that the targets exist in the module that owns the graph.
"""

from __future__ import annotations

from typing import Any

from ..nn.module import Module
from .node import Node, path_of, typename


def lint(graph: Any) -> None:
    """Raise where a graph is not well formed."""
    names: set[str] = set()
    seen: set[Node] = set()
    for node in graph.nodes:
        if node.graph is not graph:
            raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
        if node not in graph._index.get(graph._index_key(node), ()):
            raise RuntimeError(f"Node '{node}' is not added to the side table")
        for used in node._input_nodes:
            _check_use(graph, node, used, seen)
        seen.add(node)
        if node._name in names:
            raise RuntimeError(f"Node redefined name {node._name}!")
        names.add(node._name)
    if graph.owning_module is not None:
        for node in graph.nodes:
            _check_target(graph.owning_module, node)


def _check_use(graph: Any, node: Node, used: Node, seen: set[Node]) -> None:
    if used.graph is not graph:
        raise RuntimeError(
            f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you are "
            f"copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap values\n{graph}"
        )
    if used not in seen:
        raise RuntimeError(
            f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check that Nodes in the "
            f"graph are topologically ordered\n{graph}"
        )
    if node not in used.users:
        raise RuntimeError(f"Node '{node}' uses '{used}', which does not know it as a user")


def _check_target(owner: Any, node: Node) -> None:
    wanted = "Callable" if node._op == "call_function" else "str"
    if not (callable(node._target) if wanted == "Callable" else isinstance(node._target, str)):
        raise ValueError(
            f"Node {node} target {node._target} has type {typename(node._target)} but a {wanted} is expected"
        )
    if node._op not in ("get_attr", "call_module"):
        return
    parts = path_of(node).split(".")
    value = owner
    for i, part in enumerate(parts):
        value = getattr(value, part, None)
        path = ".".join(parts[:i])
        if value is None:
            raise RuntimeError(f"Node {node} target {node._target} references nonexistent attribute {part} of {path}")
        if node._op == "call_module" and not isinstance(value, Module):
            raise RuntimeError(f"Node {node} target {node._target} {part} of {path} does not reference an nn.Module")
