"""Special functions: reference values, gradients, PyTorch's treatment of the edges."""

import math

import numpy as np
import pytest
import scipy.special as reference

import pullback as torch
from pullback.ops.system.operator import registry
from tests.ops.checks import CHECKS, compare_gradient, to_numpy

S = torch.special
inf, nan = math.inf, math.nan
X = np.array([0.1, 0.3, 0.5, 0.8, 1.0, 1.7, 2.5, 4.0, 7.9, 20.0])

VALUES = {
    "digamma": (reference.psi, X),
    "gammaln": (reference.gammaln, X - 3.35),
    "erf": (reference.erf, X - 1),
    "erfc": (reference.erfc, X - 1),
    "erfcx": (reference.erfcx, X - 1),
    "erfinv": (reference.erfinv, X[:4]),
    "ndtr": (reference.ndtr, X - 2),
    "ndtri": (reference.ndtri, X[:4]),
    "log_ndtr": (reference.log_ndtr, -X),
    "entr": (reference.entr, X),
    "i0": (reference.i0, X),
    "i0e": (reference.i0e, X),
    "i1": (reference.i1, X),
    "i1e": (reference.i1e, X),
    "sinc": (np.sinc, X - 1),
    "airy_ai": (lambda x: reference.airy(x)[0], X - 3),
    "bessel_j0": (reference.j0, X - 4),
    "bessel_j1": (reference.j1, X - 4),
    "bessel_y0": (reference.y0, X),
    "bessel_y1": (reference.y1, X),
    "modified_bessel_k0": (reference.k0, X),
    "scaled_modified_bessel_k1": (reference.k1e, X),
    "spherical_bessel_j0": (lambda x: reference.spherical_jn(0, x), X),
}
ROUGH = {"bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"}  # as PyTorch's are, past five


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    want, x = VALUES[name]
    tol = 1e-6 if name in ROUGH else 1e-12
    np.testing.assert_allclose(to_numpy(getattr(S, name)(torch.tensor(x))), want(x), rtol=tol, atol=tol)
    single = getattr(S, name)(torch.tensor(x, dtype=torch.float32))
    assert single.dtype is torch.float32
    np.testing.assert_allclose(to_numpy(single), want(x), rtol=1e-4, atol=1e-5)
    assert getattr(S, name)(torch.tensor([1])).dtype is torch.float32


@pytest.mark.parametrize("function", [torch.erf, torch.compile(torch.erf)])
def test_erf_where_its_pieces_meet_and_end(function):
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor([0.0, -0.0, inf, -inf, nan, 7.0, -1e300, 1.25, -1.2499999, 0.92, 6.0], dtype=dtype)
        y = function(x).numpy()
        np.testing.assert_allclose(y, reference.erf(x.numpy()), rtol=4 * np.finfo(y.dtype).eps)
        assert np.signbit(y[:2]).tolist() == [False, True]
    assert function(torch.tensor(-5e-324, dtype=torch.float64)).item() == -5e-324


