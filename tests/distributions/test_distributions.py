"""Every family against numbers recorded from PyTorch 2.13: probabilities, moments, and samples of one seed."""

import copy
import math
import pickle
import subprocess
import sys

import pytest

import pullback as torch
from pullback.distributions import (
    AffineTransform,
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Cauchy,
    Chi2,
    ContinuousBernoulli,
    Dirichlet,
    Distribution,
    Exponential,
    FisherSnedecor,
    Gamma,
    GeneralizedPareto,
    Geometric,
    Gumbel,
    HalfCauchy,
    HalfNormal,
    Independent,
    InverseGamma,
    Kumaraswamy,
    Laplace,
    LKJCholesky,
    LogisticNormal,
    LogNormal,
    LowRankMultivariateNormal,
    MixtureSameFamily,
    Multinomial,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Pareto,
    Poisson,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
    SigmoidTransform,
    StudentT,
    TransformedDistribution,
    Uniform,
    VonMises,
    Weibull,
    Wishart,
)  # fmt: skip


def t(value):
    return torch.tensor(value, dtype=torch.float64)


# make, value, its log probability, entropy, mean, variance, a sample of seed 0
RECORDED = [
    (lambda: Bernoulli(t(0.3)), t(1.0), -1.203973, 0.610864, [0.3], [0.21], [0.0]),
    (lambda: Bernoulli(logits=t(-1.2)), t(0.0), -0.263282, 0.541053, [0.231475], [0.177894], [0.0]),
    (lambda: Beta(t(1.5), t(0.7)), t(0.4), -0.348035, -0.232256, [0.681818], [0.067794], [0.992554]),
    (lambda: Binomial(6, t(0.3)), t(2.0), -1.126595, 1.510978, [1.8], [1.26], [4.0]),
    (lambda: Categorical(t([0.2, 0.5, 0.3])), torch.tensor(1), -0.693147, 1.029653, [math.nan], [math.nan], [2]),
    (lambda: Categorical(logits=t([0.1, -2.0])), torch.tensor(0), -0.11552, 0.344623, [math.nan], [math.nan], [0]),
    (lambda: Cauchy(t(0.5), t(2.0)), t(1.3), -1.986297, 3.224171, [math.nan], [math.inf], [21.695459]),
    (lambda: Chi2(t(3.0)), t(2.2), -1.62471, 2.05412, [3.0], [6.0], [7.496334]),
    (lambda: ContinuousBernoulli(t(0.2)), t(0.7), -0.35609, -0.076414, [0.388014], [0.075898], [0.937941]),
    (lambda: ContinuousBernoulli(t(0.5)), t(0.7), 0.0, 0.0, [0.5], [0.083333], [0.970053]),
    (lambda: Dirichlet(t([0.5, 1.5, 3.0])), t([0.2, 0.3, 0.5]),
     0.849762, -1.866657, [0.1, 0.3, 0.6], [0.015, 0.035, 0.04], [0.00024, 0.106551, 0.893209]),
    (lambda: Exponential(t(0.7)), t(1.1), -1.126675, 1.356675, [1.428571], [2.040816], [5.011895]),
    (lambda: FisherSnedecor(t(5.0), t(7.0)), t(1.1), -0.875291, None, [1.4], [2.613333], [2.785974]),
    (lambda: Gamma(t(1.7), t(0.4)), t(2.5), -1.820483, 2.3745, [4.25], [10.625], [10.189127]),
    (lambda: GeneralizedPareto(t(1.0), t(2.0), t(0.2)), t(3.0), -1.787077, 1.893147, [3.5], [10.416667], [11.171089]),
    (lambda: GeneralizedPareto(t(1.0), t(2.0), t(0.0)), t(3.0), -1.693147, 1.693147, [3.0], [4.0], [8.016652]),
    (lambda: Geometric(t(0.3)), t(2.0), -1.917323, 2.036214, [2.333333], [7.777778], [0.0]),
    (lambda: Gumbel(t(0.5), t(2.0)), t(1.3), -1.763467, 2.270363, [1.654431], [6.579736], [7.486325]),
    (lambda: HalfCauchy(t(2.0)), t(1.3), -1.497146, 2.531024, [math.inf], [math.inf], [21.195459]),
    (lambda: HalfNormal(t(2.0)), t(1.3), -1.130189, 1.418939, [1.595769], [1.453521], [3.081992]),
    (lambda: InverseGamma(t(3.5), t(2.0)), t(1.3), -1.494059, 0.429916, [0.8], [0.426667], [0.295133]),
    (lambda: Kumaraswamy(t(2.0), t(1.5)), t(0.4), 0.095145, -0.125093, [0.589049], [0.053022], [0.141653]),
    (lambda: LKJCholesky(2, t(1.5)), t([[1.0, 0.0], [0.6, 0.8]]),
     -0.674726, None, None, None, [1.0, 0.0, -0.173688, 0.984801]),
    (lambda: Laplace(t(0.5), t(2.0)), t(1.3), -1.786294, 2.386294, [0.5], [8.0], [6.130358]),
    (lambda: LogNormal(t(0.5), t(0.6)), t(1.3), -0.748909, 1.408113, [1.973878], [1.688335], [4.156185]),
    (lambda: LogisticNormal(t([0.1, 0.2]), t([1.0, 0.5])), t([0.2, 0.3, 0.5]),
     1.036741, None, None, None, [0.720682, 0.143379, 0.135939]),
    (lambda: LowRankMultivariateNormal(t([0.1, 0.2]), t([[1.0], [0.5]]), t([0.3, 0.4])), t([0.5, -0.2]),
     -1.974919, 2.57828, [0.1, 0.2], [1.3, 0.65], [1.480278, -0.407489]),
    (lambda: MixtureSameFamily(Categorical(t([0.4, 0.6])), Normal(t([0.0, 3.0]), t([1.0, 0.5]))), t(2.0),
     -2.448935, None, [1.8], [2.71], [3.284216]),
    (lambda: Multinomial(5, t([0.2, 0.5, 0.3])), t([1.0, 3.0, 1.0]),
     -1.89712, 2.591809, [1.0, 2.5, 1.5], [0.8, 1.25, 1.05], [0.0, 2.0, 3.0]),
    (lambda: MultivariateNormal(t([0.1, 0.2]), t([[2.0, 0.5], [0.5, 1.0]])), t([0.5, -0.2]),
     -2.300542, 3.117685, [0.1, 0.2], [2.0, 1.0], [2.279298, 0.470347]),
    (lambda: MultivariateNormal(t([0.1, 0.2]), precision_matrix=t([[2.0, 0.5], [0.5, 1.0]])), t([0.5, -0.2]),
     -1.718069, 2.558069, [0.1, 0.2], [0.571429, 1.142857], [1.264884, -0.675871]),
    (lambda: NegativeBinomial(4, t(0.3)), t(2.0), -1.53206, None, [1.714286], [2.44898], [4.0]),
    (lambda: Normal(t(0.5), t(2.0)), t(1.3), -1.692086, 2.112086, [0.5], [4.0], [3.581992]),
    (lambda: OneHotCategorical(t([0.2, 0.5, 0.3])), t([0.0, 1.0, 0.0]),
     -0.693147, 1.029653, [0.2, 0.5, 0.3], [0.16, 0.25, 0.21], [0.0, 0.0, 1.0]),
    (lambda: Pareto(t(1.0), t(3.0)), t(1.3), 0.049155, 0.234721, [1.5], [0.75], [3.220195]),
    (lambda: Poisson(t(2.5)), t(3.0), -1.542887, None, [2.5], [2.5], [6.0]),
    (lambda: RelaxedBernoulli(t(0.7), t(0.3)), t(0.4), -0.3942, None, None, None, [0.977202]),
    (lambda: RelaxedOneHotCategorical(t(0.7), t([0.2, 0.8])), t([0.3, 0.7]),
     -0.335649, None, None, None, [0.816356, 0.183644]),
    (lambda: StudentT(t(4.0), t(0.5), t(2.0)), t(1.3), -1.772028, 2.374907, [0.5], [8.0], [4.299681]),
    (lambda: Uniform(t(-1.0), t(2.0)), t(1.3), -1.098612, 1.098612, [0.5], [0.75], [1.910159]),
    (lambda: VonMises(t(0.5), t(2.0)), t(1.3), -1.268457, None, [0.5], [0.302225], [0.701521]),
    (lambda: Weibull(t(2.0), t(1.5)), t(1.3), -1.02712, 1.480087, [1.805491], [1.502761], [4.617745]),
    (lambda: Wishart(t(4.0), t([[2.0, 0.5], [0.5, 1.0]])), t([[5.0, 1.0], [1.0, 3.0]]),
     -5.881017, 7.140811, [8.0, 2.0, 2.0, 4.0], [32.0, 9.0, 9.0, 8.0], [1.738502, 1.74467, 1.74467, 2.641247]),
    (lambda: Independent(Normal(t([0.0, 1.0]), t([1.0, 2.0])), 1), t([0.5, 0.5]),
     -2.687274, 3.531024, [0.0, 1.0], [1.0, 4.0], [1.540996, 0.413142]),
    (lambda: TransformedDistribution(Normal(t(0.5), t(2.0)), [SigmoidTransform(), AffineTransform(1.0, -3.0)]), t(0.2),
     -1.364404, None, None, None, [-1.918798]),
]  # fmt: skip
FAMILIES = [row[0] for row in RECORDED]
MEMBERS = pytest.mark.parametrize("make", FAMILIES, ids=lambda make: type(make()).__name__)


