"""What a program says of numbers that depend on data (`torch._check`) is checked by its graph when it runs.

In: a trace, whose shape environment has noted the promises. Out: an assertion for each, as soon as its numbers are known.
"""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...graph import Node, traceback
from ...ops.make.assertions import assert_scalar
from ..front.config import config


def assert_promises(trace, env, in_words: bool = False) -> None:
    """Add the assertions to the graph of a trace; `in_words`: of promises that came with words, with those."""
    if config.do_not_emit_runtime_asserts:
        return
    promises = [p for found in env.deferred_runtime_asserts.values() for p in found]
    behind: dict[Node, Node] = {}  # the node after which promises about numbers that are known by then are asserted
    for promise in promises:
        _assert(trace, promise.expr, promise.msg if in_words else "", behind)


def _assert(trace, expr: Any, words: str, behind: dict[Node, Node]) -> None:
    graph, known, steps = trace.graph, trace.expressions, trace.steps_of_numbers
    order = {n: i for i, n in enumerate(graph.nodes)}
    first = max((_defined(s, order) for s in expr.symbols), key=order.__getitem__)
    last = behind.get(first, first)
    trace.expressions, trace.steps_of_numbers = (
        {e: n for e, n in table.items() if not isinstance(n, Node) or n not in order or order[n] <= order[last]}
        for table in (known, steps)
    )
    traceback.current_meta = {k: last.meta[k] for k in ("nn_module_stack",) if k in last.meta}
    with graph.inserting_before(last.next):
        condition = trace._number_node(expr)
        if isinstance(condition, Node):
            words = words or f"Runtime assertion failed for expression {expr} on node '{condition.name}'"
            behind[first] = trace.create_node(assert_scalar, (condition, words), {}, "_assert_scalar")
    trace.expressions, traceback.current_meta = {**known, **trace.expressions}, {}
    trace.steps_of_numbers = {**steps, **trace.steps_of_numbers}


def _defined(symbol: Any, order: dict[Node, int]) -> Node:
    """The first node that shows a symbol; an input at the latest, since what is asserted of inputs may come first."""
    inputs = [n for n in order if n.op == "placeholder"]
    for node in order:
        value = node.meta.get("val")
        sizes = value.shape if isinstance(value, Tensor) else value if isinstance(value, (tuple, list)) else (value,)
        if any(hasattr(s, "node") and symbol in getattr(s.node._expr, "symbols", ()) for s in sizes):
            return inputs[-1] if node.op == "placeholder" else node
    return list(order)[-1]
