"""What a program says of numbers that depend on data (`torch._check`) is checked by its graph when it runs.

In: a trace, whose shape environment has noted the promises. Out: an assertion for each, as soon as its numbers are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from ...core.tensor import Tensor
from ...graph import Node, traceback
from ...ops.make.assertions import assert_scalar
from ..front.config import config
from .graph_trace import UnknownNumber


def assert_promises(trace, env, in_words: bool = False) -> None:
    """Add the assertions to the graph of a trace; `in_words`: of promises that came with words, with those."""
    if config.do_not_emit_runtime_asserts:
        return
    promises = [p for found in env.deferred_runtime_asserts.values() for p in found]
    behind: dict[Node, Node] = {}  # the node after which promises about numbers that are known by then are asserted
    for promise in promises:
        try:
            _assert(trace, promise.expr, promise.msg if in_words else "", behind)
        except UnknownNumber:
            if not promise.is_inner:
                raise


@contextmanager
def asserted_inside(trace, in_words: bool = False, again: bool = False) -> Iterator[None]:
    """A block in which a function inside an operator is traced: what it promises becomes assertions of its own graph; of one that
    cannot show the numbers, of the graph around it. `again`: it is a graph, which has them already."""
    env = trace.fake_mode.shape_env if trace.fake_mode is not None else None
    if env is None:
        yield
        return
    with env.inner() as promises:
        yield
    if again or config.do_not_emit_runtime_asserts:
        return
    behind: dict[Node, Node] = {}
    for promise in promises:
        try:
            _assert(trace, promise.expr, promise.msg if in_words else "", behind)
        except UnknownNumber:
            env.defer(promise)


@contextmanager
def running_graphs(trace) -> Iterator[None]:
    """A block in which an operator runs the graphs that it takes, which have the assertions of what they promise."""
    env = trace.fake_mode.shape_env if trace.fake_mode is not None else None
    with nullcontext([]) if env is None else env.inner() as promises:
        yield
    for promise in promises:
        env.defer(promise._replace(is_inner=True))


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
    try:
        with graph.inserting_before(last.next):
            condition = trace._number_node(expr)
            if isinstance(condition, Node):
                words = words or f"Runtime assertion failed for expression {expr} on node '{condition.name}'"
                behind[first] = trace.create_node(assert_scalar, (condition, words), {}, "_assert_scalar")
    finally:
        trace.expressions, traceback.current_meta = {**known, **trace.expressions}, {}
        trace.steps_of_numbers = {**steps, **trace.steps_of_numbers}


def _defined(symbol: Any, order: dict[Node, int]) -> Node:
    """The first node that shows a symbol; an input at the latest, since what is asserted of inputs may come first. Of several results
    it is shown by the node that takes out one."""
    inputs = [n for n in order if n.op == "placeholder"]
    for several in (False, True):
        for node in order:
            value = node.meta.get("val")
            if isinstance(value, (tuple, list)) is several and _shows(value, symbol):
                return inputs[-1] if node.op == "placeholder" else node
    return list(order)[-1]


def _shows(value: Any, symbol: Any) -> bool:
    sizes = value.shape if isinstance(value, Tensor) else value if isinstance(value, (tuple, list)) else (value,)
    return any(hasattr(s, "node") and symbol in getattr(s.node._expr, "symbols", ()) for s in sizes)