def listed(value):
    return value.reshape(-1).tolist()


def or_none(get):
    """What a distribution does not implement is recorded as None."""
    try:
        return get()
    except NotImplementedError:
        return None


@pytest.mark.parametrize("make, value, log_prob, entropy, mean, variance, sample", RECORDED)
def test_recorded_numbers(make, value, log_prob, entropy, mean, variance, sample):
    d = make()
    assert d.log_prob(value).item() == pytest.approx(log_prob, abs=2e-6)
    got = or_none(d.entropy)
    assert got is None if entropy is None else got.item() == pytest.approx(entropy, abs=2e-6)
    for name, expected in (("mean", mean), ("variance", variance)):
        got = or_none(lambda name=name: getattr(d, name))
        assert got is None if expected is None else listed(got) == pytest.approx(expected, abs=2e-6, nan_ok=True)
    torch.manual_seed(0)
    assert listed(d.sample()) == pytest.approx(sample, abs=2e-6)


@MEMBERS
def test_shapes_and_expansion(make):
    d = make()
    wide = d.expand((3, 2))
    assert wide.batch_shape == (3, 2) and wide.event_shape == d.event_shape
    x = wide.sample((4,))
    assert x.shape == (4, 3, 2) + tuple(d.event_shape)
    assert not x.requires_grad
    log_prob = wide.log_prob(x)
    assert log_prob.shape == (4, 3, 2)
    assert listed(log_prob) == pytest.approx(listed(d.log_prob(x)), nan_ok=True)
    assert wide.support.check(x).all()
    for get in (lambda e: e.entropy(), lambda e: e.mean, lambda e: e.variance):
        one, all_of_them = or_none(lambda get=get: get(d)), or_none(lambda get=get: get(wide))
        assert (one is None) == (all_of_them is None)
        if one is not None:
            assert listed(one.expand_as(all_of_them)) == pytest.approx(listed(all_of_them), nan_ok=True)


