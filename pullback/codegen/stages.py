"""Which nodes of a graph run together, and in what order.

`stages_of(graph)` gives `Segment`s (native) and `Operators` in turns: a node runs as early as what it needs allows, so that a graph
with few operators that have no loops is few native calls. Operators that draw random numbers keep their order.
"""

from __future__ import annotations

import operator as python_operators

from ..capture.front.logs import logger
from ..graph.graph import Graph
from ..graph.node import Node
from ..ops.system.operator import Operator
from .elements import Unlowerable
from .expressions import forget
from .lower import Lowering
from .segment import Operators, Segment, lower_input, shape_only

DONE = ("placeholder", "get_attr", "output")


def stages_of(graph: Graph) -> list[Operators | Segment]:
    """The nodes of a graph in stages that run one after the other."""
    nodes = [n for n in graph.nodes if n.op not in DONE]
    lowering, loops = lowerable(graph)
    if nodes and len(loops) == len(nodes):  # all of it
        return [Segment(nodes, [n for n in nodes if graph.output_node() in n.users], lowering)]
    level: dict[Node, int] = {}
    ordered = 0  # the stage of the last operator whose order among its like matters
    for n in nodes:
        native = n in loops
        low = 1 if native else 0
        for i in n.all_input_nodes if native else needed_inputs(n):
            if i in level:
                same_kind = (i in loops) == native
                low = max(low, level[i] if same_kind else level[i] + 1)
        if not native and keeps_order(n):
            low = ordered = max(low, ordered)
        level[n] = low
    stages: list[Operators | Segment] = []
    for number in sorted(set(level.values())):
        members = [n for n in nodes if level[n] == number]
        if number % 2 == 0:
            stages.append(Operators(members))
        else:
            inside = set(members)
            wanted = [n for n in members if any(u not in inside and not waits_not(u, n) for u in n.users)]
            stages.append(Segment(members, wanted))
    return stages


def needed_inputs(node: Node) -> list[Node]:
    """The nodes that one must wait for."""
    return [i for i in node.all_input_nodes if not waits_not(node, i)]


def waits_not(user: Node, node: Node) -> bool:
    """Whether a user of a node can run without its value."""
    others = (*user.args[1:], *user.kwargs.values())
    return shape_only(user) and user.args[0] is node and node not in others and node.op == "call_function"


def keeps_order(node: Node) -> bool:
    """Whether a node must stay in order with its like: what draws random numbers, and what is not known."""
    op = node.target
    return not isinstance(op, Operator) or op.namespace != "aten" or "nondeterministic_seeded" in op.tags or draws(op)


def draws(op: Operator) -> bool:
    return any(a.name == "generator" for a in op.schema.arguments) or op.name in ("native_dropout", "dropout")


def lowerable(graph: Graph) -> tuple[Lowering, set[Node]]:
    """The loops of all nodes that have some, and those nodes. A sequence of values is taken apart where it is made, or not lowered."""
    forget()
    lowering = Lowering()
    found: set[Node] = set()
    for n in graph.nodes:
        if n.op == "output":
            break
        try:
            if n.op in ("placeholder", "get_attr"):
                lower_input(lowering, n)
                continue
            if n.op != "call_function" or any(i not in lowering.values for i in n.all_input_nodes):
                raise Unlowerable("an input has none")
            lowering.run_node(n)
            found.add(n)
        except Unlowerable as reason:
            logger("output_code").debug("%s has no loops: %s", n, reason)
            try:
                lower_input(lowering, n)
            except Unlowerable:
                lowering.values.pop(n, None)
    return lowering, drop_torn(graph, found)


def drop_torn(graph: Graph, found: set[Node]) -> set[Node]:
    """Without nodes that give several values, of which not all users can be loops; and without those users."""
    changed = True
    while changed:
        changed = False
        for n in list(found):
            if isinstance(n.meta.get("val"), (tuple, list)):
                if any(u not in found for u in n.users):
                    found -= {n, *n.users}
                    changed = True
            elif n.target is python_operators.getitem and n.args[0] not in found:
                found.discard(n)
                changed = True
    return found
