"""Random operators computed again: the same numbers, and a generator that does not notice."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.higher_order import run_and_save_rng_state, run_with_rng_state
from pullback.capture.trace.make_fx import make_fx


def twice(x):
    state, first = run_and_save_rng_state(torch.ops.aten.rand_like.default, x)
    return first, run_with_rng_state(state, torch.ops.aten.rand_like.default, x)


def test_values_and_the_generator():
    torch.manual_seed(3)
    first, again = twice(torch.ones(3))
    after = torch.rand(2)
    torch.manual_seed(3)
    assert torch.equal(first, torch.rand(3)) and torch.equal(first, again) and torch.equal(after, torch.rand(2))


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_graphs(mode):
    x = torch.ones(3)
    graph = make_fx(twice, tracing_mode=mode)(x)
    a, b = graph(x), graph(x)
    assert torch.equal(*a) and torch.equal(*b) and not torch.equal(a[0], b[0])


def test_no_gradient():
    _, out = run_and_save_rng_state(torch.ops.aten.rand_like.default, torch.ones(3, requires_grad=True))
    with pytest.raises(RuntimeError, match="Autograd not implemented for run_and_save_rng_state"):
        out.sum().backward()
