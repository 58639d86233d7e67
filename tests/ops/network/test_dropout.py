"""Dropout: masks recorded from PyTorch 2.13, gradients, and what it refuses."""

import types

import pytest

import pullback as torch
from pullback.ops.system.operator import exports

F = types.SimpleNamespace(**exports["nn.functional"])


def drawn(function) -> list:
    torch.manual_seed(0)
    return [round(v, 4) for v in function().reshape(-1).tolist()]


def test_masks_are_pytorchs():
    assert drawn(lambda: F.dropout(torch.ones(12), 0.5)) == [0, 0, 2, 0, 0, 0, 2, 2, 0, 2, 2, 2]
    assert drawn(lambda: torch.dropout(torch.ones(4), 0.5, True)) == [0, 0, 2, 0]
    assert drawn(lambda: F.dropout(torch.ones(3, 2).t(), 0.5)) == [0, 2, 0, 0, 0, 0]
    assert drawn(lambda: F.alpha_dropout(torch.ones(4), 0.5, True)) == [-0.7792, -0.7792, 1.6656, -0.7792]
    assert drawn(lambda: F.dropout2d(torch.ones(1, 3, 1, 2), 0.5)) == [0, 0, 0, 0, 2, 2]
    assert drawn(lambda: F.dropout1d(torch.ones(3, 2), 0.5)) == [0, 0, 0, 0, 2, 2]
    assert drawn(lambda: torch.native_dropout(torch.ones(4), 0.5, True)[0]) == [0, 0, 2, 0]
    assert drawn(lambda: torch.feature_alpha_dropout(torch.ones(1, 3), 0.5, True)) == [-0.7792, -0.7792, 1.6656]


def test_without_training_the_input_comes_back():
    x = torch.ones(3)
    assert F.dropout(x, 0.5, training=False) is x and F.dropout(x, 0.0) is x
    assert F.dropout(x, 1.0).tolist() == [0, 0, 0]
    kept, mask = torch.native_dropout(x, 0.5, False)
    assert kept.tolist() == [1, 1, 1] and mask.tolist() == [True] * 3


def test_in_place():
    x = torch.ones(6)
    assert F.dropout(x, 0.5, inplace=True) is x
    assert set(x.tolist()) <= {0.0, 2.0}


@pytest.mark.parametrize("drop", [lambda x: F.dropout(x, 0.3), lambda x: torch.native_dropout(x, 0.3, True)[0]])
def test_gradient_is_the_mask(drop):
    x = torch.ones(20, requires_grad=True)
    y = drop(x)
    y.backward(torch.ones(20))
    assert x.grad.tolist() == y.detach().tolist()


def test_memory_order_is_kept():
    x = torch.ones(3, 4).t()
    assert F.dropout(x, 0.5).stride() == (1, 4)
    assert [t.stride() for t in torch.native_dropout(x, 0.5, True)] == [(1, 4), (1, 4)]


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: F.dropout(torch.ones(3), 1.5), ValueError, "between 0 and 1, but got 1.5"),
        (lambda: torch.dropout(torch.ones(3), 1.5, True), RuntimeError, "between 0 and 1, but got 1.5"),
        (lambda: F.dropout(3), TypeError, r"argument 'input' \(position 1\) must be Tensor, not int"),
        (lambda: F.dropout2d(torch.ones(3)), RuntimeError, "Feature dropout requires at least 2 dimensions"),
        (lambda: F.dropout1d(torch.ones(3)), RuntimeError, "dropout1d: Expected 2D or 3D input"),
        (lambda: F.dropout(torch.ones(3).long()), RuntimeError, "result type Float can't be cast"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
