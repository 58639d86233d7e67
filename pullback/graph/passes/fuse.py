"""Groups of nodes moved into submodules.

In: a graph module and groups of its nodes. Out: the module with each group replaced by one call of a submodule. What
always holds: a group whose fusion would make a cycle is refused; the graph stays in an order that can run.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable

from ..graph import Graph
from ..module import GraphModule
from ..node import Node
from ..proxy import Proxy
from .ordering import stable_topological_sort, topo_sort


def validate_partition(partition: Iterable[Node]) -> bool:
    """Whether nodes can become one: no path leaves the group and comes back."""
    inside = set(partition)
    waiting = [user for node in inside for user in node.users if user not in inside]
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            waiting.extend(user for user in node.users if user not in seen)
    return True


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: list[Node],
    module_name: str,
    partition_lookup_table: dict | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """A module of copies of the nodes; the nodes it takes, and those of its nodes that are used outside."""
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    graph = Graph()
    inputs: dict[Node, Node] = {}
    copies: dict[Node, Node] = {}

    def find(node: Node) -> Node:
        if node in copies:
            return copies[node]
        if node not in inputs:
            inputs[node] = graph.placeholder(node.name, type_expr=node.type)
            inputs[node].meta = copy.copy(node.meta)
        return inputs[node]

    for node in nodes:
        copies[node] = graph.node_copy(node, find)
    outputs = [node for node in nodes if any(user not in copies for user in node.users)]
    results = tuple(copies[node] for node in outputs)
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    _placeholders_first(graph)
    graph.lint()
    return GraphModule(gm, graph, module_name), tuple(inputs), tuple(outputs)


def _placeholders_first(graph: Graph) -> None:
    """Inputs are found while nodes are copied; they belong before all of them."""
    first = next((n for n in graph.nodes if n.op != "placeholder"), None)
    for node in graph.find_nodes(op="placeholder"):
        if first is not None and first < node:
            first.prepend(node)


def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Call a submodule after a node, and let the users of the original outputs use its results."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    if insertion_point is None:
        if not orig_outputs:
            raise AssertionError(
                "Cannot determine insertion point: no insertion_point provided and orig_outputs is empty. "
                "Pass the last partition node as insertion_point."
            )
        insertion_point = max(orig_outputs)
    with gm.graph.inserting_after(insertion_point):
        call = gm.graph.call_module(name, orig_inputs)
    if len(orig_outputs) == 1 and not isinstance(sub_gm.graph.output_node().args[0], tuple):
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        return gm
    with gm.graph.inserting_before(call.next):
        for i, output in enumerate(orig_outputs):
            output.replace_all_uses_with(Proxy(call)[i].node, propagate_meta=True)
    call.meta["val"] = tuple(output.meta.get("val") for output in orig_outputs)
    return gm


def erase_nodes(gm: GraphModule, nodes: list[Node]) -> None:
    """Erase nodes, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: list[dict], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """Make a submodule of each group of nodes."""
    for i, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        result, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{i}", always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, result, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