GRADIENTS = {
    "digamma": (torch.digamma, X),
    "polygamma": (lambda x: torch.polygamma(2, x), X),
    "trigamma left of zero": (lambda x: torch.polygamma(1, x), X - 3.35),
    "lgamma": (torch.lgamma, X - 3.35),
    "mvlgamma": (lambda x: torch.mvlgamma(x, 3), X + 1),
    "erf": (torch.erf, X),
    "erfc": (torch.erfc, X),
    "erfinv": (torch.erfinv, X[:4]),
    "erfcx": (S.erfcx, X),
    "ndtr": (S.ndtr, X - 2),
    "ndtri": (S.ndtri, X[:4]),
    "log_ndtr": (S.log_ndtr, -X),
    "entr": (S.entr, X),
    "i0": (torch.i0, X[:8]),
    "i0e": (S.i0e, X),
    "i1": (S.i1, X[:8]),
    "i1e": (S.i1e, X),
    "sinc": (torch.sinc, X),
    "logit": (lambda x: torch.logit(x, 0.2), X[:4] + 0.01),
    "xlogy": (lambda x: torch.xlogy(x, x + 1), X),
    "xlog1py": (lambda x: S.xlog1py(x, x), X),
    "igamma": (lambda x: torch.igamma(torch.tensor(1.5), x), X),
    "zeta": (lambda x: S.zeta(3.0, x), X),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    function, x = GRADIENTS[name]
    compare_gradient(lambda t: (function(t),), [torch.tensor(x)], 1, name)


EDGES = {
    "digamma": ([0.0, -0.0, -1.0, inf], [-inf, inf, nan, inf]),
    "gammaln": ([0.0, -1.0, inf, -inf], [inf, inf, inf, inf]),
    "entr": ([0.0, -1.0, nan, inf], [0.0, -inf, nan, -inf]),
    "i1": ([0.0], [0.0]),
    "sinc": ([0.0, inf], [1.0, nan]),
    "spherical_bessel_j0": ([0.0, inf, -inf], [1.0, 0.0, 0.0]),
    "bessel_y0": ([0.0, -1.0], [-inf, nan]),
    "airy_ai": ([104.0, 1e10], [0.0, 0.0]),
    "ndtri": ([0.0, 1.0, 2.0], [-inf, inf, nan]),
    "logit": ([0.0, 1.0, 2.0], [-inf, inf, nan]),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name):
    x, want = EDGES[name]
    np.testing.assert_array_equal(to_numpy(getattr(S, name)(torch.tensor(x, dtype=torch.float64))), want)


def test_gradients_at_zero():
    x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    for function, want in ((S.i1, 0.5), (S.i1e, 0.5), (torch.sinc, 0.0)):
        (g,) = torch.autograd.grad(function(x).sum(), x)
        np.testing.assert_allclose(to_numpy(g), [want])


POLYNOMIALS = {
    "chebyshev_polynomial_t": reference.eval_chebyt,
    "chebyshev_polynomial_u": reference.eval_chebyu,
    "hermite_polynomial_h": reference.eval_hermite,
    "hermite_polynomial_he": reference.eval_hermitenorm,
    "laguerre_polynomial_l": reference.eval_laguerre,
    "legendre_polynomial_p": reference.eval_legendre,
    "shifted_chebyshev_polynomial_t": reference.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": reference.eval_sh_chebyu,
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    x = np.array([-1.5, -1.0, -0.3, 0.0, 0.4, 1.0, 2.0])[:, None]
    n = np.arange(13)
    got = getattr(S, name)(torch.tensor(x), torch.tensor(n))
    np.testing.assert_allclose(to_numpy(got), POLYNOMIALS[name](n, x), rtol=1e-9, atol=1e-9)
    assert getattr(S, name)(torch.tensor([0.3]), -2).tolist() == [0.0]
    assert getattr(S, name)(0.3, torch.tensor([2.9])).item() == getattr(S, name)(0.3, torch.tensor([2])).item()


def test_third_and_fourth_kind():
    angle = np.linspace(0.1, 3.0, 7)
    for n in (0, 1, 5, 12):
        v = S.chebyshev_polynomial_v(torch.tensor(np.cos(angle)), n)
        w = S.shifted_chebyshev_polynomial_w(torch.tensor((np.cos(angle) + 1) / 2), n)
        np.testing.assert_allclose(to_numpy(v), np.cos((n + 0.5) * angle) / np.cos(angle / 2), atol=1e-10)
        np.testing.assert_allclose(to_numpy(w), np.sin((n + 0.5) * angle) / np.sin(angle / 2), atol=1e-10)


def test_errors():
    with pytest.raises(RuntimeError, match="does not support negative n"):
        torch.polygamma(-1, torch.ones(2))
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        torch.mvlgamma(torch.ones(2), 0)
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
        torch.lgamma(torch.ones(2, dtype=torch.complex64))
    with pytest.raises(NotImplementedError, match="\"igamma_cpu\" not implemented for 'Long'"):
        torch.igamma(torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.int64))


RULES = ("digamma", "erf", "special_i1e", "sinc", "special_ndtri")


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", RULES)
def test_rule(name, check):
    CHECKS[check](registry[f"{name}.default"], (torch.tensor(X[:4]),))


@pytest.mark.parametrize("function", [S.xlogy, S.xlog1py])
def test_no_gradient_comes_out_of_xlogy_where_none_comes_in(function):
    x = torch.tensor([2.0, 2.0], requires_grad=True)
    function(x, torch.tensor([-3.0, 1.0]))[1].backward()
    assert x.grad[0].item() == 0


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda x: torch.igamma(x, x), "the derivative for 'igamma: input' is not implemented."),
        (lambda x: torch.igammac(x, x), "the derivative for 'igammac: input' is not implemented."),
        (lambda x: S.zeta(x + 2, x), "the derivative for 'zeta' is not implemented."),
        (lambda x: torch.geqrf(x.diag())[0], "the derivative for 'geqrf' is not implemented."),
        (lambda x: torch.unique(x), "the derivative for '_unique2' is not implemented."),
    ],
)
def test_gradients_that_are_not_written(call, words):
    out = call(torch.rand(3, requires_grad=True))
    with pytest.raises(NotImplementedError, match=words):
        out.sum().backward()


