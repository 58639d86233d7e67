"""Subgraphs replaced by others.

In: a graph module, a pattern and its replacement (functions, graphs or graph modules of the same inputs and outputs).
Out: the module with every match replaced, and a list of what was replaced. What always holds: the graph is well formed
after, and attributes that the replacement refers to are there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...nn.module import Module
from ..graph import Graph, has_attribute
from ..module import GraphModule, assign_attribute
from ..node import Node
from ..tracer import symbolic_trace
from .matcher import InternalMatch, SubgraphMatcher
from .split_module import attribute

Pattern = Callable[..., Any] | Graph | GraphModule
Filter = Callable[[InternalMatch, Graph, Graph], bool]


class Match(NamedTuple):
    """Where a pattern was."""

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclass
class ReplacedPatterns:
    """Where a pattern was, and the nodes that are there now."""

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Pattern, replacement: Pattern) -> list[Match]:
    """Replace each match of a pattern that does not overlap an earlier one."""
    return [Match(r.anchor, r.nodes_map) for r in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Pattern,
    replacement: Pattern | None = None,
    match_filters: list[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """`replace_pattern` for the matches that all filters accept; the replacement may be made for each match."""
    if replacement_callback is None:
        if replacement is None:
            raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
        common = _as_graph(replacement)
        replacement_callback = lambda match, graph, wanted: common
    graph, wanted = gm.graph, _as_graph(pattern)
    matcher = SubgraphMatcher(wanted, ignore_literals=ignore_literals)
    matches = [
        m
        for m in matcher.match(graph, node_name_match=node_name_match)
        if all(accepts(m, graph, wanted) for accepts in match_filters or ())
    ]
    changed: dict[Node, Node] = {}
    done = []
    for match in matches:
        done.append(_replace(graph, wanted, match, replacement_callback(match, graph, wanted), changed))
    gm.recompile()
    if isinstance(replacement, Module):
        _bring_attributes(gm, replacement)
    return done


def _as_graph(what: Pattern) -> Graph:
    if isinstance(what, GraphModule):
        return what.graph
    return what if isinstance(what, Graph) else symbolic_trace(what).graph


def _replace(
    graph: Graph, pattern: Graph, match: InternalMatch, new: Graph, changed: dict[Node, Node]
) -> ReplacedPatterns:
    """Put a copy of `new` in the place of one match."""
    inputs = new.find_nodes(op="placeholder")
    if len(inputs) != len(match.placeholder_nodes):
        raise AssertionError(f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(inputs)}")
    for p, g in match.nodes_map.items():  # an earlier replacement may have taken an input's place
        if isinstance(g, Node) and g in changed and p.op == "placeholder":
            match.nodes_map[p] = changed[g]
    given = [changed.get(g, g) if isinstance(g, Node) else g for g in match.placeholder_nodes]
    match.placeholder_nodes = given
    values: dict[Node, Any] = dict(zip(inputs, given))
    with graph.inserting_before(_insert_point(match)):
        results = graph.graph_copy(new, values)
    results = (results,) if isinstance(results, Node) else tuple(results)
    if len(results) != len(match.returning_nodes):
        raise AssertionError(f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}")
    for old, result in zip(match.returning_nodes, results):
        old.replace_all_uses_with(result)
        changed[old] = result
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    output = [v for k, v in values.items() if k not in inputs]
    return ReplacedPatterns(match.anchors[0], match.nodes_map, output)


def _insert_point(match: InternalMatch) -> Node:
    """Before the first use of what the match returns; without uses, right after it."""
    users = [user for node in match.returning_nodes for user in node.users]
    return min(users, key=lambda n: n._sort_key) if users else max(match.returning_nodes).next


def _bring_attributes(gm: GraphModule, replacement: Module) -> None:
    """Copy to the module what the nodes of the replacement refer to."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or has_attribute(gm, node.target):
            continue
        if not has_attribute(replacement, node.target):
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, but the '
                "referenced attribute does not exist in the replacement GraphModule"
            )
        assign_attribute(copy.deepcopy(attribute(replacement, node.target)), gm, node.target)
    gm.graph.lint()


__all__ = ["Match", "replace_pattern", "replace_pattern_with_filters", "ReplacedPatterns"]
