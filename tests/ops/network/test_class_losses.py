"""Losses over classes."""

import itertools

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F


def random(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def by_hand(scores, target, weight=None, ignore=-100, smoothing=0.0, reduction="mean"):
    """Cross entropy element by element; scores are (samples, classes)."""
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    w = np.ones(scores.shape[1]) if weight is None else weight
    losses = [
        0.0 if t == ignore else -(1 - smoothing) * w[t] * row[t] - smoothing / len(row) * (w * row).sum()
        for row, t in zip(logs, target, strict=True)
    ]
    if reduction == "none":
        return np.array(losses)
    return sum(losses) / (sum(w[t] for t in target if t != ignore) if reduction == "mean" else 1)


@pytest.mark.parametrize(
    ("weighted", "ignore", "smoothing"), list(itertools.product((False, True), (-100, 1), (0.0, 0.2)))
)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy(weighted, ignore, smoothing, reduction):
    scores, target = random(5, 4), torch.tensor([0, 1, 3, 1, 2])
    weight = torch.tensor([0.5, 1.0, 2.0, 3.0], dtype=torch.float64) if weighted else None
    got = F.cross_entropy(scores, target, weight, ignore_index=ignore, reduction=reduction, label_smoothing=smoothing)
    want = by_hand(
        scores.numpy(),
        target.tolist(),
        None if weight is None else weight.numpy(),
        ignore,
        smoothing,
        reduction,
    )
    np.testing.assert_allclose(got.numpy(), want)
    scores.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda s: F.cross_entropy(
            s, target, weight, ignore_index=ignore, reduction=reduction, label_smoothing=smoothing
        ),
        scores,
    )


def test_cross_entropy_with_probabilities():
    scores, target = random(3, 4), torch.softmax(random(3, 4, seed=1), 1)
    got = F.cross_entropy(scores, target)
    np.testing.assert_allclose(got.item(), -(target * scores.log_softmax(1)).sum().item() / 3)
    with pytest.raises(RuntimeError, match="Expected floating point type for target with class probabilities"):
        F.cross_entropy(scores, torch.ones(3, 4, dtype=torch.long))


def test_more_dimensions():
    scores, target = random(2, 3, 4, 5), torch.randint(0, 3, (2, 4, 5))
    flat = F.cross_entropy(scores.movedim(1, -1).reshape(-1, 3), target.reshape(-1))
    np.testing.assert_allclose(F.cross_entropy(scores, target).item(), flat.item())
    np.testing.assert_allclose(F.cross_entropy(scores.reshape(2, 3, 20), target.reshape(2, 20)).item(), flat.item())
    assert F.cross_entropy(scores[0, :, 0, 0], target[0, 0, 0]).shape == ()
    assert F.nll_loss(scores, target, reduction="none").shape == target.shape


def test_an_ignored_infinity_does_not_count():
    scores = torch.tensor([[0.0, -float("inf")], [0.0, 0.0]])
    assert F.nll_loss(scores, torch.tensor([0, 1]), ignore_index=0).item() == 0
    assert F.nll_loss(scores, torch.tensor([1, 1]), ignore_index=1).isnan()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: F.cross_entropy(torch.ones(2, 3), torch.ones(3, dtype=torch.long)),
            ValueError,
            "Expected input batch_size",
        ),
        (lambda: F.nll_loss(torch.ones(1, 3), torch.tensor([3])), IndexError, "Target 3 is out of bounds."),
        (
            lambda: F.nll_loss(torch.ones(1, 3), torch.tensor([0]), reduction="all"),
            ValueError,
            "not a valid value for reduction",
        ),
        (
            lambda: F.nll_loss(torch.ones(1, 3), torch.tensor([0]), torch.ones(2)),
            RuntimeError,
            "weight tensor should be defined",
        ),
        (
            lambda: F.cross_entropy(torch.ones(1, 3), torch.tensor([0]), label_smoothing=2.0),
            RuntimeError,
            "between 0.0 and 1.0",
        ),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_linear_cross_entropy():
    x, w, target = random(3, 4), random(5, 4, seed=1), torch.tensor([0, 4, 2])
    want = F.cross_entropy(x @ w.t(), target)
    np.testing.assert_allclose(F.linear_cross_entropy(x, w, target).item(), want.item())


