"""`while_loop`: a function of the state, again and again while another says so.

In: `cond_fn` and `body_fn`, both of the whole state, and the state to begin with (tensors and integers). Out: the state
for which `cond_fn` is false. The body gives what it takes: same shapes, dtypes and devices, integers for integers. In a graph,
integers of the state are symbols, new ones for each function and for what comes out.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator

from ...core import dtype as dtypes
from ...core import tree
from ...core.tensor import Tensor, stride_of
from ...graph import GraphModule
from .autograd import is_floating, recorded, wanted_of
from .backward import backward_graph, refuse_random
from .base import HigherOrderOperator, Part
from .cond import check_operands, flattened, is_traced
from .consistency import check_same
from .subgraph import NUMBER_IN_STATE, Closed, examples, fake_mode_for, state_examples
from .unknowns import fresh_number


class WhileLoop(HigherOrderOperator):
    """`torch.ops.higher_order.while_loop(cond_fn, body_fn, carried_inputs, additional_inputs)`."""

    schema_names = ("cond_fn", "body_fn", "carried_input", "additional_input")
    runs_once = False
    prefixes = ("while_loop_cond_graph_", "while_loop_body_graph_")

    def __init__(self, name: str = "while_loop") -> None:
        super().__init__(name)

    def __call__(self, cond_fn, body_fn, carried_inputs, additional_inputs):
        for name, value in (("carried_inputs", carried_inputs), ("additional_inputs", additional_inputs)):
            if not isinstance(value, (tuple, list)):
                raise RuntimeError(f"{name} must be a tuple or list, got {type(value)}")
            check_operands(value)
        return super().__call__(cond_fn, body_fn, tuple(carried_inputs), tuple(additional_inputs))

    def parts(self, cond_fn, body_fn, carried_inputs, additional_inputs) -> list[Part]:
        given = [*state_examples(carried_inputs), *examples(additional_inputs)]
        return [Part(0, "while_loop cond_fn", given), Part(1, "while_loop body_fn", given)]

    def schema_calls(self, cond_fn, body_fn, carried_inputs, additional_inputs):
        return [(body_fn, examples((*carried_inputs, *additional_inputs)))]

    def gen_schema(self, cond_fn, body_fn, carried_inputs, additional_inputs, mutated_arg_indices: str = ""):
        """As any; the operands that are written are found by running the body, and need not be said."""
        return super().gen_schema(cond_fn, body_fn, carried_inputs, additional_inputs)

    def extended(self, args: tuple, free: list[Tensor]) -> tuple:
        return (*args[:3], (*args[3], *free))

    def plain(self, cond_fn, body_fn, carried_inputs, additional_inputs):
        last = collections.deque(self.states(cond_fn, body_fn, carried_inputs, additional_inputs), maxlen=1)
        return last[0] if last else tuple(v.clone() if isinstance(v, Tensor) else v for v in carried_inputs)

    def states(self, cond_fn, body_fn, carried_inputs, additional_inputs) -> Iterator[tuple]:
        """The state after each step."""
        state = carried_inputs
        while _decided(cond_fn(*state, *additional_inputs)):
            out = body_fn(*state, *additional_inputs)
            if not isinstance(out, tuple):
                raise AssertionError(f"body_fn should return a tuple but got {type(out)}")
            if len(out) != len(carried_inputs):
                raise AssertionError(
                    "body_fn should return the same number of elements as carried_inputs, got "
                    f"{len(out)} vs {len(carried_inputs)}"
                )
            check_same(self.shown_name, state, out, "carried_inputs", "body_output")
            state = out
            yield state

    def autograd(self, cond_fn, body_fn, carried_inputs, additional_inputs):
        return self.differentiated(Steps, cond_fn, body_fn, carried_inputs, additional_inputs)

    def differentiated(self, kind: type[Steps], cond_fn, body_fn, carried_inputs, additional_inputs):
        operands = (*carried_inputs, *additional_inputs)
        steps = kind(self, cond_fn, body_fn, len(carried_inputs))
        steps.differentiate(operands)
        return recorded(steps.forward, steps.backward, operands)

    def fake_rule(self, mode, cond_fn, body_fn, carried_inputs, additional_inputs):
        with mode:
            _check_decision(cond_fn(*step_values(mode, cond_fn, carried_inputs), *additional_inputs))
            out = body_fn(*step_values(mode, body_fn, carried_inputs), *additional_inputs)
        check_same(self.shown_name, carried_inputs, tree.tree_leaves(out), "carried_inputs", "body_output")
        return tuple(
            mode.make(tuple(t._array.shape), stride_of(t), t.dtype, t.device)
            if isinstance(t, Tensor)
            else fresh_number(mode, NotImplementedError(NUMBER_IN_STATE))
            for t in carried_inputs
        )


def step_values(mode, f: Callable, carried: tuple) -> list:
    """The state that some step begins with: for its numbers symbols, those that a graph was traced with where it has some."""
    graph = f.graph if isinstance(f, Closed) else f
    known = (
        [n.meta.get("val") for n in graph.graph.nodes if n.op == "placeholder"]
        if isinstance(graph, GraphModule)
        else []
    )
    out = []
    for i, v in enumerate(carried):
        own = known[i] if i < len(known) else None
        if isinstance(v, Tensor):
            out.append(v)
        elif getattr(own, "is_symbolic", False) and own.node.shape_env is mode.shape_env:
            out.append(own)
        else:
            out.append(fresh_number(mode, NotImplementedError(NUMBER_IN_STATE)))
    return out


class Steps:
    """The forward and the backward of one traced loop, for autograd.

    How many steps there are is known only when the graph runs, so states cannot be kept in tensors of a known size.
    Backward, a loop itself from the last step to the first, computes the state before each step again from the beginning:
    its time grows with the square of the number of steps, its memory not at all.
    """

    def __init__(self, op: WhileLoop, cond_fn: Callable, body_fn: Callable, carried: int):
        self.op, self.cond_fn, self.body_fn, self.carried = op, cond_fn, body_fn, carried
        self.count: Tensor | None = None

    def differentiate(self, operands: tuple) -> None:
        refuse_random(self.body_fn)
        self.wanted = wanted_of(operands)
        self.floating = [is_floating(t) for t in operands[: self.carried]]
        inner = [*self.floating, *self.wanted[self.carried :]]
        given = [*state_examples(operands[: self.carried]), *examples(operands[self.carried :])]
        self.graph = backward_graph(self.body_fn, given, inner, fake_mode_for(operands)).graph

    def forward(self, values):
        self.count, *out = self.run_counting(values)
        return tuple(out)

    def run_counting(self, values) -> tuple:
        """The loop, with a count of its steps in the state."""
        state, shared = values[: self.carried], values[self.carried :]
        zero = next(t for t in values if isinstance(t, Tensor)).new_zeros((), dtype=dtypes.int64)
        return self.op(
            lambda n, *rest: self.cond_fn(*rest),
            lambda n, *rest: (n + 1, *self.body_fn(*rest)),
            (zero, *state),
            tuple(shared),
        )

    def backward(self, values, gs):
        state = (self.count - 1, *[g.contiguous() for g in gs], *self.zero_sums(values))
        out = while_loop_op(lambda i, *rest: i >= 0, self.step, state, tuple(values))[1:]
        return self.gradients(out[: len(gs)], out[len(gs) :])

    def zero_sums(self, values) -> list[Tensor]:
        """Where the gradients of what all steps share are added up."""
        shared = zip(values[self.carried :], self.wanted[self.carried :], strict=True)
        return [t.new_zeros(t.shape) for t, w in shared if w]

    def gradients(self, of_state, sums) -> list[Tensor]:
        """The gradients that are wanted, from those of all floating-point tensors of the state."""
        firsts = iter(of_state)
        grads = [next(firsts) if floating else None for floating in self.floating]
        return [*[g for g, w in zip(grads, self.wanted, strict=False) if w], *sums]

    def step(self, i, *values):
        """(number of the step, gradients of the state, sums for what is shared; the operands) -> those of the step before."""
        gs, rest = values[: sum(self.floating)], values[sum(self.floating) :]
        sums, operands = rest[: sum(self.wanted[self.carried :])], rest[sum(self.wanted[self.carried :]) :]
        result = self.graph(*self._state_before(i, operands), *operands[self.carried :], *gs)
        totals = [a + b for a, b in zip(sums, result[len(gs) :], strict=True)]
        return (i - 1, *result[: len(gs)], *totals)

    def _state_before(self, i: Tensor, operands: tuple) -> tuple:
        state, shared = operands[: self.carried], operands[self.carried :]
        return while_loop_op(
            lambda n, *rest: n < rest[-1],
            lambda n, *rest: (n + 1, *self.body_fn(*rest[:-1])),
            (i.new_zeros(()), *state),
            (*shared, i),
        )[1:]


def _check_decision(value) -> None:
    scalar = isinstance(value, Tensor) and not len(value.shape) and value.dtype is dtypes.bool
    if not scalar and not isinstance(value, bool) and not getattr(value, "is_symbolic", False):
        raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {value}")


def _decided(value) -> bool:
    _check_decision(value)
    return bool(value)


while_loop_op = WhileLoop()


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list) -> tuple:
    """The state after `body_fn(*state)` was called while `cond_fn(*state)` was true; in a graph, one node. It is nested as the
    body nests it; where the body is not run at all, as it was given.

    >>> torch.while_loop(lambda i: i < 5, lambda i: (i + 1,), (torch.tensor(0),))
    (tensor(5),)
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    leaves, spec = tree.tree_flatten(carried_inputs)
    if not all(isinstance(v, (Tensor, int)) or getattr(v, "is_symbolic", False) for v in leaves):
        raise RuntimeError(
            "Expect carried_inputs to be a tuple of possibly nested dict/list/tuple that only"
            f"consists of tensor or int leaves, but got {carried_inputs}."
        )

    def flat_cond(*state):
        return cond_fn(*tree.tree_unflatten(list(state), spec))

    kept: list = []
    body = flattened(body_fn, spec, kept)
    run = while_loop_op if is_traced(leaves) else while_loop_op.plain
    out = run(flat_cond, body, tuple(leaves), ())
    return tree.tree_unflatten(list(out), kept[0] if kept else spec)
