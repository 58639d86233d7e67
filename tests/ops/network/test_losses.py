"""Losses of elements and of rows: reductions, weights, gradients against differences, what is refused."""

import math
import types

import numpy as np
import pytest

import pullback as torch
from pullback.ops.system.operator import exports
from tests.ops.checks import compare_gradient

F = types.SimpleNamespace(**exports["nn.functional"])


def tensor(*shape, low=-2.0, high=2.0, seed=0):
    return torch.tensor(np.random.default_rng(seed).uniform(low, high, shape))


X, Y, P, Q = (
    tensor(3, 4),
    tensor(3, 4, seed=1),
    tensor(3, 4, low=0.1, high=0.9),
    tensor(3, 4, low=0.1, high=0.9, seed=2),
)
SIGNS = torch.tensor([1, -1, 1])
LOSSES = {
    "mse_loss": (lambda x, r: F.mse_loss(x, Y, reduction=r), X),
    "l1_loss": (lambda x, r: F.l1_loss(x, Y, reduction=r), X),
    "smooth_l1_loss": (lambda x, r: F.smooth_l1_loss(x, Y, reduction=r, beta=0.7), X),
    "huber_loss": (lambda x, r: F.huber_loss(x, Y, reduction=r, delta=0.7), X),
    "soft_margin_loss": (lambda x, r: F.soft_margin_loss(x, Y, reduction=r), X),
    "binary_cross_entropy": (lambda x, r: F.binary_cross_entropy(x, Q, reduction=r), P),
    "with_weight": (lambda x, r: F.binary_cross_entropy(x, Q, Y[0].abs(), reduction=r), P),
    "with_logits": (lambda x, r: F.binary_cross_entropy_with_logits(x, Q, reduction=r), X),
    "pos_weight": (lambda x, r: F.binary_cross_entropy_with_logits(x, Q, P, reduction=r, pos_weight=Y[0].abs()), X),
    "kl_div": (lambda x, r: F.kl_div(x, Q, reduction=r), X),
    "poisson_nll_loss": (lambda x, r: F.poisson_nll_loss(x, Q * 4, full=True, reduction=r), X),
    "gaussian_nll_loss": (lambda x, r: F.gaussian_nll_loss(x, Y, P, reduction=r), X),
    "hinge_embedding_loss": (lambda x, r: F.hinge_embedding_loss(x, SIGNS[:, None].expand(3, 4), reduction=r), X),
    "margin_ranking_loss": (lambda x, r: F.margin_ranking_loss(x, Y, SIGNS[:, None], 0.3, reduction=r), X),
    "cosine_embedding_loss": (lambda x, r: F.cosine_embedding_loss(x, Y, SIGNS, 0.1, reduction=r), X),
    "triplet_margin_loss": (lambda x, r: F.triplet_margin_loss(x, Y, Q, swap=True, reduction=r), X),
    "multi_margin_loss": (lambda x, r: F.multi_margin_loss(x, torch.tensor([1, 0, 3]), p=2, reduction=r), X),
    "multilabel_soft_margin_loss": (lambda x, r: F.multilabel_soft_margin_loss(x, Q, reduction=r), X),
    "multilabel_margin_loss": (
        lambda x, r: F.multilabel_margin_loss(
            x, torch.tensor([[1, 0, -1, 0], [3, -1, 2, 2], [-1, 1, 1, 1]]), reduction=r
        ),
        X,
    ),
}


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("name", LOSSES)
def test_reductions_agree(name):
    loss, x = LOSSES[name]
    each = loss(x, "none")
    assert loss(x, "mean").item() == pytest.approx(each.mean().item(), rel=1e-12)
    assert loss(x, "sum").item() == pytest.approx(each.sum().item(), rel=1e-12)


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name):
    loss, x = LOSSES[name]
    compare_gradient(lambda x: (loss(x, "mean"),), [x], 0, name)


def test_targets_have_gradients_where_pytorch_gives_them():
    for loss, x, y in [
        (F.mse_loss, X, Y),
        (F.smooth_l1_loss, X, Y),
        (F.huber_loss, X, Y),
        (F.binary_cross_entropy, P, Q),
        (F.binary_cross_entropy_with_logits, X, Q),
    ]:
        compare_gradient(lambda x, y, loss=loss: (loss(x, y),), [x, y], 0, loss.__name__)
    with pytest.raises(
        RuntimeError, match="'soft_margin_loss' is not differentiable with respect to argument 'target'"
    ):
        F.soft_margin_loss(X, Y.clone().requires_grad_())