def test_operators_without_any_gradient():
    x = torch.rand(3, requires_grad=True)
    out = torch.heaviside(x, x)
    assert out.grad_fn.name() == "NotImplemented"
    with pytest.raises(RuntimeError, match="derivative for aten::heaviside is not implemented"):
        out.sum().backward()
    for function in (S.bessel_j0, S.airy_ai, S.modified_bessel_i0, S.spherical_bessel_j0):
        assert not function(x).requires_grad
    assert not S.chebyshev_polynomial_t(x, 2).requires_grad


def test_slopes_of_products_with_the_logarithm_of_a_number():
    def slope(function, other):
        both = [one_slope(function, o) for o in (other, torch.tensor(other, dtype=torch.float64))]
        assert str(both[0]) == str(both[1])
        return both[0]

    def one_slope(function, other):
        x = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
        return torch.autograd.grad(function(x, other).sum(), x)[0].tolist()

    assert slope(torch.xlogy, 2.0) == [math.log(2.0)] * 2
    assert slope(torch.xlogy, 0.0) == [0.0, -math.inf]
    assert slope(torch.special.xlog1py, 1.0) == [math.log(2.0)] * 2
    assert slope(torch.special.xlog1py, -1.0) == [0.0, -math.inf]
    assert math.isnan(slope(torch.xlogy, -1.0)[1])


def test_integers_beside_floats_are_promoted_to_them():
    """Plain calls cast integers themselves: what they give is what equal floats give."""
    functions = [
        torch.special.chebyshev_polynomial_t, torch.special.hermite_polynomial_he, torch.special.laguerre_polynomial_l,
        torch.special.zeta, torch.special.xlog1py, torch.nextafter, torch.copysign, torch.fmod, torch.hypot,
    ]  # fmt: skip
    for d in (torch.float32, torch.float64):
        x = (torch.arange(1, 13).reshape(3, 4) / 7).to(d)
        for whole in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
            n = torch.arange(12).reshape(3, 4).to(whole)
            for f in functions:
                for a, b in ((x, n), (x.t(), n.t()), (x[:, ::2], n[:, ::2]), (x[0, 0], n[0, 1])):
                    found, expected = f(a, b), f(a, b.to(d))
                    assert (found.dtype, found.stride()) == (expected.dtype, expected.stride()), f
                    assert torch.equal(found.nan_to_num(7.5), expected.nan_to_num(7.5)), f


def test_signs_of_zeros_are_those_of_pytorch():
    for d in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        assert str(torch.tensor([-0.0, 0.0], dtype=d).erfinv().tolist()) == "[-0.0, 0.0]"
        x = torch.tensor([2e4] * 9, dtype=d)
        assert not any(math.copysign(1, v) < 0 for v in torch.nn.functional.logsigmoid(x).tolist())
        assert math.copysign(1, torch.compile(torch.nn.functional.logsigmoid)(x)[0].item()) == 1


def test_the_slope_of_sinc_is_zero_where_squares_vanish():
    x = torch.tensor([0.0, 2.3e-308, 1.0, 1e-200], dtype=torch.float64, requires_grad=True)
    torch.sinc(x).sum().backward()
    assert x.grad.tolist() == pytest.approx([0.0, 0.0, -1.0, 0.0])
