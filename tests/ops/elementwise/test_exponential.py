"""Exponentials, logarithms and powers: values at the edges, exponents of every kind, delicate gradients."""

import cmath
import math

import numpy as np
import pytest

import pullback as torch
from tests.ops.checks import to_numpy

inf, nan = math.inf, math.nan
X = np.array([-3.0, -0.5, 0.0, 0.25, 1.0, 7.5])


@pytest.mark.parametrize("name", ["exp", "exp2", "expm1", "sqrt", "log1p", "sigmoid", "square", "reciprocal"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_narrow_floats_are_rounded_from_wide_ones(name, dtype):
    x = torch.tensor(X).abs().to(dtype) if name in ("sqrt", "log1p") else torch.tensor(X).to(dtype)
    want = getattr(x.double(), name)().to(dtype)
    got = getattr(x, name)()
    assert got.dtype is dtype
    np.testing.assert_allclose(to_numpy(got), to_numpy(want), rtol=2 * torch.finfo(dtype).eps)


def test_edges():
    assert torch.sigmoid(torch.tensor([-1e4, 1e4])).tolist() == [0, 1]
    assert torch.log(torch.tensor([0.0, -1.0])).tolist()[0] == -inf
    assert torch.rsqrt(torch.tensor([0.0, inf])).tolist() == [inf, 0]
    assert torch.logaddexp(torch.tensor([1000.0, -inf]), torch.tensor([1000.0, -inf])).tolist()[1] == -inf
    assert torch.ldexp(torch.tensor([1.0]), torch.tensor([-149])).item() == 2.0**-149


def test_integers_become_the_default_float():
    assert torch.exp(torch.tensor([0, 1])).dtype is torch.float32
    assert torch.square(torch.tensor([2])).dtype is torch.int64
    assert torch.square(torch.tensor([True])).tolist() == [1]


def test_frexp():
    mantissa, exponent = torch.frexp(torch.tensor([0.0, 3.0, -0.125, inf]))
    assert mantissa.tolist() == [0, 0.75, -0.5, inf] and exponent.tolist() == [0, 2, -2, 0]
    assert exponent.dtype is torch.int32 and torch.frexp(torch.ones(2)).mantissa.tolist() == [0.5, 0.5]
    with pytest.raises(RuntimeError, match="only supports floating-point dtypes"):
        torch.frexp(torch.tensor([1]))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, -1, -2, 0.5, -0.5, 2.5])
def test_powers_by_a_number(exponent):
    x = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    np.testing.assert_allclose((x**exponent).detach().numpy(), x.detach().numpy() ** exponent, rtol=1e-14)
    (g,) = torch.autograd.grad((x**exponent).sum(), x)
    np.testing.assert_allclose(g.numpy(), exponent * x.detach().numpy() ** (exponent - 1), rtol=1e-12)


def test_powers_of_integers():
    assert torch.pow(torch.tensor([2, -1, 1, 0]), torch.tensor([-1, -3, -5, -1])).tolist() == [0, -1, 1, 0]
    assert torch.pow(2, torch.tensor([-1, 3])).tolist() == [0, 8]
    assert (torch.tensor([3], dtype=torch.int8) ** 2).dtype is torch.int8
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
        torch.tensor([2]) ** -1


def test_gradients_of_zero_to_a_power():
    x = torch.tensor([0.0, 0.0], requires_grad=True)
    y = torch.tensor([2.0, 0.0], requires_grad=True)
    gx, gy = torch.autograd.grad((x**y).sum(), [x, y])
    assert gx.tolist() == [0, 0] and gy.tolist() == [0, 0]
    (g,) = torch.autograd.grad((0**y).sum(), y)
    assert g.tolist() == [0, 0]


def test_float_power_is_in_double_precision():
    assert torch.float_power(torch.tensor([2]), 0.5).dtype is torch.float64
    assert torch.float_power(2, torch.ones(2, dtype=torch.cfloat)).dtype is torch.complex128
    with pytest.raises(RuntimeError, match="the base given to float_power_ has dtype Float but"):
        torch.ones(2).float_power_(2)
    with pytest.raises(RuntimeError, match="the output given to float_power has dtype Float but"):
        torch.float_power(torch.ones(2), 2, out=torch.ones(2))


def test_results_are_saved_where_they_serve():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    z = x.sin()
    z.add_(1)
    z.sum().backward()
    assert x.grad is not None


def test_sums_of_infinite_complex_exponentials():
    inf = float("inf")
    x = torch.tensor([complex(-inf, 0), complex(inf, 0), complex(1, float("nan"))])
    result = torch.logaddexp(x, torch.tensor([complex(-inf, 0), complex(inf, 0), 1 + 0j]))
    assert result[:2].tolist() == [complex(-inf, 0), complex(inf, 0)] and result[2].isnan()
    scan = torch.logcumsumexp(torch.tensor([complex(-inf, 0), 1 + 1j, complex(inf, 0), complex(-inf, inf)]), 0)
    assert scan.tolist() == [complex(-inf, 0), 1 + 1j, complex(inf, 0), complex(inf, 0)]


def test_ldexp_is_differentiated_by_fractional_exponents():
    x = torch.tensor([1.5, -2.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0.5, 1.2], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.ldexp, (x, y))


def test_frexp_into_other_dtypes():
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match="expects exponent to have int dtype but got long int"):
        torch.frexp(x, out=(torch.ones(3), torch.ones(3, dtype=torch.int64)))
    with pytest.raises(RuntimeError, match="expects mantissa to have dtype float but got double"):
        torch.frexp(x, out=(torch.ones(3, dtype=torch.float64), torch.ones(3, dtype=torch.int32)))


def test_log1p_of_small_complex_numbers_keeps_their_digits():
    z = torch.tensor([1e-20 + 1e-20j, 1e-4 + 1e-4j, -0.1 + 0.45j, -2 + 0j, 3 + 4j], dtype=torch.complex128)
    for x, y in zip(z.tolist(), torch.log1p(z).tolist(), strict=True):
        series = x - x * x / 2 + x**3 / 3  # what is left out of it is below the tolerance where it is asked for
        expected = series if abs(x) < 1e-3 else cmath.log(1 + x)
        assert y.real == pytest.approx(expected.real, rel=1e-11) and y.imag == pytest.approx(expected.imag, rel=1e-11)
    assert torch.equal(z.clone().log1p_(), torch.log1p(z))