def test_vmap_reduces_each_sample():
    got = torch.func.vmap(F.mse_loss)(X, Y)
    assert got.tolist() == pytest.approx(((X - Y) ** 2).mean(1).tolist())
    got = torch.func.vmap(torch.func.grad(F.mse_loss))(X, Y)
    assert got.reshape(-1).tolist() == pytest.approx(((X - Y) / 2).reshape(-1).tolist())


def test_stable_where_naive_formulas_are_not():
    x = torch.tensor([-200.0, 200.0])
    assert F.binary_cross_entropy_with_logits(x, torch.tensor([0.0, 1.0])).item() == 0
    assert F.binary_cross_entropy_with_logits(x, torch.tensor([1.0, 0.0])).item() == 200
    assert F.binary_cross_entropy(torch.tensor([0.0]), torch.tensor([1.0])).item() == 100
    assert math.isfinite(F.soft_margin_loss(x, torch.tensor([1.0, -1.0])).item())


def test_weights():
    w = torch.tensor([1.0, 3.0])
    x, y = torch.tensor([1.0, 2.0]), torch.zeros(2)
    assert F.mse_loss(x, y, weight=w).item() == 13 / 4 and F.l1_loss(x, y, weight=w, reduction="sum").item() == 7
    assert F.huber_loss(x, y, weight=w).item() == (0.5 + 3 * 1.5) / 2


def test_other_shapes_warn():
    with pytest.warns(UserWarning, match="different to the input size"):
        assert F.mse_loss(torch.ones(2, 2), torch.zeros(2)).item() == 1
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        assert F.mse_loss(torch.ones(2), torch.zeros(2), size_average=False).item() == 2


REFUSED = [
    ("F.mse_loss(torch.ones(2), torch.ones(2), reduction='x')", ValueError, "x is not a valid value for reduction"),
    ("F.mse_loss(torch.tensor([1]), torch.tensor([1]))", NotImplementedError, "\"mse_cpu\" not implemented for 'Long'"),
    ("F.smooth_l1_loss(X, Y, beta=-1.0)", RuntimeError, "does not support negative values for beta"),
    ("F.huber_loss(X, Y, delta=0.0)", RuntimeError, "does not support non-positive values for delta"),
    ("F.binary_cross_entropy(X * 9, Q)", RuntimeError, "all elements of input should be between 0 and 1"),
    ("F.binary_cross_entropy(P, Q[0])", ValueError, "different to the input size"),
    ("F.binary_cross_entropy(P, Q.float())", RuntimeError, "Found dtype Float but expected Double"),
    ("F.binary_cross_entropy_with_logits(X, Q[0])", ValueError, "must be the same as input size"),
    ("F.gaussian_nll_loss(X, Y, -P)", ValueError, "var has negative entry/entries"),
    ("F.gaussian_nll_loss(X, Y, torch.ones(7))", ValueError, "var is of incorrect size"),
    ("F.margin_ranking_loss(X, Y, SIGNS)", RuntimeError, "All input tensors should have same dimension"),
    ("F.cosine_embedding_loss(X, Y, torch.tensor(1))", RuntimeError, "0D target tensor expects 1D input tensors"),
    ("F.triplet_margin_loss(X, Y[0], X)", RuntimeError, "anchor 2D, positive 1D, and negative 2D"),
    ("F.triplet_margin_loss(X, Y, X, margin=-1)", ValueError, "margin must be greater than 0, got -1"),
    ("F.multi_margin_loss(X, torch.tensor([9, 0, 0]))", RuntimeError, "target out of range"),
    ("F.multi_margin_loss(X, torch.tensor([0, 0]))", RuntimeError, r"Expected target size \[3\], but got \[2\]"),
    (
        "F.multilabel_margin_loss(X, torch.zeros(3, 4))",
        RuntimeError,
        "expected scalar type Long but found Double|Float",
    ),
    ("F.kl_div(torch.tensor([1]), torch.tensor([1]))", RuntimeError, "Integral inputs not supported"),
]


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        eval(call)


def test_lists_of_labels_end_at_the_first_minus_one() -> None:
    x = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    lists = [[3, -1, 2, 0, 1, 1], [0, 0, 1, -1, 2, 2], [5, 4, -1, -1, -1, -1], [-1, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]]
    expected = []
    for scores, labels in zip(x.tolist(), lists, strict=True):
        counted = labels[: labels.index(-1)] if -1 in labels else labels
        others = [i for i in range(6) if i not in counted]
        expected.append(sum(max(0.0, 1 - scores[j] + scores[i]) for j in counted for i in others) / 6)
    loss = torch.nn.functional.multilabel_margin_loss(x, torch.tensor(lists), reduction="none")
    assert loss.tolist() == pytest.approx(expected)
    assert torch.autograd.gradcheck(lambda v: F.multilabel_margin_loss(v, torch.tensor(lists)), x)
    nothing = torch.full((5, 6), -1)
    assert F.multilabel_margin_loss(x, nothing).item() == 0


