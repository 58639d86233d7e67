"""A cell whose forward and backward are C++ functions, in a Python `Function`: values and gradients against plain Python."""

from __future__ import annotations

import pytest

import pullback as torch


def cell(input, weights, bias, old_h, old_cell):
    gates = (torch.cat([old_h, input], 1) @ weights.t() + bias).chunk(3, 1)
    new_cell = old_cell + torch.nn.functional.elu(gates[2]) * torch.sigmoid(gates[0])
    return torch.tanh(new_cell) * torch.sigmoid(gates[1]), new_cell


def inputs():
    torch.manual_seed(1)
    shapes = ((4, 3), (15, 8), (1, 15), (4, 5), (4, 5))
    return [torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in shapes]


@pytest.fixture
def function(build):
    lltm = build("lltm")

    class Cell(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, weights, bias, old_h, old_cell):
            out = lltm.forward(input, weights, bias, old_h, old_cell)
            ctx.save_for_backward(*out[1:], weights)
            return out[0], out[1]

        @staticmethod
        def backward(ctx, grad_h, grad_cell):
            d_h, d_input, d_weights, d_bias, d_cell = lltm.backward(grad_h, grad_cell, *ctx.saved_tensors)
            return d_input, d_weights, d_bias, d_h, d_cell

    return Cell.apply


def test_values_and_gradients(function):
    here, there = inputs(), inputs()
    for f, xs in ((function, here), (cell, there)):
        h, c = f(*xs)
        (h.sin().sum() + (c * c).sum()).backward()
    for a, b in zip(here, there, strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_gradcheck(function):
    assert torch.autograd.gradcheck(function, tuple(inputs()))


def test_words_of_checks(build):
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match=r"^input must have two dimensions, got \[3\]$"):
        build("lltm").forward(x, x, x, x, x)
    with pytest.raises(TypeError, match=r"forward\(\): incompatible function arguments"):
        build("lltm").forward(x)


def test_documentation(build):
    assert build("lltm").__doc__ == "a recurrent cell"
    assert "forward of the cell" in build("lltm").forward.__doc__
