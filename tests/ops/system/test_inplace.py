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


MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.mul_(y),
        lambda y: y.addcmul_(y, y),
        lambda y: y.mul_(y[:, :1]),
        lambda y: y[:, 1].mul_(y[:, 0]),
    ],
)
def test_an_operand_on_the_written_memory_was_saved_before_the_write(write) -> None:
    x = torch.arange(1.0, 5.0, dtype=torch.float64).reshape(2, 2).requires_grad_()
    y = x * 1
    write(y)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_an_operand_on_the_written_memory_that_is_not_saved_gives_its_gradient() -> None:
    x = torch.arange(1.0, 5.0, dtype=torch.float64).reshape(2, 2).requires_grad_()
    y = x * 1
    column = y[:, 0]
    y[:, 1].add_(column, alpha=3)
    (y[:, 1].sum() + column.sum()).backward()
    assert x.grad.tolist() == [[4, 1], [4, 1]]


def test_hooks_pack_an_operand_on_the_written_memory_as_it_was() -> None:
    x = torch.arange(1.0, 4.0, dtype=torch.float64).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = x * 1
        y.mul_(y)
        y.sum().backward()
    assert x.grad.tolist() == [2, 4, 6]


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda y: y.fill_(1.0), "FillBackward2"),
        (lambda y: y.fill_(y.detach().sum()), "FillBackward3"),
        (lambda y: torch.nn.functional.elu(y, inplace=True), "EluBackward1"),
        (lambda y: torch.nn.functional.leaky_relu(y, inplace=True), "LeakyReluBackward1"),
        (lambda y: y.conj_physical_(), "ConjPhysicalBackward1"),
        (lambda y: y.mul_(2), "MulBackward0"),
    ],
)
def test_nodes_of_writes_have_the_names_of_their_own_rules(write, name) -> None:
    y = torch.ones(3, requires_grad=True) * 1
    write(y)
    assert y.grad_fn.name() == name


def test_one_element_of_the_written_memory_may_be_the_value() -> None:
    y = torch.tensor([3.0, 1.0, 2.0])
    y[:] = y[0]
    assert y.tolist() == [3, 3, 3]
    y = torch.tensor([3.0, 1.0, 2.0])
    y[torch.tensor([False, True, True])] = y[0]
    assert y.tolist() == [3, 3, 3]
