"""Means, variances, covariances, norms and distances."""

import warnings

import numpy as np
import pytest

import pullback as torch


def test_variances():
    a = np.random.default_rng(0).standard_normal((3, 4, 5)) + 1e4
    t = torch.from_numpy(a)
    for dims in (None, 0, 2, (0, 2), (1, 2)):
        np.testing.assert_allclose(t.var(dims).numpy(), a.var(dims, ddof=1))
        np.testing.assert_allclose(t.std(dims, correction=0, keepdim=True).numpy(), a.std(dims, keepdims=True))
    spread, mean = torch.std_mean(t, 1, False, True)
    np.testing.assert_allclose(spread.numpy(), a.std(1, keepdims=True))
    np.testing.assert_allclose(mean.numpy(), a.mean(1, keepdims=True))
    assert t.std(True).item() == t.std().item() != t.std(False).item()


def test_variance_of_large_inputs_and_of_complex_ones():
    a = (np.random.default_rng(0).standard_normal((400, 500)) + 100).astype(np.float32)
    for dims in (None, 0, 1):
        np.testing.assert_allclose(
            torch.from_numpy(a).var(dims).numpy(), a.astype(np.float64).var(dims, ddof=1), rtol=1e-4
        )
    c = np.array([1 + 2j, 3 - 1j])
    assert torch.from_numpy(c).var().dtype is torch.float64
    np.testing.assert_allclose(torch.from_numpy(c).var().item(), c.var(ddof=1))


def test_degrees_of_freedom():
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert torch.ones(1).var().isnan()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.tensor([1.0, 2.0]).var(correction=5).item() == float("inf")
    with pytest.raises(RuntimeError, match="std and var only support floating point and complex dtypes"):
        torch.tensor([1, 2]).std()


def test_logsumexp_of_extremes():
    t = torch.tensor([[1000.0, 1000.0], [-float("inf"), -float("inf")], [float("inf"), 0.0]])
    np.testing.assert_allclose(t.logsumexp(1).numpy(), [1000 + np.log(2), -np.inf, np.inf], rtol=1e-6)
    assert torch.logsumexp(torch.tensor([1, 2]), 0).dtype is torch.float32


def test_nan_is_left_out():
    t = torch.tensor([1.0, float("nan"), 3.0], requires_grad=True)
    assert t.nansum().item() == 4 and t.nanmean().item() == 2
    assert torch.autograd.grad(t.nanmean(), t)[0].tolist() == [0.5, 0, 0.5]


def test_covariances():
    a = np.random.default_rng(0).standard_normal((3, 6))
    f, w = np.array([1, 2, 1, 1, 3, 1]), np.linspace(0.5, 1.5, 6)
    got = torch.cov(torch.from_numpy(a), fweights=torch.from_numpy(f), aweights=torch.from_numpy(w))
    np.testing.assert_allclose(got.numpy(), np.cov(a, fweights=f, aweights=w))
    np.testing.assert_allclose(torch.corrcoef(torch.from_numpy(a)).numpy(), np.corrcoef(a))
    with pytest.raises(RuntimeError, match="fweights cannot be negative"):
        torch.cov(torch.from_numpy(a), fweights=torch.from_numpy(-f))


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_distances(p):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 4, 3)), rng.standard_normal((5, 3))
    d = np.abs(a[..., :, None, :] - b[None, None])
    want = (d != 0).sum(-1) if p == 0 else d.max(-1) if p == float("inf") else (d**p).sum(-1) ** (1 / p)
    np.testing.assert_allclose(torch.cdist(torch.from_numpy(a), torch.from_numpy(b), p).numpy(), want)
    rows = torch.from_numpy(b)
    np.testing.assert_allclose(torch.pdist(rows, p).numpy(), torch.cdist(rows, rows, p).numpy()[np.triu_indices(5, 1)])


def test_distances_by_products_where_there_are_many_rows():
    a = np.random.default_rng(0).standard_normal((60, 3))
    t = torch.tensor(a, requires_grad=True)
    result = torch.cdist(t, t.detach())
    np.testing.assert_allclose(result.detach().numpy(), np.linalg.norm(a[:, None] - a, axis=-1), atol=1e-6)
    assert torch.autograd.grad(result.sum(), t)[0].isfinite().all()


def test_norms_by_their_older_names():
    t = torch.tensor([[3.0, 0.0], [0.0, 4.0]])
    assert t.norm().item() == 5 and t.norm("nuc").item() == 7 and torch.norm(t, 1, 0).tolist() == [3, 4]
    assert torch.norm_except_dim(t, 2, 1).shape == (1, 2)
    np.testing.assert_allclose(t.renorm(2, 0, 3.5).numpy(), [[3, 0], [0, 3.5]], rtol=1e-6)
    with pytest.raises(RuntimeError, match="needs at least 2 dimensions"):
        torch.ones(2).renorm(2, 0, 1.0)
    assert torch.cosine_similarity(t, t).tolist() == [1, 1]


@pytest.mark.parametrize("function", [torch.nansum, torch.nanmean, lambda x: x.nansum(0)])
def test_what_is_left_out_has_no_tangent(function):
    """A NaN is often the end of a call whose derivative is NaN there, too: neither is part of the sum."""
    x = torch.tensor([4.0, -1.0, 9.0])
    value, tangent = torch.func.jvp(lambda x: function(x.sqrt()), (x,), (torch.ones(3),))
    count = 2 if function is torch.nanmean else 1
    assert value.item() == 5 / count and abs(tangent.item() - (1 / 4 + 1 / 6) / count) < 1e-6


def test_a_histogram_says_that_it_has_no_gradient() -> None:
    x = torch.linspace(-1, 1, 5, requires_grad=True)
    counts, _ = torch.histogram(x, 4, range=(-2.0, 2.0))
    with pytest.raises(RuntimeError, match="is not implemented"):
        counts.sum().backward()


def test_cov_without_degrees_of_freedom_is_positive_infinity():
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert torch.cov(torch.tensor([[1.0, 2.0, 4.0]]), correction=4).item() == float("inf")


def test_the_tangent_of_the_mean_of_nothing_is_nan() -> None:
    x = torch.zeros(0, 2)
    assert torch.func.jvp(torch.mean, (x,), (x,))[1].isnan().all()
    assert torch.func.jvp(lambda v: v.mean(0), (x,), (x,))[1].isnan().tolist() == [True, True]
    assert torch.func.jvp(torch.mean, (torch.ones(4),), (torch.arange(4.0),))[1].item() == 1.5
