"""Transforms: inverses, Jacobians against autograd, caching, shapes, composition."""

import gc
import math
import pickle

import pytest

import pullback as torch
from pullback.distributions import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    Normal,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    TransformedDistribution,
    biject_to,
    constraints,
    identity_transform,
    transform_to,
)  # fmt: skip


def t(value):
    return torch.tensor(value, dtype=torch.float64)


X = t([[0.3, -1.2, 0.7], [0.1, 0.2, -0.3]])
POINTWISE = [
    (ExpTransform(), X), (PowerTransform(t([2.0, 0.5, -1.0])), X.abs()), (SigmoidTransform(), X),
    (SoftplusTransform(), X), (TanhTransform(), X), (AffineTransform(t([1.0, 2.0, 3.0]), -2.0), X),
    (CumulativeDistributionTransform(Normal(t(0.5), t(2.0))), X), (ExpTransform().inv, X.abs()),
    (ComposeTransform([AffineTransform(1.0, 2.0), TanhTransform()]), X), (identity_transform, X),
    (CatTransform([ExpTransform(), AffineTransform(1.0, 2.0)], dim=-1, lengths=[1, 2]), X),
    (StackTransform([ExpTransform(), TanhTransform()], dim=0), X),
]  # fmt: skip
VECTORS = [
    (StickBreakingTransform(), X), (AffineTransform(1.0, t([1.0, -2.0, 0.5]), event_dim=1), X),
    (IndependentTransform(ExpTransform(), 1), X), (ReshapeTransform((3,), (3, 1)), X),
    (ComposeTransform([ExpTransform(), AffineTransform(0.0, 2.0, event_dim=1)]), X),
]  # fmt: skip
NAMED = {"ids": lambda v: type(v).__name__ if not isinstance(v, torch.Tensor) else ""}


@pytest.mark.parametrize("transform, x", POINTWISE + VECTORS + [(CorrCholeskyTransform(), X)], **NAMED)
def test_inverses_go_back(transform, x):
    y = transform(x)
    assert transform.codomain.check(y).all()
    assert transform.inv(y).reshape(-1).tolist() == pytest.approx(x.reshape(-1).tolist())
    assert transform.forward_shape(x.shape) == y.shape and transform.inverse_shape(y.shape) == x.shape
    assert transform.inv.inv is transform
    there, back = transform.log_abs_det_jacobian(x, y), transform.inv.log_abs_det_jacobian(y, x)
    assert there.reshape(-1).tolist() == pytest.approx((-back).reshape(-1).tolist())
    assert transform == transform.with_cache(1) or isinstance(
        transform, (CorrCholeskyTransform, IndependentTransform, ReshapeTransform, CumulativeDistributionTransform,
                    CatTransform, StackTransform),
    )  # fmt: skip