def test_ctc_loss_of_nothing_is_refused():
    none = torch.tensor([], dtype=torch.long)
    with pytest.raises(RuntimeError, match="log_probs tensor must not be empty"):
        torch.nn.functional.ctc_loss(torch.rand(0, 0, 4), none, none, none)


def test_arguments_that_no_gradient_reaches_are_refused():
    """A gradient that is wanted and has no rule is an error, not a zero."""
    x, live = torch.rand(3, 2), torch.rand(2).requires_grad_()
    target = torch.tensor([0, 1, 1])
    for call in (
        lambda: F.cross_entropy(x, target, weight=live),
        lambda: F.nll_loss(x, target, weight=live),
        lambda: F.nll_loss(x.reshape(1, 2, 3, 1), torch.zeros(1, 3, 1, dtype=torch.int64), weight=live),
        lambda: F.multi_margin_loss(x, target, weight=live),
        lambda: F.batch_norm(x, live, torch.ones(2)),
        lambda: F.batch_norm(x, torch.zeros(2), live, training=True),
        lambda: F.fractional_max_pool2d(x[None, None], 2, (1, 1), _random_samples=live.expand(1, 1, 2)),
    ):
        with pytest.raises(RuntimeError, match="is not differentiable with respect to argument"):
            call()
        with torch.no_grad():
            call()


def test_a_margin_that_is_just_kept_has_no_gradient() -> None:
    x = torch.tensor([[1.0, 0.0, 2.0, 1.0]], requires_grad=True)
    (g,) = torch.autograd.grad(torch.nn.functional.multi_margin_loss(x, torch.tensor([0])), x)
    assert g.tolist() == [[-0.5, 0.0, 0.25, 0.25]]
    (g,) = torch.autograd.grad(torch.nn.functional.multilabel_margin_loss(x, torch.tensor([[0, 3, -1, 1]])), x)
    assert g.tolist() == [[-0.25, 0.0, 0.5, -0.25]]


FIRST, SECOND, SIDES = (
    torch.tensor([[0.5, 0.25], [0.75, 1.5]]),
    torch.tensor([[1.0, 0.5], [0.25, 0.75]]),
    torch.tensor([1.0, -1.0]),
)
UNREDUCED = {
    "kl_div": (FIRST, SECOND),
    "binary_cross_entropy_with_logits": (FIRST, SECOND),
    "hinge_embedding_loss": (FIRST[0], SIDES),
    "cosine_embedding_loss": (FIRST, SECOND, SIDES),
    "margin_ranking_loss": (FIRST[0], SECOND[0], SIDES),
    "triplet_margin_loss": (FIRST, SECOND, FIRST + 1),
    "ctc_loss": (
        FIRST.new_zeros(4, 2, 3).log_softmax(2),
        torch.tensor([[1, 2], [1, 1]]),
        torch.tensor([4, 4]),
        torch.tensor([2, 1]),
    ),
}


@pytest.mark.parametrize("name", UNREDUCED)
def test_functions_of_torch_itself_reduce_only_where_they_are_told_to(name):
    args, function = UNREDUCED[name], getattr(torch, name)
    assert function(*args).tolist() == function(*args, reduction=0).tolist() and function(*args).ndim
    mean = function(*args, reduction=1)
    assert not mean.ndim and getattr(torch.ops.aten, name)(*args).item() == mean.item()
    assert torch.compile(function)(*args).shape == function(*args).shape


def test_margins_that_are_kept_count_nothing_whatever_their_weight():
    for row, weight in (([1.0, math.nan, 0.0], None), ([5.0, 1.0, 4.0], torch.tensor([math.inf, 1.0, 1.0]))):
        for p in (1, 2):
            x = torch.tensor([row], requires_grad=True)
            loss = F.multi_margin_loss(x, torch.tensor([0]), p=p, weight=weight)
            loss.backward()
            assert (loss.item(), x.grad.isnan().any().item()) == (0.0, False)


@pytest.mark.parametrize("beta", [0.1, 0.5, 3.0])
def test_smooth_l1_of_any_beta_is_the_sum_of_its_elements(beta):
    x, y = torch.randn(300, 7), torch.randn(300, 7)
    each = torch.nn.functional.smooth_l1_loss(x.double(), y.double(), beta=beta, reduction="none")
    for reduction in ("mean", "sum"):
        found = torch.nn.functional.smooth_l1_loss(x, y, beta=beta, reduction=reduction)
        assert found.item() == pytest.approx(getattr(each, reduction)().item(), rel=1e-6)
