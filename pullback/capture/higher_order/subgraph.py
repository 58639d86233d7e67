"""Functions as graphs: traced by themselves, on fakes of their operands, whatever traces outside.

In: a function and examples of its operands. Out: a `GraphModule` of the operands and of the tensors that the function
closes over (its *free* tensors, in the order in which they are met). What always holds: no data is touched, and nothing
reaches the modes outside.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from operator import attrgetter
from typing import NamedTuple

from ...core import modes, tree
from ...core.modes import ambient
from ...core.node import requires_grad
from ...core.tensor import (
    CONJ,
    DISPATCH_SUBCLASS,
    FAKE,
    LAYOUTS,
    NEG,
    TRANSFORMED,
    Tensor,
    stride_of,
)
from ...graph import GraphModule, Interpreter, Node, traceback
from ...ops.make.lifting import lift_fresh
from ...ops.system.operator import Operator
from ..fake.mode import FakeTensorMode, fake_mode_of
from ..shapes.numbers import wrap
from ..trace.graph_trace import GraphTrace
from ..trace.make_fx import finish
from ..trace.promises import asserted_inside
from .unknowns import fresh_number

NUMBER_IN_STATE = "a loop with an integer in its state is traced with symbolic sizes only: give it as a tensor"


class Example(NamedTuple):
    """An operand to trace with: the value itself, what one step along its first dimension looks like, or (`varies`) a number
    that is another one at each call; `tracked`: it is differentiated by, so that it requires grad there."""

    value: object
    sliced: bool = False
    varies: bool = False
    tracked: bool = False

    def fake(self, mode: FakeTensorMode):
        """A new fake of it; numbers as they are."""
        t = self.value
        if not isinstance(t, Tensor):
            return fresh_number(mode, NotImplementedError(NUMBER_IN_STATE)) if self.varies else t
        if t._keys & (LAYOUTS | DISPATCH_SUBCLASS | TRANSFORMED):
            kind = (
                "a batched tensor"
                if t._keys & TRANSFORMED
                else f"a tensor of layout {t.layout}, class {type(t).__name__}"
            )
            raise NotImplementedError(f"{kind} as an operand of a function to trace is not implemented")
        shape, stride = tuple(t._array.shape), stride_of(t)
        if self.sliced:
            shape, stride = shape[1:], tuple(stride)[1:]
        result = mode.make(shape, stride, t.dtype, t.device)
        result._keys |= t._keys & (CONJ | NEG)
        return result


def examples(values, sliced: bool = False) -> list[Example]:
    return [Example(v, sliced) for v in values]


def state_examples(values) -> list[Example]:
    """Of what goes round in a loop: its numbers are others at each step."""
    return [Example(v, varies=not isinstance(v, Tensor)) for v in values]


def fake_mode_for(args) -> FakeTensorMode:
    """The fake mode that the arguments or the surroundings have, or a new one."""
    return fake_mode_of(tree.tree_leaves(args)) or FakeTensorMode(allow_non_fake_inputs=True)


class Joining(GraphTrace):
    """A trace whose inputs are operands and, after them, tensors from outside, in the order of `free`, which they join."""

    free: list[Tensor] | None

    def prepare(self, free: list[Tensor] | None) -> None:
        self.free = free
        self.inputs: list[Node] = []
        self.joined: dict = {}  # id of a free tensor, or the expression of a number -> (it, its input)

    def placeholder(self) -> Node:
        """A new input, after the others."""
        name = f"arg{len(self.inputs)}_1"
        where = self.graph.inserting_after(self.inputs[-1]) if self.inputs else self.graph.inserting_before()
        with where:
            node = self.graph.placeholder(name)
        self.inputs.append(node)
        return node

    def join(self, t: Tensor) -> Node:
        """The input of a free tensor."""
        known = self.joined.get(id(t))
        if known is None:
            if t._keys & TRANSFORMED:
                raise NotImplementedError("a function to trace closes over a batched tensor: give it as an operand")
            if not any(t is f for f in self.free):
                self.free.append(t)
            node = self.placeholder()
            node.meta["val"] = self.snapshot(t)
            self._note_symbols(t, node)
            known = self.joined[id(t)] = (t, node)
        return known[1]

    def join_number(self, number) -> Node:
        """The input of a symbolic number from outside."""
        expr = number.node.expr
        if expr not in self.joined:
            if self.free is not None and not any(not isinstance(f, Tensor) and f.node.expr is expr for f in self.free):
                self.free.append(number)
            node = self.placeholder()
            self.joined[expr] = (number, node)
            self.track(number, node)
        return self.joined[expr][1]

    def _solved(self, symbol) -> Node:
        try:
            return super()._solved(symbol)
        except RuntimeError:
            if self.free is None or self.fake_mode is None or self.fake_mode.shape_env is None:
                raise
        return self.join_number(wrap(symbol, self.fake_mode.shape_env))

    def module(self) -> GraphModule:
        """The graph, once no more free tensors can come: inputs in their order, those not used here included."""
        free = self.free or ()
        count = len(self.inputs) - len(self.joined)
        ordered = self.inputs[:count] + [self.join(t) if isinstance(t, Tensor) else self.join_number(t) for t in free]
        for node in reversed(ordered):
            first = next(iter(self.graph.nodes))
            if first is not node:
                first.prepend(node)
        return finish(self, "GraphModule")

    def output(self, out) -> None:
        leaves, spec = tree.tree_flatten(out)
        self.graph.output(tree.tree_unflatten([self.argument(v) for v in leaves], spec))


class SubgraphTrace(Joining):
    """The trace of a function by itself, below autograd.

    Without `free` there is nothing to join: what is not an operand is a constant of the graph, as data made on the spot
    always is; and once `sealed`, so is what wants no gradient.
    """

    def __init__(self, fake_mode: FakeTensorMode, like: GraphTrace | None, free: list[Tensor] | None):
        options = {} if like is None else {"decompositions": like.decompositions, "stacks": like.stacks}
        super().__init__(fake_mode=fake_mode, **options)
        self.prepare(free)
        self.sealed = False
        self.making = False  # whether a tensor is being made of Python data

    def input(self, value) -> None:
        """A new input for a value."""
        self.track(value, self.placeholder())

    def handle(self, op: Operator, args: tuple):
        self.making, before = op is lift_fresh, self.making
        try:
            return super().handle(op, args)
        finally:
            self.making = before

    def constant(self, t: Tensor) -> Node:
        if id(t) in self.joined:
            return self.joined[id(t)][1]
        if self.free is None or self.making or self.sealed and not requires_grad(t):
            return super().constant(t)
        if self.sealed:
            raise RuntimeError("a function closes over other tensors when it is called a second time")
        return self.join(t)

    def run(self, f: Callable, inputs: list, record: bool, again: bool = False) -> None:
        """Trace a call; `again`: of a graph, which has its assertions."""
        with asserted_inside(self, again=again), isolated([self.fake_mode, self], record):
            out = f(*inputs)
        self.output(out)


@contextmanager
def isolated(stack: list, record: bool):
    """Run a block under some dispatch modes alone, with recording on or off."""
    before = ambient.dispatch_modes, ambient.transforms
    ambient.dispatch_modes, ambient.transforms = stack, []
    cleared = modes.TRANSFORM | modes.BELOW_AUTOGRAD | modes.GRAD | modes.FORWARD | modes.CAPTURE
    try:
        with modes.masked(cleared, modes.DISPATCH | (modes.GRAD if record else 0)):
            yield
    finally:
        ambient.dispatch_modes, ambient.transforms = before


def trace_subgraph(
    f: Callable,
    given: list[Example],
    fake_mode: FakeTensorMode,
    like: GraphTrace | None = None,
    free: list | None = None,
) -> SubgraphTrace:
    """Trace a function on fakes of its operands."""
    trace = SubgraphTrace(fake_mode, like, free)
    inputs = [e.fake(fake_mode) for e in given]
    for value in inputs:
        trace.input(value)
    run = with_origins(f)
    trace.run(run, inputs, bool(ambient.mode & modes.GRAD), again=run is not f)
    return trace


def with_origins(f: Callable) -> Callable:
    """A graph node by node, so that what is traced of it knows where it came from; other functions as they are."""
    graph = f.graph if isinstance(f, Closed) else f
    if not isinstance(graph, GraphModule):
        return f

    def run(*operands):
        with traceback.preserve_node_meta():
            return Interpreter(graph).run(*operands)

    return run


class Closed:
    """A function whose free tensors are operands: its graph, and for its backward graph the function itself."""

    def __init__(self, f: Callable, count: int, free: list[Tensor], graph: GraphModule):
        self.f, self.count, self.free, self.graph = f, count, free, graph

    def __call__(self, *operands):
        return self.graph(*operands)


def is_closed(f: Callable) -> bool:
    """Whether a function uses nothing but operands and constants: a graph may hold tensors that another trace knows."""
    return isinstance(f, Closed) or isinstance(f, GraphModule) and not any(_is_fake(v) for v in _attributes(f))


def _attributes(graph: GraphModule) -> list:
    return [attrgetter(node.target)(graph) for node in graph.graph.nodes if node.op == "get_attr"]


def _is_fake(value) -> bool:
    return (
        bool(value._keys & FAKE)
        if isinstance(value, Tensor)
        else isinstance(value, GraphModule) and not is_closed(value)
    )


def close_over(functions: list[tuple[Callable, list[Example]]], fake_mode: FakeTensorMode) -> tuple[list, list[Tensor]]:
    """Functions as closed ones, all with the same free tensors; and these."""
    free: list[Tensor] = []
    traces = [trace_subgraph(f, given, fake_mode, free=free) for f, given in functions]
    closed = [Closed(f, len(given), free, trace.module()) for (f, given), trace in zip(functions, traces, strict=True)]
    return closed, free
