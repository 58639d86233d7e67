"""Scans, differences, integrals and numerical gradients."""

import numpy as np
import pytest

import pullback as torch


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (70, 300), (9, 2000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_running_sums(shape, dtype):
    a = (np.random.default_rng(0).standard_normal(shape) * 3).astype(dtype)
    for d in range(a.ndim):
        got = torch.from_numpy(a).cumsum(d)
        np.testing.assert_allclose(got.numpy(), a.astype(np.float64).cumsum(d), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(
        torch.from_numpy(a).t().cumsum(0).numpy() if a.ndim == 2 else 0,
        a.T.cumsum(0) if a.ndim == 2 else 0,
        rtol=1e-4,
        atol=1e-3,
    )


def test_running_extremes_take_the_last_place_and_keep_nan():
    values, places = torch.tensor([1.0, 3.0, 2.0, 3.0, float("nan"), 1.0]).cummax(0)
    np.testing.assert_array_equal(values.numpy(), [1, 3, 3, 3, np.nan, np.nan])
    assert places.tolist() == [0, 1, 1, 3, 4, 4]


@pytest.mark.parametrize("at", [None, 0, 1, 3])
def test_gradient_of_cumprod_where_factors_are_zero(at):
    a = np.array([2.0, 3.0, 4.0, 5.0])
    if at is not None:
        a[at] = 0
    t = torch.tensor(a, requires_grad=True)
    weights = torch.tensor([1.0, 10.0, 100.0, 1000.0], dtype=torch.float64)
    (g,) = torch.autograd.grad((t.cumprod(0) * weights).sum(), t, create_graph=True)
    want = [
        sum(w * np.delete(a[: j + 1], i).prod() for j, w in enumerate(weights.tolist()) if j >= i) for i in range(4)
    ]
    np.testing.assert_allclose(g.detach().numpy(), want)
    assert torch.autograd.gradgradcheck(lambda x: x.cumprod(0), (t,))


def test_logcumsumexp_is_stable():
    t = torch.tensor([-float("inf"), 1000.0, 1000.0, -1000.0])
    np.testing.assert_allclose(
        t.logcumsumexp(0).numpy(), [-np.inf, 1000, 1000 + np.log(2), 1000 + np.log(2)], rtol=1e-6
    )


def test_diff():
    t = torch.arange(6.0).reshape(2, 3)
    assert torch.diff(t, n=2).tolist() == [[0], [0]]
    assert torch.diff(t, dim=0, prepend=torch.zeros(1, 3)).tolist() == [[0, 1, 2], [3, 3, 3]]
    assert torch.diff(torch.tensor([True, True, False])).tolist() == [False, True]
    with pytest.raises(RuntimeError, match="at least one-dimensional"):
        torch.diff(torch.tensor(1.0))


def test_integrals():
    y = torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    x = torch.tensor([0.0, 1.0, 3.0])
    np.testing.assert_allclose(torch.trapezoid(y, x).numpy(), np.trapezoid(y.numpy(), x.numpy()))
    np.testing.assert_allclose(torch.trapz(y, dx=0.5, dim=0).numpy(), np.trapezoid(y.numpy(), dx=0.5, axis=0))
    assert torch.cumulative_trapezoid(y).tolist() == [[0.5, 2.0], [3.5, 8.0]]
    with pytest.raises(RuntimeError, match="one `x` value for each sample point"):
        torch.trapezoid(y, torch.ones(2))


@pytest.mark.parametrize("order", [1, 2])
def test_numerical_gradients(order):
    a = np.random.default_rng(0).standard_normal((4, 5))
    points = (np.array([0.0, 1.0, 3.0, 4.0]), np.array([0.0, 0.5, 1.0, 3.0, 4.0]))
    for got, want in zip(
        torch.gradient(torch.from_numpy(a), spacing=2.0, edge_order=order),
        np.gradient(a, 2.0, edge_order=order),
        strict=True,
    ):
        np.testing.assert_allclose(got.numpy(), want)
    given = tuple(torch.from_numpy(p) for p in points)
    for got, want in zip(
        torch.gradient(torch.from_numpy(a), spacing=given, edge_order=order),
        np.gradient(a, *points, edge_order=order),
        strict=True,
    ):
        np.testing.assert_allclose(got.numpy(), want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_what_comes_before_or_after_infinity_keeps_its_slope(dtype):
    inf, nan = float("inf"), float("nan")
    for values, expected in (([1.0, inf, 2.0], [1.0, nan, 0.0]), ([inf, -1.0, 1.0], [nan, 0.0, 0.0])):
        x = torch.tensor(values, dtype=dtype, requires_grad=True)
        (got,) = torch.autograd.grad(x.logcumsumexp(0).sum(), x)
        np.testing.assert_array_equal(got.tolist(), expected)
