"""A graph module cut into submodules.

In: a graph module and a function from nodes to partition numbers. Out: a module that calls one submodule per partition
and computes the same. What always holds: partitions are called in an order that respects their uses; a cycle between
them raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...nn.module import Module
from ..graph import Graph
from ..lazy_module import _make_graph_module
from ..module import GraphModule
from ..node import Node, map_arg
from ..proxy import Proxy


class Partition:
    """The nodes of one submodule, and what goes in and out."""

    def __init__(self, name: str):
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n"
            f" partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


def split_module(
    m: GraphModule,
    root_m: Module | None,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """Cut a graph module into submodules, by the partition number that the callback gives each node."""
    split = _Split(m, keep_original_node_name, keep_original_input_name, tuple_return, qualname_map)
    for node in m.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            number = str(split_callback(node))
            split.assign(node, number if partition_affix is None else f"{partition_affix}_{number}")
    split.record_uses()
    order = split.sorted_names()
    split.fill(order)
    return split.assemble(list(split.partitions) if keep_original_order else order, bool(keep_original_order))


def split_module_simple(
    m: GraphModule, node_to_partition: dict[Node, int], *, partition_affix: str | None = None
) -> GraphModule:
    """Cut a graph module into submodules, by a table of partition numbers."""
    return split_module(m, None, node_to_partition.__getitem__, partition_affix=partition_affix)


def attribute(module: Any, path: str) -> Any:
    """The attribute of a module at a dotted path."""
    for part in path.split("."):
        if not hasattr(module, part):
            raise AttributeError(f"Node target {path} not found!")
        module = getattr(module, part)
    return module


class _Split:
    """One module being split."""

    def __init__(self, module: GraphModule, keep_names: Any, keep_inputs: bool, tuples: bool, qualnames: dict | None):
        self.module = module
        self.keep_names, self.keep_inputs, self.tuples, self.qualnames = keep_names, keep_inputs, tuples, qualnames
        self.partitions: dict[str, Partition] = {}
        self.home: dict[Node, str] = {}
        self.named = {node.name: node for node in module.graph.nodes}

    def assign(self, node: Node, name: str) -> None:
        partition = self.partitions.setdefault(name, Partition(name))
        partition.node_names.append(node.name)
        self.home[node] = name

    def record_uses(self) -> None:
        """Find what crosses from one partition to another."""
        for node in self.module.graph.nodes:
            for used in node.all_input_nodes:
                self._record(used, node)

    def _record(self, used: Node, user: Node) -> None:
        source, sink = self.home.get(used), self.home.get(user)
        if source == sink:
            return
        if source is not None:
            self.partitions[source].outputs.setdefault(used.name)
            if sink is not None:
                self.partitions[source].dependents.setdefault(sink)
        if sink is not None:
            self.partitions[sink].inputs.setdefault(used.name)
            if source is not None:
                self.partitions[sink].dependencies.setdefault(source)

    def sorted_names(self) -> list[str]:
        """The partitions, each after those it depends on."""
        waiting = {name: dict(p.dependencies) for name, p in self.partitions.items()}
        ready = [name for name, needs in waiting.items() if not needs]
        order: list[str] = []
        while ready:
            name = ready.pop()
            order.append(name)
            for dependent in self.partitions[name].dependents:
                waiting[dependent].pop(name)
                if not waiting[dependent]:
                    ready.append(dependent)
        if len(order) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        return order

    # ---- submodules
    def fill(self, order: list[str]) -> None:
        """Copy the nodes into the graphs of their partitions."""
        for name in order:
            self._make_inputs(self.partitions[name])
        for node, name in self.home.items():
            partition = self.partitions[name]
            target = node.target
            if node.op in ("call_module", "get_attr"):
                target = node.target.replace(".", "_")
                partition.targets[target] = attribute(self.module, node.target)
                if self.qualnames is not None:
                    self.qualnames[f"{partition.submod_name}.{target}"] = node.target
            find = partition.environment.__getitem__
            result = partition.graph.create_node(
                node.op,
                target,
                map_arg(node.args, find),
                map_arg(node.kwargs, find),
                node.name if self.keep_names else None,
                node.type,
            )
            result.meta = dict(node.meta)
            partition.environment[node] = result

    def _make_inputs(self, partition: Partition) -> None:
        modules = [n for n in partition.inputs if self._is_module(self.named[n])]
        others = [n for n in partition.inputs if n not in modules]
        for i, name in enumerate(others):
            node = self.named[name]
            result = partition.graph.placeholder(name if self.keep_inputs else f"arg_{i}", type_expr=node.type)
            result.meta = dict(node.meta)
            partition.environment[node] = result
        for name in modules:  # graph modules that higher-order calls take: they belong where they are used
            node = self.named[name]
            partition.environment[node] = result = partition.graph.get_attr(node.target)
            result.meta = dict(node.meta)
            partition.targets[node.target] = attribute(self.module, node.target)
        partition.inputs = dict.fromkeys(others)

    def _is_module(self, node: Node) -> bool:
        return node.op == "get_attr" and isinstance(attribute(self.module, node.target), Module)

    # ---- the module that calls them
    def assemble(self, order: list[str], lazily: bool) -> GraphModule:
        """The module that calls the submodules; `lazily`, attributes are fetched right before their first use."""
        self.base = Graph()
        self.values: dict[str, Node] = {}
        self.attributes: dict[str, Any] = {}
        for node in self.module.graph.nodes:
            if node.op == "placeholder" or node.op == "get_attr" and not lazily:
                self._base_input(node)
        for name in order:
            partition = self.partitions[name]
            for needed in partition.inputs:
                if needed not in self.values:
                    self._base_input(self.named[needed])
            self._call(partition)
        output = self.module.graph.output_node()
        for node in output.all_input_nodes:
            if node.name not in self.values:
                self._base_input(node)
        self.base.output(map_arg(output.args[0], lambda n: self.values[n.name]))
        result = _make_graph_module(self.attributes, self.base)
        result.meta["partition_names"] = {p.submod_name for p in self.partitions.values()}
        return result

    def _base_input(self, node: Node) -> None:
        if node.op == "placeholder":
            target = node.name if self.keep_names else node.target
            result = self.base.create_node("placeholder", target, node.args, type_expr=node.type)
        else:
            result = self.base.get_attr(node.target)
            self.attributes[node.target] = attribute(self.module, node.target)
        result.meta = dict(node.meta)
        self.values[node.name] = result

    def _call(self, partition: Partition) -> None:
        results = tuple(partition.environment[self.named[name]] for name in partition.outputs)
        single = len(results) == 1 and not self.tuples
        partition.graph.output(results[0] if single else results)
        self.attributes[partition.submod_name] = _make_graph_module(partition.targets, partition.graph)
        call = self.base.call_module(partition.submod_name, tuple(self.values[name] for name in partition.inputs))
        if single:
            self.values[next(iter(partition.outputs))] = call
            return
        for i, name in enumerate(partition.outputs):
            self.values[name] = Proxy(call)[i].node


__all__ = ["Partition", "split_module", "split_module_simple"]
