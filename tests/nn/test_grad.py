"""Gradients of convolutions by name, against autograd."""

from __future__ import annotations

import pytest

import pullback as torch
import pullback.nn.functional as F


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}])
def test_gradients_of_convolutions(spatial, options):
    x = torch.randn(2, 4, *(7,) * spatial, requires_grad=True)
    w = torch.randn(6, 4 // options.get("groups", 1), *(3,) * spatial, requires_grad=True)
    out = getattr(F, f"conv{spatial}d")(x, w, **options)
    g = torch.randn(out.shape)
    expected = torch.autograd.grad(out, (x, w), g)
    grad = torch.nn.grad
    result = getattr(grad, f"conv{spatial}d_input")(x.shape, w, g, **options)
    torch.testing.assert_close(result, expected[0])
    torch.testing.assert_close(getattr(grad, f"conv{spatial}d_weight")(x, w.shape, g, **options), expected[1])


def test_the_module_has_a_second_name():
    assert torch.nn.functional.grad is torch.nn.grad


@pytest.mark.parametrize("groups", [0, -1])
def test_groups_are_positive(groups):
    x, w = torch.ones(2, 5, 8), torch.ones(5, 4, 3)
    with pytest.raises(RuntimeError, match=f"expected groups to be greater than 0, but got groups={groups}"):
        torch.ops.aten.convolution_backward(
            torch.ones(2, 4, 8), x, w, [4], [1], [1], [1], True, [0], groups, [True, True, True]
        )
