"""Backward graphs of functions."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.fake.mode import FakeTensorMode
from pullback.capture.higher_order.backward import as_leaves, backward_graph
from pullback.capture.higher_order.subgraph import examples


def test_backward_graph_gives_zeros_where_nothing_flows():
    x, w, g = (torch.randn(3) for _ in range(3))
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    result = backward_graph(lambda x, w: (x * x, torch.tensor(1)), examples([x, w]), [True, True], mode)
    assert result.outputs == [True, False]
    gx, gw = result.graph(x, w, g)
    assert torch.allclose(gx, 2 * x * g) and torch.equal(gw, torch.zeros(3))


def test_random_numbers_that_a_gradient_needs_are_refused():
    x = torch.randn(3)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with pytest.raises(NotImplementedError, match="other random numbers"):
        backward_graph(lambda x: x * torch.rand_like(x), examples([x]), [True], mode)
    result = backward_graph(lambda x: x * 2 + torch.rand_like(x), examples([x]), [True], mode)
    before = torch.get_rng_state()
    assert torch.equal(result.graph(x, torch.ones(3))[0], torch.full((3,), 2.0))
    assert torch.equal(torch.get_rng_state(), before)


def test_leaves_have_their_history_back_afterwards():
    x = torch.randn(3, requires_grad=True)
    y = x * 2
    before = y.grad_fn
    with as_leaves([y]):
        assert y.is_leaf and y.requires_grad
    assert y.grad_fn is before
