"""`while_loop_stack_output`: the state of a loop after each of its steps, stacked.

In: what `while_loop` takes; the state is tensors. Out: for each tensor of the state, its values after the steps, along a new
first dimension; of a loop without a step, the one it began with. In a graph the size of that dimension is a symbol.
"""

from __future__ import annotations

from ...core.tensor import Tensor
from ...ops.system.operator import public
from .scan import stacked_fake
from .unknowns import fresh_size
from .while_loop import Steps, WhileLoop, while_loop_op


class WhileLoopStackOutput(WhileLoop):
    """`torch.ops.higher_order.while_loop_stack_output(cond_fn, body_fn, carried_inputs, additional_inputs)`."""

    def __init__(self) -> None:
        super().__init__("while_loop_stack_output")

    def __call__(self, cond_fn, body_fn, carried_inputs, additional_inputs):
        for i, t in enumerate(carried_inputs):
            if not isinstance(t, Tensor):
                raise TypeError(f"expected Tensor as element {i} of carried_inputs, but got {type(t).__name__}")
        return super().__call__(cond_fn, body_fn, carried_inputs, additional_inputs)

    def plain(self, cond_fn, body_fn, carried_inputs, additional_inputs):
        rows = list(self.states(cond_fn, body_fn, carried_inputs, additional_inputs)) or [carried_inputs]
        stack = public("torch", "stack")
        return tuple(stack(list(column)) for column in zip(*rows, strict=True))

    def fake_rule(self, mode, cond_fn, body_fn, carried_inputs, additional_inputs):
        last = super().fake_rule(mode, cond_fn, body_fn, carried_inputs, additional_inputs)
        steps = fresh_size(mode, NotImplementedError("while_loop_stack_output is traced with symbolic sizes only"))
        return tuple(stacked_fake(mode, t, steps) for t in last)

    def autograd(self, cond_fn, body_fn, carried_inputs, additional_inputs):
        return self.differentiated(StackedSteps, cond_fn, body_fn, carried_inputs, additional_inputs)


class StackedSteps(Steps):
    """The forward and the backward of one traced loop whose states are all results: each step backward adds the gradient of
    its own result to that of the state."""

    def forward(self, values):
        numbers, *out = self.run_counting(values)
        self.count = numbers.select(0, -1)
        return tuple(out)

    def backward(self, values, gs):
        zeros = [g.new_zeros(g.shape[1:]) for g in gs]
        state = (self.count - 1, *zeros, *self.zero_sums(values))
        out = while_loop_op(lambda i, *rest: i >= 0, self.stacked_step, state, (*gs, *values))[1:]
        where = public("torch", "where")
        firsts = [where(self.count == 0, g.select(0, 0), total) for g, total in zip(gs, out, strict=False)]
        return self.gradients(firsts, out[len(gs) :])

    def stacked_step(self, i, *values):
        """`step`, with the gradients of all results before the operands."""
        count, sums = sum(self.floating), sum(self.wanted[self.carried :])
        state, gs = values[: count + sums], values[count + sums : 2 * count + sums]
        rows = [g.index_select(0, i.reshape(1)).squeeze(0) for g in gs]
        totals = [a + b for a, b in zip(state[:count], rows, strict=True)]
        return self.step(i, *totals, *state[count:], *values[2 * count + sums :])


while_loop_stack_output_op = WhileLoopStackOutput()
