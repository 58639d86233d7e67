"""The order of a graph that holds calls which go on by themselves (collectives): begun as early, awaited as late as they can be.

`overlapped(graph)` puts the nodes of a graph in another order, in which its meaning is the same: what must keep its order
(writes, random numbers, operators that are not known) does. What begins does so when its input is there, so that the gradients
of the last layers travel while those of the first are computed. Gathers, whose results take memory until they are used, begin one
ahead: when the one before has come.

What always holds: the order in which calls begin depends on nothing but the order in which the program makes them and which of
them need the results of which others, so that ranks whose programs differ in what they compute in between make them in one order,
whether they run native code or operators.
"""

from __future__ import annotations

from operator import getitem

from ..graph.graph import Graph
from ..graph.node import Node
from ..ops.system.operator import Operator
from .stages import DONE, keeps_order


def begins(node: Node) -> bool:
    """Whether the result of a node is under way when it returns."""
    return getattr(node.target, "begins", False)


def awaits(node: Node) -> bool:
    return getattr(node.target, "awaits", False)


def overlapped(graph: Graph) -> bool:
    """Reorder a graph, see the module's docstring; False where there is nothing that overlaps."""
    nodes = [n for n in graph.nodes if n.op not in DONE]
    if not any(begins(n) for n in nodes):
        return False
    needs = needed(nodes)
    order = _one_ahead(_ordered(nodes, needs), nodes, needs)
    last = graph.output_node()
    for n in order:
        last.prepend(n)
    return True


def needed(nodes: list[Node]) -> dict[Node, int]:
    """Of each node, the set of nodes that must run before it, itself included: bits of a number, by place."""
    bits = {n: 1 << k for k, n in enumerate(nodes)}
    result: dict[Node, int] = {}
    everything = ordered = barrier = 0
    for n in nodes:
        own = bits[n] | barrier
        for i in n.all_input_nodes:
            own |= result.get(i, 0)
        if writes(n):
            own |= everything
            barrier = own
        elif stays(n):
            own |= ordered
            ordered = own
        result[n] = own
        everything |= own
    return result


def stays(node: Node) -> bool:
    """Whether a node must stay in order with its like."""
    return not (begins(node) or awaits(node) or node.target is getitem) and keeps_order(node)


def writes(node: Node) -> bool:
    """Whether a node writes to memory that others see, or may."""
    op = node.target
    return (
        not isinstance(op, Operator) and node.op != "call_function" or isinstance(op, Operator) and op.schema.is_mutable
    )


def _ordered(nodes: list[Node], needs: dict[Node, int]) -> list[Node]:
    """What is needed for what begins first, then the rest; of that, what waits for least."""
    place = {n: k for k, n in enumerate(nodes)}
    result: list[Node] = []
    done = 0
    awaited = sum(1 << place[n] for n in nodes if awaits(n))
    early = [n for n in nodes if begins(n) and not gathers(n)]
    early.sort(key=lambda n: ((needs[n] & awaited).bit_count(), place[n]))
    for begun in early:
        result += [nodes[k] for k in _places(needs[begun] & ~done)]
        done |= needs[begun]
    begun_at = {n: k for k, n in enumerate(early)}
    waits = [(begun_at.get(n.args[0], len(early)), 1 << place[n]) for n in nodes if awaits(n)]
    level: dict[Node, int] = {}
    most = -1
    for n in nodes:
        level[n] = max((k for k, bit in waits if needs[n] & bit), default=-1)
        most = max(most, level[n])
        if gathers(n):  # it stays behind what came before it, for now
            level[n] = most
    rest = [n for n in nodes if not done & 1 << place[n]]
    return result + sorted(rest, key=lambda n: (level[n], place[n]))


def gathers(node: Node) -> bool:
    """Whether a node begins something whose result takes more memory than what it is made of."""
    return getattr(node.target, "begins", None) == "gather"


def _one_ahead(order: list[Node], nodes: list[Node], needs: dict[Node, int]) -> list[Node]:
    """Each gather begins when the one before it has come, or as early as it can after that."""
    place = {n: k for k, n in enumerate(nodes)}
    result = list(order)
    before: Node | None = None
    for gather in [n for n in order if gathers(n)]:
        end = next((u for u in before.users if awaits(u)), None) if before is not None else None
        before = gather
        if end is None or needs[gather] & 1 << place[end]:
            continue
        at, now = result.index(end), result.index(gather)
        if at > now:
            continue
        cone = [n for n in result[at + 1 : now + 1] if needs[gather] & 1 << place[n]]
        if any(begins(n) or awaits(n) for n in cone[:-1]):
            continue
        others = [n for n in result[at + 1 : now + 1] if n not in cone]
        result[at + 1 : now + 1] = cone + others
    return result


def _places(bits: int) -> list[int]:
    """Which bits of a number are set, the lowest first."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found