@pytest.mark.parametrize("transform, x", POINTWISE, **NAMED)
def test_pointwise_jacobians(transform, x):
    x = x.clone().requires_grad_()
    y = transform(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    got = transform.log_abs_det_jacobian(x, y)
    assert got.shape == x.shape
    assert got.reshape(-1).tolist() == pytest.approx(slope.abs().log().reshape(-1).tolist(), abs=1e-12)


@pytest.mark.parametrize("transform, x", VECTORS, **NAMED)
def test_vector_jacobians(transform, x):
    got = transform.log_abs_det_jacobian(x, transform(x))
    assert got.shape == (2,)
    for i in range(2):
        j = torch.autograd.functional.jacobian(lambda v: transform(v).reshape(-1)[:3], x[i])
        assert got[i].item() == pytest.approx(torch.linalg.det(j).abs().log().item(), abs=1e-9)


def test_correlation_jacobian():
    transform = CorrCholeskyTransform()
    below = torch.tensor([[1, 0], [2, 0], [2, 1]])

    def free_elements(v):
        return transform(v)[below[:, 0], below[:, 1]]

    j = torch.autograd.functional.jacobian(free_elements, X[0])
    got = transform.log_abs_det_jacobian(X[0], transform(X[0]))
    assert got.item() == pytest.approx(torch.linalg.det(j).abs().log().item())


def test_transforms_that_are_not_one_to_one():
    assert AbsTransform()(X).tolist() == X.abs().tolist() and not AbsTransform().bijective
    assert SoftmaxTransform()(X).sum(-1).tolist() == pytest.approx([1, 1])
    matrix = t([[0.5, 9.0], [0.3, -0.2]])
    factor = LowerCholeskyTransform()(matrix)
    assert factor.reshape(-1).tolist() == pytest.approx([math.exp(0.5), 0, 0.3, math.exp(-0.2)])
    assert LowerCholeskyTransform().inv(factor).reshape(-1).tolist() == pytest.approx([0.5, 0, 0.3, -0.2])
    assert constraints.positive_definite.check(PositiveDefiniteTransform()(matrix))
    with pytest.raises(NotImplementedError):
        SoftmaxTransform().log_abs_det_jacobian(X, X)


def test_the_cache_remembers_by_identity():
    cached = ExpTransform(cache_size=1)
    y = cached(X)
    assert cached(X) is y and cached.inv(y) is X
    assert ExpTransform().inv(y) is not X
    chain = ComposeTransform([ExpTransform(), AffineTransform(1.0, 2.0)], cache_size=1)
    assert chain.inv(chain(X)) is X
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        ExpTransform(cache_size=2)


def test_inverses_are_held_weakly_and_pickled_without():
    transform = ComposeTransform([ExpTransform().inv, AffineTransform(1.0, 2.0)])
    inverse = transform.inv
    assert transform.inv is inverse
    del inverse
    gc.collect()
    assert transform._inv() is None
    transform.inv
    assert pickle.loads(pickle.dumps(transform)) == transform
    assert repr(transform) == "ComposeTransform(\n    _InverseTransform(ExpTransform()),\n    AffineTransform()\n)"


def test_signs():
    assert AffineTransform(0.0, -2.0).sign == -1 and AffineTransform(0.0, 2.0).sign == 1
    assert PowerTransform(t([2.0, -1.0])).sign.tolist() == [1, -1]
    assert ComposeTransform([AffineTransform(0.0, -2.0), ExpTransform()]).sign == -1
    d = TransformedDistribution(Normal(t(0.0), t(1.0)), [AffineTransform(1.0, -2.0)])
    assert d.cdf(t(3.0)).item() == pytest.approx(Normal(t(0.0), t(1.0)).cdf(t(1.0)).item())
    assert d.icdf(t(0.2)).item() == pytest.approx(1 - 2 * 0.8416212335729143)


def test_event_dimensions_of_compositions():
    chain = ComposeTransform([ExpTransform(), StickBreakingTransform()])
    assert (chain.domain.event_dim, chain.codomain.event_dim) == (1, 1)
    reshape = ComposeTransform([ReshapeTransform((6,), (2, 3)), ExpTransform()])
    assert (reshape.domain.event_dim, reshape.codomain.event_dim) == (1, 2)
    with pytest.raises(ValueError, match="Please use either .domain.event_dim or .codomain.event_dim"):
        reshape.event_dim
    d = TransformedDistribution(Normal(torch.zeros(4, 6), 1.0), reshape)
    assert d.batch_shape == (4,) and d.event_shape == (2, 3)
    assert d.log_prob(d.sample()).shape == (4,)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: ReshapeTransform((2, 3), (5,)), ValueError, "in_shape, out_shape have different numbers of elements"),
        (lambda: ReshapeTransform((2,), (2,)).forward_shape((3,)), ValueError, "Shape mismatch"),
        (lambda: CorrCholeskyTransform().forward_shape((4,)), ValueError, "Input is not a flattened lower-diagonal"),
        (lambda: StickBreakingTransform().forward_shape(()), ValueError, "Too few dimensions on input"),
        (lambda: IndependentTransform(ExpTransform(), 1)(t(1.0)), ValueError, "Too few dimensions on input"),
        (lambda: CatTransform([ExpTransform()], dim=0)(X), AssertionError, r"x.size\(0\) = 2 must equal length 1"),
        (lambda: StackTransform([3]), AssertionError, "All elements of tseq must be Transform instances"),
        (lambda: TransformedDistribution(Normal(0.0, 1.0), StickBreakingTransform()), ValueError,
         r"base_distribution needs to have shape with size at least 1, but got torch.Size\(\[\]\)."),
    ],
)  # fmt: skip
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("registry", [biject_to, transform_to])
@pytest.mark.parametrize(
    "region",
    [
        constraints.real, constraints.positive, constraints.nonnegative, constraints.unit_interval, constraints.simplex,
        constraints.greater_than(2.0), constraints.less_than(-1.0), constraints.interval(-1.0, t([1.0, 2.0, 3.0])),
        constraints.half_open_interval(1.0, 4.0), constraints.real_vector, constraints.corr_cholesky,
        constraints.independent(constraints.positive, 1),
        constraints.cat([constraints.positive, constraints.real], -1, [1, 2]),
        constraints.stack([constraints.positive, constraints.unit_interval], 0),
    ],
    ids=repr,
)  # fmt: skip
def test_registries_lead_into_the_region(registry, region):
    assert region.check(registry(region)(X)).all()


def test_registries_say_what_they_do_not_know():
    with pytest.raises(NotImplementedError, match="Cannot transform _Boolean constraints"):
        biject_to(constraints.boolean)
    with pytest.raises(TypeError, match="Expected constraint to be either a Constraint subclass or instance"):
        biject_to.register(3, print)