@MEMBERS
def test_copies_and_pickles_draw_the_same(make):
    d = make()
    for inplace in (copy.deepcopy(d), pickle.loads(pickle.dumps(d))):
        torch.manual_seed(1)
        expected = listed(d.sample((2,)))
        torch.manual_seed(1)
        assert listed(inplace.sample((2,))) == expected


@pytest.mark.parametrize(
    "family, parameters",
    [
        (Normal, (0.5, 2.0)), (Gamma, (1.7, 0.4)), (Beta, (1.5, 0.7)), (StudentT, (4.0, 0.5, 2.0)),
        (Uniform, (-1.0, 2.0)), (Laplace, (0.5, 2.0)), (Gumbel, (0.5, 2.0)), (Weibull, (2.0, 1.5)),
        (ContinuousBernoulli, (0.2,)), (Kumaraswamy, (2.0, 1.5)), (GeneralizedPareto, (1.0, 2.0, 0.2)),
    ],
)  # fmt: skip
def test_samples_move_with_their_parameters(family, parameters):
    """At a fixed place in the distribution: d cdf = 0, and the mean of samples moves as the mean does."""
    leaves = [t(p).requires_grad_() for p in parameters]
    torch.manual_seed(0)
    samples = family(*leaves).rsample((20000,))
    moved = torch.autograd.grad(samples.mean(), leaves)
    expected = torch.autograd.grad(family(*leaves).mean, leaves, allow_unused=True)
    for got, want in zip(moved, expected):
        assert got.item() == pytest.approx(0.0 if want is None else want.item(), abs=0.15, rel=0.1)


