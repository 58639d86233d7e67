"""Which nodes of a graph run together, and in what order.

`stages_of(graph)` gives `Segment`s (native) and `Operators` in turns: a node runs as early as what it needs allows, so that a graph
with few operators that have no loops is few native calls. Operators that draw random numbers keep their order.
"""

from __future__ import annotations

import operator as python_operators
from collections.abc import Collection

from ..capture.front.config import native as settings
from ..core.logs import logger
from ..core.tensor import Tensor
from ..graph.graph import Graph
from ..graph.node import Node
from ..ops.lowering import NotLowerable
from ..ops.lowering.expressions import forget
from ..ops.system.operator import Operator
from .lower import Lowering
from .segment import Operators, Segment, shape_only

DONE = ("placeholder", "get_attr", "output")
WAYS = 3  # in which nodes run: as operators, by native code of the host, by that of a device
WORTH_CODE = 8  # nodes on the host from which on they are compiled


def stages_of(
    graph: Graph, landing: dict[Node, Node] | None = None
) -> tuple[list[Operators | Segment], dict[Node, str]]:
    """The nodes of a graph in stages that run one after the other; and why nodes that run as operators do. `landing`: see `landing`."""
    nodes = [n for n in graph.nodes if n.op not in DONE]
    kind = segment_kind(graph)
    beside = numbers_of(nodes) if kind.lowering.device != "cpu" else set()  # computed on the host, for a device
    lowering, loops, reasons = lowerable(graph, kind.lowering, beside)
    if nodes and len(loops) == len(nodes) and not beside:  # all of it
        return [kind(nodes, [n for n in nodes if graph.output_node() in n.users], lowering, landing)], {}
    level: dict[Node, int] = {}
    ordered = 0  # the stage of the last operator whose order among its like matters
    begun = 1  # the first stage that may compute while what was begun last is under way
    way = lambda n: (
        (1 if n in beside or kind is Segment else 2) if n in loops else 0
    )  # how a node runs: of three stages, one of each
    for n in nodes:
        native = n in loops
        low = after(begun - 1, way(n)) if native else 0
        for i in n.all_input_nodes if native else needed_inputs(n):
            if i in level:
                low = max(low, level[i] if way(i) == way(n) else after(level[i], way(n)))
        if getattr(n.target, "awaits", False):  # what stands before it may run meanwhile
            low = max([low, *[at if at % WAYS == way(n) else after(at, way(n)) for at in level.values()]])
        if not native and keeps_order(n):
            low = ordered = max(low, ordered)
        if native and n.target is python_operators.getitem:  # a sequence is taken apart where it is made
            low = level[n.args[0]]
        level[n] = low
        if not native and getattr(n.target, "begins", False):
            begun = low + 1
    stages: list[Operators | Segment] = []
    for number in sorted(set(level.values())):
        members = [n for n in nodes if level[n] == number]
        if number % WAYS == 0:
            stages.append(Operators(members))
        else:
            inside = set(members)
            wanted = [n for n in members if any(u not in inside and not waits_not(u, n) for u in n.users)]
            is_last = number == max(level.values())
            made = Segment if number % WAYS == 1 else kind
            stages.append(made(members, wanted, None, _in_last(landing, inside) if landing and is_last else None))
    return stages, reasons


def after(level: int, way: int) -> int:
    """The first stage after one in which nodes run that way."""
    return level + 1 + (way - level - 1) % WAYS


def numbers_of(nodes: list[Node]) -> set[Node]:
    """The nodes of a device's graph that compute tensors on the host alone: counters of an optimizer, and what is made of them."""
    found = {n for n in nodes if _on_host(n) and all(map(_on_host, n.all_input_nodes))}
    return found if len(found) >= WORTH_CODE else set()


def _on_host(node: Node) -> bool:
    value = node.meta.get("val")
    tensors = value if isinstance(value, (tuple, list)) else (value,)
    return all(isinstance(t, Tensor) and t.device.type == "cpu" for t in tensors)


def _in_last(landing: dict[Node, Node], last: set[Node]) -> dict[Node, Node]:
    """The new values that the last stage may write over old ones: after it nothing can fail. What stages before it have read of
    an old value is read; but a view that they made of one would change."""
    return {
        new: old for new, old in landing.items() if new in last and not any(_shows(u, old, last) for u in old.users)
    }


def _shows(user: Node, old: Node, last: set[Node]) -> bool:
    """Whether a node of an earlier stage may give the memory of an old value, or goes on reading it."""
    if user in last:
        return False
    op = user.target
    if not isinstance(op, Operator) or op.namespace != "aten" or op.is_view or getattr(op, "begins", False):
        return True
    values = user.meta.get("val")
    memory = old.meta["val"]._memory
    found = values if isinstance(values, (tuple, list)) else (values,)
    return any(isinstance(t, Tensor) and (memory is None or t._memory is memory) for t in found)


def segment_kind(graph: Graph) -> type[Segment]:
    """The segments of a graph: of a CUDA device where a tensor is on one and native code is wanted there."""
    values = [n.meta.get("val") for n in graph.nodes]
    if settings.cuda.native and any(isinstance(t, Tensor) and t.device.type == "cuda" for t in values):
        from .cuda.segment import CudaSegment

        return CudaSegment
    return Segment


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
    return any(a.name == "generator" for a in op.schema.arguments)


def lowerable(
    graph: Graph, kind: type[Lowering] = Lowering, beside: Collection[Node] = ()
) -> tuple[Lowering, set[Node], dict[Node, str]]:
    """The loops of all nodes that have some, those nodes, and of each other one the reason why it has none. Nodes in `beside` are lowered for
    the host.

    A sequence of values is taken apart where it is made, or not lowered.
    """
    forget()
    lowering, host = kind(), Lowering()
    found: set[Node] = set()
    reasons: dict[Node, str] = {}
    for n in graph.nodes:
        if n.op == "output":
            break
        if n.op in ("placeholder", "get_attr"):
            lowering.input(n)
            continue
        refused = _refusal(host if n in beside else lowering, n)
        if refused is None:
            found.add(n)
            if n in beside:
                lowering.input(n)
        else:
            reasons[n] = refused.reason
            logger("perf_hints").debug("%s runs by itself, not in a loop with others: %s", n, refused.reason)
            lowering.input(n)
    kept = drop_torn(graph, drop_unpaired(found))
    return lowering, kept, reasons | dict.fromkeys(found - kept, "a result of it has no loops")


def _refusal(lowering: Lowering, node: Node) -> NotLowerable | None:
    """Lower a node; or why that cannot be."""
    if node.op != "call_function":
        return NotLowerable("a call of a method or a module")
    missing = [i for i in node.all_input_nodes if i not in lowering.values and _is_refused(lowering, i)]
    if missing:
        return NotLowerable(f"its input {missing[0]} has no loops")
    result = lowering.run_node(node)
    return result if isinstance(result, NotLowerable) else None


def _is_refused(lowering: Lowering, node: Node) -> bool:
    """Whether loops cannot be over a value that is not of theirs."""
    return isinstance(lowering.input(node), NotLowerable)


def drop_unpaired(found: set[Node]) -> set[Node]:
    """Without waits for what operators began, and without what native code would begin and nobody would see the end of."""
    begins, awaits = (lambda n: getattr(n.target, "begins", False)), (lambda n: getattr(n.target, "awaits", False))
    lost = {n for n in found if begins(n) and not n.users}
    kept = found - lost
    return kept - {n for n in kept if awaits(n) and (n.args[0] not in kept or not begins(n.args[0]))}


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
