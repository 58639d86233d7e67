"""Recording: node classes, what they save, and that no more than needed is saved."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.nn import functional as F


def leaf(*shape):
    return torch.ones(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: x * x, "MulBackward0"), (lambda x: x + 1, "AddBackward0"), (lambda x: x.sum(), "SumBackward0"), (lambda x: x.sum(0), "SumBackward1"),
        (lambda x: x.exp(), "ExpBackward0"), (lambda x: x @ x, "MmBackward0"), (lambda x: x.t(), "TBackward0"), (lambda x: x.view(4), "ViewBackward0"),
        (lambda x: x[0], "SelectBackward0"), (lambda x: x[:1], "SliceBackward0"), (lambda x: x**2, "PowBackward0"), (lambda x: x.clone(), "CloneBackward0"),
    ],
)  # fmt: skip
def test_nodes_have_pytorchs_names(call, name) -> None:
    assert call(leaf(2, 2)).grad_fn.name() == name


def test_saved_values_are_read_by_name() -> None:
    x, y = leaf(2), torch.full((2,), 3.0, dtype=torch.float64)
    node = (x * y).grad_fn
    assert node._saved_other.tolist() == [3, 3] and node._saved_self is None
    assert x.exp().grad_fn._saved_result.tolist() == x.exp().tolist()
    with pytest.raises(AttributeError):
        node._saved_nothing


def test_a_write_to_what_is_not_saved_is_allowed() -> None:
    x, y = leaf(2), torch.ones(2, dtype=torch.float64)
    out = (x + y).sum()
    y.mul_(5)
    out.backward()
    assert x.grad.tolist() == [1, 1]


def test_freed_graphs_say_so() -> None:
    x = leaf(2)
    out = (x * x).sum()
    out.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward()


def test_saved_shapes_are_plain_tuples():
    sizes = torch.ones(2, 3, requires_grad=True).mean().grad_fn._saved_self_sym_sizes
    assert type(sizes) is tuple and sizes == (2, 3)


@pytest.mark.parametrize("bias, sizes", [(None, (0,)), (torch.ones(1), (1,))])
def test_an_absent_argument_has_a_size_of_zero(bias, sizes):
    out = F.conv1d(torch.ones(1, 1, 5, requires_grad=True), torch.ones(1, 1, 2), bias)
    assert out.grad_fn._saved_bias_sym_sizes_opt == sizes


def test_one_size_of_a_saved_shape():
    a = torch.ones(1, 3, 4, requires_grad=True)
    node = torch.addbmm(torch.ones(3, 3), a, a.transpose(1, 2)).grad_fn
    assert (node._saved_batch1_sym_argsize_0, node._saved_batch1_sym_argsize_1) == (1, 3)
    assert node._saved_batch1_sym_argsize_minus_1 == 4
    with pytest.raises(AttributeError, match="_saved_batch1_sym_argsize_9"):
        _ = node._saved_batch1_sym_argsize_9
