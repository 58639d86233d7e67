"""`while_loop`: a function of the state, again and again while another says so.

In: `cond_fn` and `body_fn`, both of the whole state, and the state to begin with (tensors and integers). Out: the state
for which `cond_fn` is false. The body gives what it takes: same shapes, dtypes and devices, integers for integers.
"""

from __future__ import annotations

from collections.abc import Callable

from ...core import dtype as dtypes
from ...core import tree
from ...core.tensor import Tensor, stride_of
from .autograd import is_floating, recorded, wanted_of
from .backward import backward_graph, refuse_random
from .base import HigherOrderOperator, Part
from .cond import check_operands, flattened, is_traced
from .consistency import check_same
from .subgraph import examples, fake_mode_for


class WhileLoop(HigherOrderOperator):
    """`torch.ops.higher_order.while_loop(cond_fn, body_fn, carried_inputs, additional_inputs)`."""

    schema_names = ("cond_fn", "body_fn", "carried_input", "additional_input")
    runs_once = False
    prefixes = ("while_loop_cond_graph_", "while_loop_body_graph_")

    def __init__(self) -> None:
        super().__init__("while_loop")

    def __call__(self, cond_fn, body_fn, carried_inputs, additional_inputs):
        for name, value in (("carried_inputs", carried_inputs), ("additional_inputs", additional_inputs)):
            if not isinstance(value, (tuple, list)):
                raise RuntimeError(f"{name} must be a tuple or list, got {type(value)}")
            check_operands(value)
        return super().__call__(cond_fn, body_fn, tuple(carried_inputs), tuple(additional_inputs))

    def parts(self, cond_fn, body_fn, carried_inputs, additional_inputs) -> list[Part]:
        if not all(isinstance(t, Tensor) for t in carried_inputs):
            raise NotImplementedError("while_loop with an integer in its state cannot be traced: give it as a tensor")
        given = examples((*carried_inputs, *additional_inputs))
        return [Part(0, "while_loop cond_fn", given), Part(1, "while_loop body_fn", given)]

    def schema_calls(self, cond_fn, body_fn, carried_inputs, additional_inputs):
        return [(body_fn, examples((*carried_inputs, *additional_inputs)))]

    def gen_schema(self, cond_fn, body_fn, carried_inputs, additional_inputs, mutated_arg_indices: str = ""):
        """As any; the operands that are written are found by running the body, and need not be said."""
        return super().gen_schema(cond_fn, body_fn, carried_inputs, additional_inputs)

    def extended(self, args: tuple, free: list[Tensor]) -> tuple:
        return (*args[:3], (*args[3], *free))

    def plain(self, cond_fn, body_fn, carried_inputs, additional_inputs):
        state = carried_inputs
        if not _decided(cond_fn(*state, *additional_inputs)):
            return tuple(v.clone() if isinstance(v, Tensor) else v for v in state)
        while True:
            out = body_fn(*state, *additional_inputs)
            if not isinstance(out, tuple):
                raise AssertionError(f"body_fn should return a tuple but got {type(out)}")
            if len(out) != len(carried_inputs):
                raise AssertionError(
                    "body_fn should return the same number of elements as carried_inputs, got "
                    f"{len(out)} vs {len(carried_inputs)}"
                )
            check_same(state, out, "carried_inputs", "body_output")
            state = out
            if not _decided(cond_fn(*state, *additional_inputs)):
                return state

    def autograd(self, cond_fn, body_fn, carried_inputs, additional_inputs):
        operands = (*carried_inputs, *additional_inputs)
        steps = Steps(self, cond_fn, body_fn, len(carried_inputs))
        steps.differentiate(operands)
        return recorded(steps.forward, steps.backward, operands)

    def fake_rule(self, mode, cond_fn, body_fn, carried_inputs, additional_inputs):
        with mode:
            _check_decision(cond_fn(*carried_inputs, *additional_inputs))
            out = body_fn(*carried_inputs, *additional_inputs)
        check_same(carried_inputs, tree.tree_leaves(out), "carried_inputs", "body_output")
        return tuple(mode.make(tuple(t._array.shape), stride_of(t), t.dtype, t.device) for t in carried_inputs)


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
        self.graph = backward_graph(self.body_fn, examples(operands), inner, fake_mode_for(operands)).graph

    def forward(self, values):
        """The loop, with a count of its steps in the state."""
        state, shared = values[: self.carried], values[self.carried :]
        zero = state[0].new_zeros((), dtype=dtypes.int64)
        count, *out = self.op(
            lambda n, *rest: self.cond_fn(*rest),
            lambda n, *rest: (n + 1, *self.body_fn(*rest)),
            (zero, *state),
            tuple(shared),
        )
        self.count = count
        return tuple(out)

    def backward(self, values, gs):
        shared = values[self.carried :]
        sums = [t.new_zeros(t.shape) for t, w in zip(shared, self.wanted[self.carried :], strict=True) if w]
        state = (self.count - 1, *[g.contiguous() for g in gs], *sums)
        out = self.op(lambda i, *rest: i >= 0, self._step, state, tuple(values))[1:]
        firsts = iter(out[: len(gs)])
        grads = [next(firsts) if floating else None for floating in self.floating]
        return [*[g for g, w in zip(grads, self.wanted, strict=False) if w], *out[len(gs) :]]

    def _step(self, i, *values):
        """(number of the step, gradients of the state, sums for what is shared; the operands) -> those of the step before."""
        gs, rest = values[: sum(self.floating)], values[sum(self.floating) :]
        sums, operands = rest[: sum(self.wanted[self.carried :])], rest[sum(self.wanted[self.carried :]) :]
        result = self.graph(*self._state_before(i, operands), *operands[self.carried :], *gs)
        totals = [a + b for a, b in zip(sums, result[len(gs) :], strict=True)]
        return (i - 1, *result[: len(gs)], *totals)

    def _state_before(self, i: Tensor, operands: tuple) -> tuple:
        state, shared = operands[: self.carried], operands[self.carried :]
        return self.op(
            lambda n, *rest: n < rest[-1],
            lambda n, *rest: (n + 1, *self.body_fn(*rest[:-1])),
            (i.new_zeros(()), *state),
            (*shared, i),
        )[1:]


def _check_decision(value) -> None:
    scalar = isinstance(value, Tensor) and not len(value.shape) and value.dtype is dtypes.bool
    if not scalar and not isinstance(value, bool):
        raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {value}")


def _decided(value) -> bool:
    _check_decision(value)
    return bool(value)


while_loop_op = WhileLoop()


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list) -> tuple:
    """The state after `body_fn(*state)` was called while `cond_fn(*state)` was true; in a graph, one node.

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

    body = flattened(body_fn, spec, [])
    run = while_loop_op if is_traced(leaves) else while_loop_op.plain
    out = run(flat_cond, body, tuple(leaves), ())
    return tree.tree_unflatten(list(out), spec)
