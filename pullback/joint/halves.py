"""A joint graph seen as two halves, and the two modules made of it.

In: a joint graph. Its placeholders are primals and then tangents; its output is one flat sequence, forward results
first, gradients (or None) after. Out: `Halves`, which says what forward must compute and what backward needs; and, for
a choice of values to save, the forward and the backward module (`divide`).

What always holds: forward takes every primal; backward takes the saved values, tensors before numbers, and then every
tangent; nodes keep their names, their meta and the order of the joint graph, except that what backward computes again
is computed where it is first needed. The two modules together compute what the joint graph computes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from ..graph import Graph, GraphModule, Node
from .costs import is_random, is_view
from .replay import Replay, Rewrite

BACKWARD_TAG = "is_backward"
FORWARD_TAG = "is_forward"


def is_tangent(node: Node) -> bool:
    """Whether a placeholder is the gradient of a forward result."""
    return node._op == "placeholder" and "tangents" in str(node._target)


def is_primal(node: Node) -> bool:
    """Whether a placeholder is an input of the forward."""
    return node._op == "placeholder" and not is_tangent(node)


def is_number(node: Node) -> bool:
    """Whether a node gives a number (symbolic or not) rather than a tensor."""
    value = node.meta.get("val")
    return getattr(value, "is_symbolic", False) or isinstance(value, (int, float, complex))


def is_sequence(node: Node) -> bool:
    """Whether a node gives several values, which are taken apart by `getitem`."""
    return isinstance(node.meta.get("val"), (tuple, list))


def flatten(results: Any) -> list:
    """The leaves of a graph's result: nodes, constants and None."""
    if isinstance(results, (tuple, list)):
        return [leaf for part in results for leaf in flatten(part)]
    return [results]


class Halves:
    """What a joint graph says of its nodes before anything is decided."""

    def __init__(self, joint: GraphModule, num_fwd_outputs: int):
        self.joint = joint
        self.nodes: list[Node] = list(joint.graph.nodes)
        inputs = [n for n in self.nodes if n._op == "placeholder"]
        self.primals = [n for n in inputs if is_primal(n)]
        self.tangents = [n for n in inputs if is_tangent(n)]
        results = flatten(self.nodes[-1]._args[0])
        if not 0 <= num_fwd_outputs <= len(results):
            raise RuntimeError(f"the joint graph has {len(results)} results, but num_fwd_outputs is {num_fwd_outputs}")
        self.fwd_outputs, self.bwd_outputs = results[:num_fwd_outputs], results[num_fwd_outputs:]
        self.dependent = descendants(self.nodes, self.tangents)
        impure = [n for n in self.nodes if n._op not in ("placeholder", "output") and n.is_impure()]
        forward_only = [n for n in impure if n not in self.dependent and not made_in_backward(n)]
        self.forward = ancestors([*nodes_in(self.fwd_outputs), *forward_only, *self.primals])
        self._check(impure)
        backward_only = [n for n in impure if n not in self.forward]
        self.bwd_roots = [*nodes_in(self.bwd_outputs), *backward_only]
        self.dependent = descendants(self.nodes, [*self.tangents, *backward_only])  # what only backward can run
        self.backward = ancestors(self.bwd_roots) - self.forward
        self._promote()

    def _check(self, impure: list[Node]) -> None:
        for node in impure:
            schema = getattr(node._target, "_schema", None)
            if schema is not None and schema.is_mutable:
                raise RuntimeError(f"the joint graph writes to a tensor: {node.format_node()}; functionalize it first")
        for node in nodes_in(self.fwd_outputs):
            if node in self.dependent:
                raise RuntimeError(
                    f"Node {node} is a result of the forward, but it is computed from a gradient; "
                    f"is num_fwd_outputs = {len(self.fwd_outputs)} right?"
                )

    def _promote(self) -> None:
        """Give to forward what is better saved than what it is computed from: parts of a sequence, sizes of a tensor."""
        for node in self.nodes:
            if node not in self.backward or node in self.dependent or not node._input_nodes:
                continue
            part = node._target is operator.getitem and node._args[0] in self.forward
            size = is_number(node) and not all(map(is_number, node._input_nodes))
            if part or size and all(n in self.forward for n in node._input_nodes):
                self.forward.add(node)
                self.backward.discard(node)


def made_in_backward(node: Node) -> bool:
    """Whether the engine ran when the node was recorded."""
    return node.meta.get("partitioner_tag") == BACKWARD_TAG


def nodes_in(values: Iterable) -> list[Node]:
    """The nodes among results, each once, in order."""
    return list(dict.fromkeys(v for v in values if isinstance(v, Node)))


