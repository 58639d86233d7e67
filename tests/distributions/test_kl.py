"""Divergences: recorded numbers, agreement with sampled estimates, and the choice of a formula."""

import math

import pytest

import pullback as torch
from pullback.distributions import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    ContinuousBernoulli,
    Dirichlet,
    Exponential,
    Gamma,
    Gumbel,
    Independent,
    Laplace,
    LogNormal,
    LowRankMultivariateNormal,
    MultivariateNormal,
    Normal,
    Pareto,
    Poisson,
    Uniform,
    Wishart,
    kl_divergence,
    register_kl,
)  # fmt: skip
from pullback.distributions.kl import _KL_REGISTRY


def t(value):
    return torch.tensor(value, dtype=torch.float64)


LINE = [Normal(t(0.3), t(0.8)), Laplace(t(0.1), t(0.7)), Gumbel(t(0.2), t(0.9))]
HALF_LINE = [Exponential(t(1.3)), Gamma(t(2.2), t(1.7)), Pareto(t(0.5), t(5.0))]
UNIT = [Beta(t(2.5), t(1.5)), ContinuousBernoulli(t(0.3)), Uniform(t(0.6), t(0.9))]
PAIRS = [(p, q) for p in UNIT + HALF_LINE + LINE for q in UNIT + HALF_LINE + LINE if (type(p), type(q)) in _KL_REGISTRY]


@pytest.mark.parametrize("p, q", PAIRS, ids=lambda d: type(d).__name__)
def test_divergences_are_means_of_log_ratios(p, q):
    got = kl_divergence(p, q).item()
    torch.manual_seed(0)
    x = p.sample((20000,))
    inside = q.support.check(x)
    if got == math.inf:
        assert not inside.all()
    else:
        assert inside.all()
        assert got == pytest.approx((p.log_prob(x) - q.log_prob(x)).mean().item(), abs=0.03, rel=0.06)


def test_every_pair_of_pytorch_is_there():
    assert len(_KL_REGISTRY) == 87


def test_normal_vectors_agree_however_their_covariance_is_given():
    w, d = t([[1.0], [0.2], [0.3]]), t([1.0, 2.0, 0.5])
    low = LowRankMultivariateNormal(t([1.0, 2.0, 3.0]), w, d)
    full = MultivariateNormal(low.loc, low.covariance_matrix)
    other_low = LowRankMultivariateNormal(t([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]), w * 2, d + 1)
    other_full = MultivariateNormal(other_low.loc, precision_matrix=other_low.precision_matrix)
    expected = kl_divergence(full, other_full)
    assert expected.shape == (2,)
    for p in (low, full):
        for q in (other_low, other_full):
            assert kl_divergence(p, q).tolist() == pytest.approx(expected.tolist())
    with pytest.raises(ValueError, match="different event shapes cannot be computed"):
        kl_divergence(full, MultivariateNormal(t([0.0]), t([[1.0]])))


def test_discrete_divergences():
    p, q = Categorical(t([0.2, 0.8, 0.0])), Categorical(t([0.5, 0.5, 0.0]))
    assert kl_divergence(p, q).item() == pytest.approx(0.2 * math.log(0.4) + 0.8 * math.log(1.6))
    assert kl_divergence(q, Categorical(t([1.0, 0.0, 0.0]))).item() == math.inf
    sure = Bernoulli(t([0.0, 1.0]))
    assert kl_divergence(sure, Bernoulli(t(0.5))).tolist() == pytest.approx([math.log(2)] * 2, abs=1e-6)
    assert kl_divergence(Bernoulli(t(0.5)), sure).tolist() == [math.inf, math.inf]
    assert kl_divergence(Poisson(t(2.0)), Poisson(t(3.0))).item() == pytest.approx(2 * math.log(2 / 3) + 1)
    assert kl_divergence(Poisson(t(2.0)), Bernoulli(t(0.5))).item() == math.inf
    with pytest.raises(NotImplementedError, match="q.total_count > p.total_count"):
        kl_divergence(Binomial(3, t(0.3)), Binomial(4, t(0.3)))


def test_families_and_wrappers():
    p, q = Wishart(t(4.0), t([[2.0, 0.5], [0.5, 1.0]])), Wishart(t(6.0), t([[1.0, 0.0], [0.0, 1.0]]))
    assert kl_divergence(p, p).item() == pytest.approx(0, abs=1e-9)
    assert kl_divergence(p, q).item() > 0
    a, b = Normal(t([0.0, 1.0]), t([1.0, 2.0])), Normal(t([0.5, 0.5]), t([1.0, 1.0]))
    each = kl_divergence(a, b)
    assert kl_divergence(Independent(a, 1), Independent(b, 1)).item() == pytest.approx(each.sum().item())
    assert kl_divergence(LogNormal(a.loc, a.scale), LogNormal(b.loc, b.scale)).tolist() == each.tolist()
    assert kl_divergence(Dirichlet(t([1.0, 2.0])), Dirichlet(t([2.0, 1.0]))).item() == pytest.approx(1.0)
    with pytest.raises(NotImplementedError, match="different exponential families"):
        kl_divergence(Bernoulli(t(0.5)), Normal(t(0.0), t(1.0)))
    with pytest.raises(NotImplementedError, match=r"No KL\(p \|\| q\) is implemented for p type Normal and q type Cat"):
        kl_divergence(a, Categorical(t([0.5, 0.5])))


def test_the_nearest_formula_is_taken():
    class Mine(Normal):
        pass

    assert kl_divergence(Mine(0.0, 1.0), Normal(0.0, 1.0)).item() == 0
    register_kl(Mine, Normal)(lambda p, q: "by p")
    register_kl(Normal, Mine)(lambda p, q: "by q")
    try:
        assert kl_divergence(Mine(0.0, 1.0), Normal(0.0, 1.0)) == "by p"
        with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(Mine, Mine\)"):
            assert kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0)) == "by p"
    finally:
        del _KL_REGISTRY[Mine, Normal], _KL_REGISTRY[Normal, Mine]
    with pytest.raises(TypeError, match="Expected type_p to be a class of distributions but got 3"):
        register_kl(3, Normal)(print)
