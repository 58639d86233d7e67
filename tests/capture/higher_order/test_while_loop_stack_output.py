"""`while_loop_stack_output`: all states of a loop, in Python and in graphs, with their gradients."""

from __future__ import annotations

import pytest

import pullback as torch


def states(x, w, bound):
    stacked = torch.ops.higher_order.while_loop_stack_output
    return stacked(lambda i, a: i < bound, lambda i, a: (i + 1, a.sin() * w), (torch.tensor(0), x), ())


def test_values():
    x, w = torch.randn(3), torch.randn(3)
    numbers, out = states(x, w, 2)
    first = x.sin() * w
    assert numbers.tolist() == [1, 2] and torch.equal(out, torch.stack([first, first.sin() * w]))
    numbers, out = states(x, w, 0)
    assert numbers.tolist() == [0] and torch.equal(out, x[None])


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_with_gradients(backend, dynamic):
    x, w = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    run = torch.compile(states, backend=backend, dynamic=dynamic, fullgraph=True)
    for steps in (0, 1, 4):
        bound = torch.tensor(steps)
        got, want = run(x, w, bound), states(x, w, bound)
        assert torch.equal(got[0], want[0]) and torch.allclose(got[1], want[1])
        weights = torch.randn(want[1].shape, dtype=torch.float64)
        pairs = [torch.autograd.grad((o * weights).sum(), (x, w), materialize_grads=True) for o in (got[1], want[1])]
        assert all(torch.allclose(a, b) for a, b in zip(*pairs, strict=True))


def test_a_state_is_tensors():
    with pytest.raises(TypeError, match="element 1 of carried_inputs, but got int"):
        torch.ops.higher_order.while_loop_stack_output(
            lambda a, i: i < 3, lambda a, i: (a, i + 1), (torch.ones(2), 0), ()
        )
