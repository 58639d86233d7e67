"""Backward graphs of functions.

In: a function (closed, or a graph), examples of its operands, and which of them want a gradient. Out: a graph of the
operands and of gradients of the outputs, that gives gradients of the operands. What always holds: the function is run as
it stands, so what it does about gradients (`no_grad`, custom functions) is what its backward graph does; and gradients
stop at the operands, whatever these were computed from.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from operator import attrgetter
from typing import NamedTuple

from ...autograd import grad
from ...core import modes, tree
from ...core.node import requires_grad
from ...core.tensor import Tensor, set_requires_grad
from ...graph import GraphModule, Node
from ..fake.mode import FakeTensorMode
from ..trace.make_fx import finish
from .subgraph import Closed, Example, SubgraphTrace


class Backward(NamedTuple):
    """The backward graph of a function, and which leaves of its outputs have a gradient to take."""

    graph: GraphModule
    outputs: list[bool]


def backward_graph(f: Callable, given: list[Example], wanted: list[bool], fake_mode: FakeTensorMode) -> Backward:
    """The graph (*operands, *gradients of floating-point outputs) -> [gradients of the operands wanted].

    `given` and `wanted` are about all operands, those that a closed function closes over included.
    """
    closed = f if isinstance(f, Closed) else None
    count = len(given) if closed is None else closed.count
    trace = SubgraphTrace(fake_mode, None, None if closed is None else closed.free)
    inputs = [e.fake(fake_mode) for e in given[:count]]
    for value, want in zip(inputs, wanted, strict=False):
        if want:
            set_requires_grad(value, True)
        trace.input(value)
    free = [] if closed is None else closed.free
    for t in free:
        trace.join(t)
    trace.sealed = True
    targets = [t for t, want in zip([*inputs, *free], wanted, strict=True) if want]
    with as_leaves([t for t, want in zip(free, wanted[count:], strict=True) if want]):
        return _trace_backward(trace, f if closed is None else closed.f, inputs, targets)


def _trace_backward(trace: SubgraphTrace, f: Callable, inputs: list, targets: list[Tensor]) -> Backward:
    kinds: list[bool] = []

    def joint(*operands):
        out = tree.tree_leaves(f(*operands))
        kinds[:] = [isinstance(t, Tensor) and (t.dtype.is_floating_point or t.dtype.is_complex) for t in out]
        pairs = []
        for t in [t for t, differentiable in zip(out, kinds, strict=True) if differentiable]:
            g = Example(t).fake(trace.fake_mode)
            trace.input(g)
            if requires_grad(t):
                pairs.append((t, g))
        return _gradients(pairs, targets)

    trace.run(joint, inputs, True)
    result = finish(trace, "GraphModule")
    _check_random(result)
    return Backward(result, kinds)


def random_nodes(f: Callable) -> list[Node]:
    """The calls of random operators in a graph, and in graphs that it holds."""
    graph = f.graph if isinstance(f, Closed) else f
    found = []
    for node in graph.graph.nodes:
        if "nondeterministic_seeded" in getattr(node.target, "tags", ()):
            found.append(node)
        elif node.op == "get_attr" and isinstance(state := attrgetter(node.target)(graph), GraphModule):
            found += random_nodes(state)
    return found


def refuse_random(f: Callable) -> None:
    """Refuse a function that backward would call again, and that would draw other numbers then."""
    for node in random_nodes(f):
        raise NotImplementedError(
            f"{node.target} in a function whose gradient is traced: backward computes it again, with other random numbers. "
            "Draw the numbers outside, and give them as an operand"
        )


def _check_random(result: GraphModule) -> None:
    """Random numbers that only the outputs need are not drawn in backward; any others it would get wrong."""
    for node in random_nodes(result):
        if not node.users and node.graph is result.graph:
            result.graph.erase_node(node)
    refuse_random(result)
    result.graph.eliminate_dead_code()
    result.recompile()


def _gradients(pairs: list, targets: list[Tensor]) -> list[Tensor]:
    """Gradients of the targets, zeros where there are none, each a contiguous tensor of its own."""
    result = [None] * len(targets)
    if pairs and targets:
        result = grad([t for t, _ in pairs], targets, [g for _, g in pairs], allow_unused=True)
    seen = {id(g) for _, g in pairs}
    results = []
    with modes.masked(modes.GRAD):
        for g, t in zip(result, targets, strict=True):
            g = t.new_zeros(t.shape) if g is None else g.clone() if id(g) in seen else g.contiguous()
            seen.add(id(g))
            results.append(g)
    return results


@contextmanager
def as_leaves(tensors: list[Tensor]):
    """Tensors without their history for a block, so that gradients stop at each of them."""
    before = [(t, t._autograd, t._view_info) for t in tensors]
    try:
        for t in tensors:
            t._autograd = t._view_info = None
            set_requires_grad(t, True)
        yield
    finally:
        for t, autograd, view_info in before:
            t._autograd, t._view_info = autograd, view_info