def descendants(nodes: list[Node], roots: Iterable[Node]) -> set[Node]:
    """The roots and everything computed from them; `nodes` in order."""
    found = set(roots)
    for node in nodes:
        if node not in found and not found.isdisjoint(node._input_nodes):
            found.add(node)
    return found


def ancestors(roots: Iterable[Node], stop: Callable[[Node], bool] | None = None) -> set[Node]:
    """The roots and everything they are computed from; where `stop` says so, nothing before."""
    found: set[Node] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            if stop is None or not stop(node):
                waiting.extend(node._input_nodes)
    return found


# ---- two modules
def divide(halves: Halves, may_save: Callable[[Node], bool]) -> tuple[GraphModule, GraphModule]:
    """The two modules. Of the forward's values that backward meets on its way from the gradients back to the inputs,
    those that `may_save` accepts are saved; the others are computed again."""
    forward = halves.forward
    ends = lambda n: n in forward and n._op != "get_attr" and (n._op == "placeholder" or may_save(n))
    reached = ancestors(halves.bwd_roots, ends)
    kept = [n for n in halves.nodes if n in reached and ends(n)]
    again = reached.intersection(forward).difference(kept)
    replay = Replay([n for n in halves.nodes if n in again and is_random(n._target)])
    saved = order_saved([*kept, *replay.states])
    fw_nodes = [n for n in halves.nodes if n in forward and n._op not in ("placeholder", "output")]
    bw_nodes = backward_order([n for n in halves.nodes if n in reached and n._op != "placeholder"], kept, again)
    fw = extract(halves.joint, halves.primals, fw_nodes, [*halves.fwd_outputs, *saved], replay.forward)
    bw = extract(halves.joint, [*saved, *halves.tangents], bw_nodes, halves.bwd_outputs, replay.backward)
    for node in bw.graph.nodes:
        node.meta["autograd_backward"] = True
    shown = {memory_of(n) for n in nodes_in(halves.fwd_outputs)}
    for node, taken in zip(saved, bw.graph.nodes, strict=False):
        taken.meta["saved"] = node._op != "placeholder"  # nobody but the backward has it: it may go after its last use
        taken.meta["own"] = taken.meta["saved"] and memory_of(node) not in shown  # and may be written over then
    return fw, bw


def memory_of(node: Node) -> Node:
    """The node in whose memory a value lies, be it through views."""
    while is_view(node) and node.all_input_nodes:
        node = node.all_input_nodes[0]
    return node


def order_saved(saved: list[Node]) -> list[Node]:
    """Tensors before numbers."""
    for node in saved:
        if is_sequence(node):
            raise NotImplementedError(
                f"backward uses all results of {node.format_node()} at once; only parts are saved"
            )
    return [n for n in saved if not is_number(n)] + [n for n in saved if is_number(n)]


def backward_order(nodes: list[Node], saved: list[Node], again: set[Node]) -> list[Node]:
    """The nodes of backward in order, those computed again as late as can be, so that they do not wait in memory."""
    placed = set(saved)
    order: list[Node] = []
    for node in nodes:
        if node in again or node in placed:
            continue
        waiting = [node]
        while waiting:
            at = waiting[-1]
            missing = [n for n in at._input_nodes if n in again and n not in placed]
            if missing:
                waiting.extend(reversed(missing))
                continue
            waiting.pop()
            if at not in placed:
                placed.add(at)
                order.append(at)
    return order + [n for n in nodes if n not in placed]


def extract(
    joint: GraphModule, inputs: list[Node], nodes: list[Node], outputs: list, rewrites: dict[Node, Rewrite]
) -> GraphModule:
    """A module that takes `inputs`, computes `nodes` (some of them in another way: `rewrites`) and returns `outputs`."""
    graph = Graph()
    result: dict[Node, Node] = {}
    for node in inputs:
        placeholder = graph.create_node("placeholder", node._name, (), {}, name=node._name)
        placeholder.meta = dict(node.meta)
        result[node] = placeholder
    for node in nodes:
        if node in rewrites:
            result[node] = rewrites[node](graph, node, result)
            result[node].meta = dict(node.meta)
        else:
            result[node] = graph.node_copy(node, result.__getitem__)
        result[node].meta.setdefault("partitioner_tag", FORWARD_TAG)
    end = graph.output(tuple([result[v] if isinstance(v, Node) else v for v in outputs]))
    end.meta = dict(joint.graph.output_node().meta)
    module = GraphModule(joint, graph)
    module.shape_env = joint.shape_env
    return module