def test_gamma_and_dirichlet_gradients():
    c = t([0.7, 2.5]).requires_grad_()
    torch.manual_seed(3)
    x = Gamma(c, t([1.0, 1.0])).rsample()
    (g,) = torch.autograd.grad(x.sum(), c)
    eps = 1e-5
    slope = torch.special.gammainc(c.detach() + eps, x) - torch.special.gammainc(c.detach() - eps, x)
    density = Gamma(c, t([1.0, 1.0])).log_prob(x).exp()
    assert listed(g) == pytest.approx(listed(-slope / (2 * eps) / density), rel=1e-5)
    shares = Dirichlet(c).rsample((5,))
    (g,) = torch.autograd.grad((shares**2).sum(), c)
    assert torch.isfinite(g).all()
    assert torch.autograd.grad(Dirichlet(c).rsample().sum(), c)[0].abs().max() < 1e-10  # shares always sum to one


def test_gradients_of_wishart_samples():
    factor = t([[1.0, 0.0], [0.3, 0.6]]).requires_grad_()
    Wishart(t(5.0), scale_tril=factor).rsample((3,)).sum().backward()
    assert torch.isfinite(factor.grad).all()


def test_straight_through_gradient_is_the_probabilities():
    logits = t([0.1, -0.4, 1.0]).requires_grad_()
    d = OneHotCategoricalStraightThrough(logits=logits)
    weights = t([1.0, 2.0, 3.0])
    (g,) = torch.autograd.grad((d.rsample() * weights).sum(), logits, retain_graph=True)
    (expected,) = torch.autograd.grad((d.probs * weights).sum(), logits)
    assert listed(g) == pytest.approx(listed(expected))


@MEMBERS
def test_cdf_and_icdf_are_inverse(make):
    d = make()
    p = torch.full(d.batch_shape, 0.3, dtype=torch.float64)
    x = or_none(lambda: d.icdf(p))
    if x is not None:
        assert listed(d.cdf(x)) == pytest.approx(listed(p))


def test_supports_in_full():
    assert listed(Bernoulli(t([0.2, 0.3])).enumerate_support()) == [0, 0, 1, 1]
    assert Bernoulli(t([0.2, 0.3])).enumerate_support(expand=False).shape == (2, 1)
    assert listed(Categorical(t([0.2, 0.8])).enumerate_support()) == [0, 1]
    assert listed(Binomial(2, t([0.2])).enumerate_support()) == [0, 1, 2]
    assert OneHotCategorical(t([[0.2, 0.8]])).enumerate_support().shape == (2, 1, 2)
    with pytest.raises(NotImplementedError, match="Inhomogeneous total count not supported by `entropy`"):
        Binomial(torch.tensor([1, 2]), t([0.2, 0.3])).entropy()
    with pytest.raises(NotImplementedError, match="Enumeration over cartesian product"):
        Independent(Bernoulli(t([0.2, 0.3])), 1).enumerate_support()


@pytest.mark.parametrize(
    "make, shown",
    [
        (lambda: Normal(0.0, 1.0), "Normal(loc: 0.0, scale: 1.0)"),
        (lambda: Normal(torch.zeros(2), 1.0), "Normal(loc: torch.Size([2]), scale: torch.Size([2]))"),
        (lambda: Binomial(3, t([0.5])), "Binomial(total_count: tensor([3.], dtype=torch.float64), "
         "probs: tensor([0.5000], dtype=torch.float64))"),
        (lambda: Independent(Normal(torch.zeros(3), 1.0), 1),
         "Independent(Normal(loc: torch.Size([3]), scale: torch.Size([3])), 1)"),
        (lambda: MixtureSameFamily(Categorical(torch.ones(2)), Normal(torch.zeros(2), 1.0)),
         "MixtureSameFamily(\n  Categorical(probs: torch.Size([2]), logits: torch.Size([2])),\n"
         "  Normal(loc: torch.Size([2]), scale: torch.Size([2])))"),
        (lambda: TransformedDistribution(Normal(0.0, 1.0), SigmoidTransform()), "TransformedDistribution()"),
    ],
)  # fmt: skip
def test_reprs(make, shown):
    assert repr(make()) == shown


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Normal(0.0, -1.0),
         r"Expected parameter scale \(Tensor of shape \(\)\) of distribution Normal\(loc: 0.0, scale: -1.0\) to satisfy "
         r"the constraint GreaterThan\(lower_bound=0.0\), but found invalid values:\n-1.0"),
        (lambda: Uniform(2.0, 1.0), r"to satisfy the constraint LessThan\(upper_bound=1.0\)"),
        (lambda: Bernoulli(), "Either `probs` or `logits` must be specified, but not both."),
        (lambda: Normal("a", 1), "Input arguments must all be instances of Number, torch.Tensor"),
        (lambda: Geometric(0.0), "to be positive but found invalid values"),
        (lambda: Categorical(t(0.5)), "`probs` parameter must be at least one-dimensional."),
        (lambda: MultivariateNormal(t([0.0])), "Exactly one of covariance_matrix or precision_matrix or scale_tril"),
        (lambda: Independent(Normal(0.0, 1.0), 1), "Expected reinterpreted_batch_ndims <= "),
        (lambda: LKJCholesky(1), "Expected dim to be an integer greater than or equal to 2. Found dim=1."),
        (lambda: Wishart(1.0, torch.eye(2)), "Value of df=1.0 expected to be greater than ndim - 1 = 1."),
        (lambda: Normal(0.0, 1.0).log_prob(3), "The value argument to log_prob must be a Tensor"),
        (lambda: Normal(torch.zeros(2), 1.0).log_prob(torch.zeros(3)),
         r"Value is not broadcastable with batch_shape\+event_shape: torch.Size\(\[3\]\) vs torch.Size\(\[2\]\)."),
        (lambda: MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(3)),
         "The right-most size of value must match event_shape"),
        (lambda: Gamma(1.0, 1.0).log_prob(torch.tensor(-1.0)),
         r"to be within the support \(GreaterThanEq\(lower_bound=0.0\)\) of the distribution "
         r"Gamma\(concentration: 1.0, rate: 1.0\), but found invalid values:\n-1.0"),
        (lambda: TransformedDistribution(Normal(0.0, 1.0), 3), "transforms must be a Transform or list, but was 3"),
        (lambda: MixtureSameFamily(Normal(0.0, 1.0), Normal(0.0, 1.0)), "needs to be an  instance of"),
    ],
)  # fmt: skip
def test_refusals(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_validation_can_be_turned_off():
    assert Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    assert HalfNormal(1.0, validate_args=False).log_prob(torch.tensor(-1.0)).item() == -math.inf
    Distribution.set_default_validate_args(False)
    try:
        Normal(0.0, -1.0)
    finally:
        Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError):
        Distribution.set_default_validate_args("yes")


