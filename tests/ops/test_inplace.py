"""Writes: in-place twins, `out=`, and how history follows memory."""

from __future__ import annotations

import warnings

import pytest

import pullback as torch


def test_a_write_to_a_view_is_in_the_history_of_its_base() -> None:
    x = torch.arange(1.0, 4.0, dtype=torch.float64, requires_grad=True)
    y = x.clone()
    y[1:].mul_(x[:2])
    (y * y).sum().backward()
    assert x.grad.tolist() == [2 + 2 * 2 * 1 * 2, 2 * 2 * 1 * 1 + 2 * 6 * 3, 2 * 6 * 2]


def test_a_saved_result_written_into_a_view_differentiates_twice() -> None:
    x = torch.arange(1.0, 4.0, dtype=torch.float64, requires_grad=True)
    y = x.clone()
    y[1:].exp_()
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.tolist() == [0, *x[1:].exp().tolist()]


def test_out_is_resized_with_a_warning_only_if_it_held_numbers() -> None:
    x = torch.ones(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.add(x, x, out=torch.empty(0)).shape == (2, 3)
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.add(x, x, out=torch.empty(2))


def test_out_keeps_its_strides_and_casts() -> None:
    out = torch.empty(3, 2, dtype=torch.float64).t()
    assert torch.add(torch.ones(2, 3), 1, out=out) is out
    assert out.stride() == (1, 2) and out.tolist() == [[2.0] * 3] * 2


def test_out_does_not_record() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.mul(x, x, out=torch.empty(2))


def test_self_may_be_an_operand() -> None:
    t = torch.arange(4.0)
    assert t.add_(t).tolist() == [0, 2, 4, 6] and t.mul_(t.flip(0)).tolist() == [0, 8, 8, 0]
