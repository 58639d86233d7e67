"""Subgraphs that look like a pattern.

In: a pattern (a graph whose placeholders stand for anything) and a graph. Out: the matches, each a map from the pattern's
nodes to the graph's. What always holds: inside a match, only returned nodes are used from outside; replacing a match by
one node would not make a cycle.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from ...core.tensor import Tensor
from ...ops.system.operator import Operator
from ..graph import Graph
from ..node import Node
from .fuse import validate_partition
from .split_module import attribute


@dataclass
class InternalMatch:
    """One place where a pattern was found."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors, dict(self.nodes_map), list(self.placeholder_nodes), list(self.returning_nodes)
        )


class SubgraphMatcher:
    """Finds a pattern in graphs, walking both backwards from what the pattern returns."""

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ):
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if not len(pattern.nodes):
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if not node.users and node.op not in ("output", "placeholder") and not node.is_impure():
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern_placeholder_nodes = pattern.find_nodes(op="placeholder")
        output = pattern.output_node()
        self.pattern_returning_nodes = output.all_input_nodes
        # Nodes that only the output uses: everything else is reached from them.
        sinks = [n for n in output.all_input_nodes if len(n.users) == 1]
        self.pattern_anchors = [output] if match_output else sinks

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """All matches, in the order of the graph."""
        candidates = []
        for anchor in self.pattern_anchors:
            found = [n for n in graph.nodes if self._alike(anchor, n, node_name_match)]
            if found:
                candidates.append((anchor, found))
        matches: list[InternalMatch] = []
        if candidates:
            self._search(candidates, 0, InternalMatch(self.pattern_anchors), matches, node_name_match)
        matches = [m for m in matches if self._is_contained(m.nodes_map) and validate_partition(_computed(m))]
        return _without_overlaps(matches) if self.remove_overlapping_matches else matches

    def _search(self, candidates: list, at: int, match: InternalMatch, out: list, name: str) -> None:
        """Match the anchors from `at` on, in every way that fits what is matched already."""
        if at == len(candidates):
            if not all(p in match.nodes_map for p in self.pattern_placeholder_nodes):
                return
            match.placeholder_nodes = [match.nodes_map[p] for p in self.pattern_placeholder_nodes]
            match.returning_nodes = [match.nodes_map[p] for p in self.pattern_returning_nodes]
            out.append(match)
            return
        anchor, nodes = candidates[at]
        for node in nodes:
            trial = copy.copy(match)
            if self._match_nodes(anchor, node, trial, name):
                self._search(candidates, at + 1, trial, out, name)

    # ---- one node
    def _alike(self, p: Node, g: Node, name: str = "") -> bool:
        """Whether two nodes do the same, arguments aside."""
        if not self.match_placeholder and p.op == "placeholder":
            return True
        if name and name in g.name:
            return True
        if p.op != g.op:
            return False
        if p.op in ("placeholder", "output"):
            return True
        return self._alike_attributes(p, g) if p.op == "get_attr" else p.target == g.target

    def _alike_attributes(self, p: Node, g: Node) -> bool:
        ours, theirs = attribute(p.graph.owning_module, p.target), attribute(g.graph.owning_module, g.target)
        if type(ours) is not type(theirs):
            return False
        if not isinstance(ours, Tensor):
            raise RuntimeError(f"Unsupported type {ours} when matching attributes")
        return True

    def _match_nodes(self, p: Node, g: Node, match: InternalMatch, name: str = "") -> bool:
        if p in match.nodes_map:
            return match.nodes_map[p] is g
        if any(g is seen for seen in match.nodes_map.values()) or not self._alike(p, g, name):
            return False
        match.nodes_map[p] = g
        if p.op == "placeholder":
            return True
        pair = _call_arguments(p, g)
        return pair is not None and self._match_args(*pair, match)

    def _match_args(self, ours: Any, theirs: Any, match: InternalMatch) -> bool:
        return len(ours) == len(theirs) and all(self._match_arg(a, b, match) for a, b in zip(ours, theirs))

    def _match_arg(self, a: Any, b: Any, match: InternalMatch) -> bool:
        if isinstance(a, Node) and isinstance(b, Node):
            return self._match_nodes(a, b, match)
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            return self._match_args(a, b, match)
        if isinstance(a, Node):
            if a.op != "placeholder":
                return self.ignore_literals
            known = match.nodes_map.setdefault(a, b)
            return known is b or not isinstance(known, Node) and known == b
        return not isinstance(b, Node) and type(a) is type(b) and a == b or self.ignore_literals

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether what the match computes is used outside of it only where the pattern returns it."""
        inside = {g: p for p, g in nodes_map.items() if p.op != "placeholder"}
        return all(
            p in self.pattern_returning_nodes or all(user in inside for user in g.users) for g, p in inside.items()
        )


def _call_arguments(p: Node, g: Node) -> tuple[list, list] | None:
    """The arguments of two calls in comparable order; operators are compared with their defaults filled in."""
    if len(p.args) == len(g.args) and list(p.kwargs) == list(g.kwargs):
        return [*p.args, *p.kwargs.values()], [*g.args, *g.kwargs.values()]
    if p.op == "call_function" and isinstance(p.target, Operator):
        fill = lambda n: list(p.target.bind(tuple(n.args), dict(n.kwargs)))
        return fill(p), fill(g)
    return None


def _computed(match: InternalMatch) -> list[Node]:
    return [g for p, g in match.nodes_map.items() if p.op not in ("placeholder", "output")]


def _without_overlaps(matches: list[InternalMatch]) -> list[InternalMatch]:
    """The first of each group of matches that share nodes."""
    taken: set[Node] = set()
    kept = []
    for match in matches:
        nodes = _computed(match)
        if taken.isdisjoint(nodes):
            kept.append(match)
            taken.update(nodes)
    return kept


__all__ = ["SubgraphMatcher", "InternalMatch"]
