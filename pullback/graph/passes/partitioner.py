"""Groups of nodes that a backend can take whole.

In: a graph module and the question which nodes are supported. Out: groups of supported nodes, as large as they can be
without a cycle, and on demand a module in which each is one submodule. What always holds: no group contains an
unsupported node, and fusing all groups leaves a graph that can run.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from ..module import GraphModule
from ..node import Node
from .fuse import fuse_by_partitions
from .operator_support import OperatorSupportBase, get_node_target


class Partition:
    """A group of nodes."""

    def __init__(self, id: int | None = None, nodes: Iterable[Node] | None = None):
        self.id = id
        self.nodes: dict[Node, int | None] = dict.fromkeys(nodes or ())

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        del self.nodes[node]

    def size(self) -> int:
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Grows groups of supported nodes from the end of the graph to its beginning."""

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
    ):
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self._modules = dict(graph_module.named_modules())

    def _is_node_supported(self, node: Node) -> bool:
        if node.op in ("placeholder", "output", "get_attr"):
            return False
        return self.operator_support.is_node_supported(self._modules, node)

    def propose_partitions(self) -> list[Partition]:
        """The groups, numbered from the end of the graph."""
        group: dict[Node, int] = {}
        members: dict[int, list[Node]] = {}
        for i, node in enumerate(reversed(self.graph_module.graph.nodes)):
            if not self._is_node_supported(node):
                continue
            candidates = sorted({group[user] for user in node.users if user in group}) or list(members)
            group[node], members[i] = i, [node]
            for other in candidates:
                if self._can_merge(group, {group[node], other}):
                    self._merge(group, members, group[node], other)
        self._pull_getitems(group, members)
        kept = [sorted(nodes) for nodes in members.values() if self._is_worth_it(nodes)]
        kept.sort(key=lambda nodes: nodes[-1]._sort_key, reverse=True)
        return [Partition(i, nodes) for i, nodes in enumerate(kept)]

    @staticmethod
    def _merge(group: dict[Node, int], members: dict[int, list[Node]], into: int, other: int) -> None:
        for node in members.pop(other):
            group[node] = into
            members[into].append(node)

    @staticmethod
    def _can_merge(group: dict[Node, int], ids: set[int]) -> bool:
        """Whether fusing these groups (all others fused too) leaves no path from them back to them."""
        inside = [node for node, i in group.items() if i in ids]
        by_id: dict[int, list[Node]] = {}
        for node, i in group.items():
            by_id.setdefault(i, []).append(node)
        waiting = [user for node in inside for user in node.users if group.get(user) not in ids]
        seen: set[Node] = set()
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            if group.get(node) in ids:
                return False
            fused = by_id[group[node]] if node in group else [node]
            seen.update(fused)
            waiting.extend(user for member in fused for user in member.users)
        return True

    def _pull_getitems(self, group: dict[Node, int], members: dict[int, list[Node]]) -> None:
        """The items of a call belong to the group of the call, and so do theirs."""
        for node in sorted(group):
            for user in node.users:
                if user.op == "call_function" and user.target is operator.getitem and group.get(user) != group[node]:
                    if user in group:
                        members[group[user]].remove(user)
                    group[user] = group[node]
                    members[group[node]].append(user)

    def _is_worth_it(self, nodes: list[Node]) -> bool:
        """Whether a group computes enough to be one."""
        names = [get_node_target(self._modules, node) for node in nodes if node.target is not operator.getitem]
        computing = [name for name in names if name not in self.non_compute_ops]
        if any(name in self.allowed_single_node_partition_ops for name in computing):
            return True
        return len(computing) >= (1 if self.allows_single_node_partition else 2)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Make a submodule of each group."""
        return fuse_by_partitions(self.graph_module, [p.nodes for p in partitions], prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Drop nodes that compute nothing from the borders of the groups."""
        for partition in partitions:
            changed = True
            while changed:
                idle = [n for n in partition.nodes if self._is_idle_border(n, partition)]
                for node in idle:
                    partition.remove_node(node)
                changed = bool(idle)

    def _is_idle_border(self, node: Node, partition: Partition) -> bool:
        if node.op != "call_function" or get_node_target(self._modules, node) not in self.non_compute_ops:
            return False
        inputs, users = node.all_input_nodes, node.users
        return all(n not in partition.nodes for n in inputs) or all(n not in partition.nodes for n in users)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Find the groups and fuse them."""
        return self.fuse_partitions(self.propose_partitions(), prefix)
