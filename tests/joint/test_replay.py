"""Random numbers of compiled functions, where gradients are differentiated: they are those that the forward drew."""

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.utils.checkpoint import checkpoint


def _unused(v):
    torch.rand(3)
    return v * torch.rand_like(v)


def _elsewhere(v):
    return v * torch.rand_like(v), (v + torch.rand_like(v)).sin()


FUNCTIONS = [
    lambda v: F.dropout(v, 0.5).sin() * F.dropout(v, 0.3),
    lambda v: F.dropout1d(v, 0.5),
    lambda v: F.rrelu(-v * v, training=True),
    lambda v: F.scaled_dot_product_attention(v, v, v, dropout_p=0.5),
    lambda v: checkpoint(lambda w: F.dropout(w, 0.5).sin(), v, use_reentrant=False),
    _unused,
    _elsewhere,
]


def _derivatives(function) -> list:
    torch.manual_seed(5)
    x = torch.linspace(-1, 1.3, 48, dtype=torch.float64).view(3, 4, 4).requires_grad_()
    out = function(x)
    out = out if isinstance(out, tuple) else (out,)
    (first,) = torch.autograd.grad(sum(t.sin().sum() for t in out), [x], create_graph=True)
    between = torch.rand(2)
    (second,) = torch.autograd.grad(first.cos().sum(), [x], create_graph=True)
    (third,) = torch.autograd.grad((second * x).sum(), [x], allow_unused=True)
    return [*out, first, second, third, between, torch.rand(2)]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_that_are_differentiated_have_the_numbers_of_the_forward(function) -> None:
    for eager, compiled in zip(_derivatives(function), _derivatives(torch.compile(function)), strict=True):
        torch.testing.assert_close(compiled, eager)


def test_modules_that_drop_have_one_mask_in_all_derivatives() -> None:
    torch.manual_seed(0)
    model = torch.compile(torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Tanh()))
    x = torch.linspace(0.5, 1.5, 40, dtype=torch.float64).requires_grad_()
    out = model(x)
    torch.rand(7)
    (gradient,) = torch.autograd.grad(out.sum(), [x], create_graph=True)
    assert 5 < (out == 0).sum() < 35
    assert torch.equal(gradient == 0, out == 0)


def test_transforms_of_gradients_draw_the_same_again() -> None:
    compiled = torch.compile(lambda v: F.dropout(v, 0.5) * v)
    x = torch.linspace(0.5, 1.5, 12, dtype=torch.float64)

    def of(function):
        torch.manual_seed(2)
        return torch.autograd.functional.hvp(lambda v: function(v).sin().sum(), x, torch.ones_like(x))[1]

    torch.testing.assert_close(of(compiled), of(lambda v: F.dropout(v, 0.5) * v))