def test_subclasses_with_their_own_init_say_how_they_expand():
    class Named(Normal):
        def __init__(self, name, loc, scale):
            super().__init__(loc, scale)
            self.name = name

    class Expandable(Named):
        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Expandable, _instance)
            return super().expand(batch_shape, _instance=new)

    with pytest.raises(NotImplementedError, match="Subclass Named of Normal that defines a custom __init__ method"):
        Named("x", 0.0, 1.0).expand((2,))
    assert Expandable("x", 0.0, 1.0).expand((2,)).loc.shape == (2,)


def test_what_is_absent_says_so():
    class Bare(Distribution):
        arg_constraints = {}

    d = Bare()
    for get in (lambda: d.mean, lambda: d.sample(), lambda: d.expand((2,)), lambda: d.entropy(), lambda: d.support):
        with pytest.raises(NotImplementedError):
            get()
    with pytest.raises(NotImplementedError, match="does not implement mode"):
        d.mode
    with pytest.warns(UserWarning, match="does not define `support`"):
        d._validate_sample(torch.tensor(1.0))
    with pytest.warns(FutureWarning, match="will be deprecated"):
        assert Normal(0.0, 1.0).sample_n(3).shape == (3,)


def test_exponential_families_agree_with_their_closed_entropies():
    from pullback.distributions import ExponentialFamily

    for d in (Normal(t(0.5), t(2.0)), Gamma(t(1.7), t(0.4)), Exponential(t(0.7)), Bernoulli(t(0.3))):
        assert ExponentialFamily.entropy(d).item() == pytest.approx(d.entropy().item())


def test_importing_the_package_leaves_distributions_out():
    code = "import sys, pullback; assert not [m for m in sys.modules if 'distributions' in m]; pullback.distributions"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_arguments_are_checked_for_all_examples_of_a_batch():
    x = torch.rand(2, 3) + 0.1

    def probability(p):
        return Normal(p, p).log_prob(p) + Geometric(p / 2).entropy() + MultivariateNormal(p, torch.diag(p)).log_prob(p)

    torch.testing.assert_close(torch.vmap(probability)(x), torch.stack([probability(p) for p in x]))
    drawn = torch.vmap(lambda p: VonMises(p, p).sample(), randomness="different")(x)
    assert drawn.shape == x.shape and drawn.unique().numel() == x.numel()
    with pytest.raises(ValueError, match="Expected parameter scale"):
        torch.vmap(lambda p: Normal(p, p).log_prob(p))(x - torch.tensor([[0.0], [9.0]]))
    with pytest.raises(ValueError, match="to be within the support"):
        torch.vmap(lambda p: Gamma(p, p).log_prob(p - 9))(x)