def all_alignments(logs, labels, blank):
    """The likelihood by summing over every path that collapses to the labels."""
    total = 0.0
    for path in itertools.product(range(logs.shape[1]), repeat=logs.shape[0]):
        kept = [c for c, before in zip(path, (None, *path), strict=False) if c != before]
        if [c for c in kept if c != blank] == labels:
            total += np.exp(sum(logs[t, c] for t, c in enumerate(path)))
    return -np.log(total) if total else np.inf


def test_ctc_loss():
    logs = random(4, 2, 3).log_softmax(2)
    targets = torch.tensor([[1, 2], [1, 0]])
    got = F.ctc_loss(logs, targets, torch.tensor([4, 3]), torch.tensor([2, 1]), reduction="none")
    want = [all_alignments(logs[:, 0].numpy(), [1, 2], 0), all_alignments(logs[:3, 1].numpy(), [1], 0)]
    np.testing.assert_allclose(got.numpy(), want)
    joined = F.ctc_loss(logs, torch.tensor([1, 2, 1]), (4, 3), (2, 1), reduction="none")
    np.testing.assert_allclose(joined.numpy(), want)
    assert F.ctc_loss(logs, torch.tensor([[1, 1], [1, 1]]), (2, 2), (2, 2), zero_infinity=True).item() == 0


def test_ctc_gradient_through_log_softmax():
    scores = random(4, 2, 3).requires_grad_()
    targets = torch.tensor([[1, 2], [1, 1]])
    assert torch.autograd.gradcheck(
        lambda s: F.ctc_loss(s.log_softmax(2), targets, (4, 3), (2, 2), reduction="sum"), scores
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weight", [None, [0.0, 1.0, 2.0]])
def test_samples_that_do_not_count_have_no_gradient(smoothing, weight):
    """The mean of no sample is NaN, and its gradient is 0: a batch without labels moves nothing."""
    weight = None if weight is None else torch.tensor(weight)
    for shape, target in (((2, 3), (2,)), ((1, 3, 2, 2), (1, 2, 2)), ((3,), ())):
        x = torch.randn(shape, requires_grad=True)
        ignored = torch.full(target, -100)
        loss = F.cross_entropy(x, ignored, weight, label_smoothing=smoothing)
        assert loss.isnan()
        (g,) = torch.autograd.grad(loss, x)
        assert torch.equal(g, torch.zeros(shape))
    x = torch.randn(4, 2, 3)
    each = torch.func.vmap(torch.func.grad(lambda r: F.cross_entropy(r, torch.tensor([-100, -100]))))(x)
    assert torch.equal(each, torch.zeros(4, 2, 3))


def test_compiled_samples_that_do_not_count_have_no_gradient():
    x = torch.randn(2, 3, requires_grad=True)
    loss = torch.compile(F.cross_entropy)(x, torch.tensor([-100, -100]))
    loss.backward()
    assert loss.isnan() and torch.equal(x.grad, torch.zeros(2, 3))


@pytest.mark.parametrize(("reduction", "share"), [("mean", 0.5), ("sum", 1.0)])
def test_slopes_of_logits_are_not_rounded_to_the_dtype_of_their_target(reduction, share) -> None:
    x = torch.tensor([0.1, 0.2], dtype=torch.float64, requires_grad=True)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(x, torch.tensor([1.0, 0.0]), reduction=reduction)
    (g,) = torch.autograd.grad(loss, x)
    expected = [share * -0.47502081252106, share * 0.549833997312478]  # recorded from PyTorch
    assert loss.dtype is torch.float32 and all(abs(a - b) < 1e-14 for a, b in zip(g.tolist(), expected, strict=True))
