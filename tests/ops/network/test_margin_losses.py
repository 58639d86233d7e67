"""Margins over several classes: slopes that small plain calls compute beside the losses, and operators for all other calls."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pullback as torch
from pullback.core.modes import process

F = torch.nn.functional
LABELS = torch.tensor([[2, 0, -1, 1], [1, -1, 0, 2], [-1, 0, 1, 2]])
CLASSES = torch.tensor([3, 0, 2])
WEIGHT = torch.tensor([0.5, 2.0, 1.0, 0.25])
LOSSES = {
    "classes": lambda x, how: F.multi_margin_loss(x, CLASSES, reduction=how),
    "another margin, weights": lambda x, how: F.multi_margin_loss(x, CLASSES, margin=0.3, weight=WEIGHT.to(x.dtype), reduction=how),
    "squares": lambda x, how: F.multi_margin_loss(x, CLASSES, p=2, reduction=how),
    "labels": lambda x, how: F.multilabel_margin_loss(x, LABELS, reduction=how),
}  # fmt: skip


@pytest.mark.parametrize("case", LOSSES)
@pytest.mark.parametrize("how", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("special", [0.5, math.nan, math.inf, -math.inf])
def test_slopes_are_the_gradients_that_operators_give(case, how, dtype, special, monkeypatch):
    found = []
    for deterministic in (False, True):  # then the losses are written in operators
        monkeypatch.setattr(process, "deterministic", deterministic)
        x = torch.linspace(-1, 1, 12, dtype=dtype).reshape(3, 4)
        x[1, 2] = special
        x.requires_grad_()
        loss = LOSSES[case](x, how)
        (g,) = torch.autograd.grad(loss, x, torch.full_like(loss, 2.0))
        found.append((loss.detach(), g))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6 if dtype is torch.float32 else 1e-12, atol=1e-6)


@pytest.mark.parametrize("case", LOSSES)
def test_gradients_are_differentiable_again(case):
    x = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: LOSSES[case](x, "mean"), x)
    assert torch.autograd.gradgradcheck(lambda x: LOSSES[case](x, "mean"), x)


def test_classes_that_are_none_are_refused_with_history_too():
    x = torch.ones(3, 4, requires_grad=True)
    with pytest.raises(RuntimeError, match="target out of range"):
        F.multi_margin_loss(x, CLASSES + 1)
    with pytest.raises(RuntimeError, match="'target' is out of range"):
        F.multilabel_margin_loss(x, LABELS * 2)


ROWS = {  # shapes of scores, labels, what counts: PyTorch's `multilabel_margin_loss_forward`
    "a number": ((), 0, 1.0),
    "a number without a label": ((), -1, 0.0),
    "one class": ((1,), [0], [1.0]),
    "a row": ((4,), [3, 0, -1, 1], [1.0, 0.0, 0.0, 1.0]),
    "a row without labels": ((4,), [-1, 0, 1, 2], [0.0] * 4),
    "a label twice": ((4,), [0, 0, 1, -1], [1.0, 1.0, 0.0, 0.0]),
    "rows": ((2, 4), [[3, 0, -1, 1], [-1, 1, 1, 1]], [[1.0, 0.0, 0.0, 1.0], [0.0] * 4]),
    "no rows": ((0, 4), [], []),
}


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("case", ROWS)
def test_labels_of_every_rank_have_a_loss_what_counts_and_a_slope(case, reduction):
    shape, labels, expected = ROWS[case]
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    target = torch.tensor(labels, dtype=torch.int64).reshape(shape)
    code = ("none", "mean", "sum").index(reduction)
    loss, counts = torch.ops.aten.multilabel_margin_loss_forward(x, target, code)
    assert torch.equal(loss, F.multilabel_margin_loss(x, target, reduction=reduction)) or not x.numel()
    assert counts.tolist() == expected and counts.dtype is x.dtype and counts.shape == target.shape
    assert loss.shape == (shape[:1] if len(shape) == 2 and code == 0 else ())
    g = torch.randn(loss.shape, dtype=torch.float64)
    (slope,) = torch.autograd.grad(loss, x, g)
    assert torch.allclose(torch.ops.aten.multilabel_margin_loss_backward(g, x, target, code, counts), slope)


def test_labels_of_scores_that_are_integers_are_refused():
    with pytest.raises(NotImplementedError, match="multilabel_margin_loss_forward_out_frame"):
        F.multilabel_margin_loss(torch.ones(4, dtype=torch.int64), torch.tensor([0, 1, -1, 3]))
