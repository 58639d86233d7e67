"""Shapes changed in place: the tensor keeps its memory and follows its history."""

from __future__ import annotations

import pytest

import pullback as torch


@pytest.mark.parametrize(
    ("write", "shape", "node"),
    [
        (lambda t: t.t_(), (3, 2), "TBackward0"),
        (lambda t: t.transpose_(0, 1), (3, 2), "TransposeBackward0"),
        (lambda t: t.swapaxes_(0, 1), (3, 2), "TransposeBackward0"),
        (lambda t: t.unsqueeze_(1), (2, 1, 3), "UnsqueezeBackward0"),
        (lambda t: t.squeeze_(), (2, 3), "SqueezeBackward0"),
        (lambda t: t.squeeze_(0), (2, 3), "SqueezeBackward1"),
        (lambda t: t.as_strided_((3,), (2,)), (3,), "AsStridedBackward0"),
    ],
)
def test_history_and_memory(write, shape, node):
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    pointer = y.data_ptr()
    assert write(y) is y
    assert tuple(y.shape) == shape and y.data_ptr() == pointer and y._version == 1
    assert type(y.grad_fn).__name__ == node
    (g,) = torch.autograd.grad(y.sum(), x)
    assert g.sum().item() == y.numel()


def test_a_view_stays_a_view():
    base = torch.arange(6.0).reshape(2, 3).clone()
    row = base[:1]
    row.t_()
    row.fill_(9.0)
    assert row.shape == (3, 1) and row._base is base
    assert base.tolist() == [[9.0] * 3, [3.0, 4.0, 5.0]]


def test_views_that_are_written_after_their_shape_changed():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    part = y[:, :2]
    part.t_()
    part.mul_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    (g,) = torch.autograd.grad(y.sum(), x)
    assert g.tolist() == [[1.0, 3.0, 1.0], [2.0, 4.0, 1.0]]


def test_leaves_refuse():
    x = torch.zeros(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.t_()
    with pytest.raises(IndexError):
        torch.zeros(2).unsqueeze_(5)
