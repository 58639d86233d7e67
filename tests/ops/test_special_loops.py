"""Loops of special functions that are written by hand (`core/native_special.h`): what they give is what the rules of their operators give.

In single precision a result is the rule's in double precision, rounded, two units in the last place off at most; poles, infinities, NaN and
signs of zeros are the rule's. Nothing is tested where the extension is not built.
"""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.core.elements import table
from pullback.ops.system.operator import registry

if not table:
    pytest.skip("the extension is not built", allow_module_level=True)

ONE = """erfc.default special_ndtr.default special_erfcx.default special_log_ndtr.default
erfinv.default asin.default acos.default log10.default tan.default
special_spherical_bessel_j0.default special_entr.default i0.default special_modified_bessel_i0.default special_i0e.default special_i1.default
special_modified_bessel_i1.default special_i1e.default special_bessel_j0.default special_bessel_j1.default special_bessel_y0.default
special_bessel_y1.default special_airy_ai.default""".split()
TWO = """igamma.default igammac.default hypot.default logaddexp2.default fmod.Tensor remainder.Tensor floor_divide.default
div.Tensor_mode:floor""".split()
POLYNOMIALS = [f"special_{name}.default" for name in (
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
)]  # fmt: skip
ENDS = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, 5, -5, 8, 1e5, -1e5, 1e-40, 3.4e38, 100, 30]


def numbers(rng) -> np.ndarray:
    drawn = [rng.normal(size=400) * 3, rng.uniform(-40, 40, 300), rng.uniform(-1, 1, 300), rng.uniform(0, 900, 100)]
    return np.concatenate([*drawn, 10.0 ** rng.uniform(-30, 4, 200), ENDS]).astype(np.float32)


def rule_of(key: str):
    name, *words = key.split(":")
    op = registry[name]
    kernel = op.kernel or (lambda xp, *arrays: getattr(xp, op.declared.ufunc)(*arrays))
    return table[name][tuple(words)], lambda *arrays: kernel(np, *arrays, *words)


def compare(key: str, arrays: list, ulps: float = 2) -> None:
    loop, rule = rule_of(key)
    with np.errstate(all="ignore"):
        found = loop(*arrays)
        wide, alike = rule(*[a.astype(np.float64) for a in arrays]).astype(found.dtype), rule(*arrays)
        same = (found == wide) | (found == alike) | (np.isnan(found) & (np.isnan(wide) | np.isnan(alike)))
        off = np.abs(found.astype(np.float64) - wide) / np.spacing(np.maximum(np.abs(wide), np.float32(1e-38)))
    bad = ~same & ~(off <= ulps)
    shown = [(*(a[i] for a in arrays), found[i], wide[i]) for i in np.flatnonzero(bad)[:5]]
    assert not bad.any(), f"{key}: (arguments, found, expected) {shown}"
    if key == "erfinv.default":  # zero keeps its sign, which the rule's library loses
        return
    signs = (found == 0) & (wide == 0) & (alike == 0) & (np.signbit(wide) == np.signbit(alike))
    assert (np.signbit(found) == np.signbit(wide))[signs].all(), f"{key}: signs of zeros"


@pytest.mark.parametrize("key", ONE)
def test_functions_of_one_element(key: str):
    x = numbers(np.random.default_rng(0))
    compare(
        key, [x[~(np.abs(x) > 1e6) | np.isinf(x)] if "bessel" in key else x]
    )  # the rule's library loses angles there


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("key", POLYNOMIALS[:4])
def test_chebyshev_polynomials_of_few_degrees_are_those_of_many(key: str, dtype: str):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-1.5, 1.5, 1000), [1, -1, 0, -0.0, np.nan, np.inf]]).astype(dtype)
    n = rng.choice([-0.5, 0, 0.5, 1, 2, 3, 4, 5, 6], x.size).astype(dtype)
    loop, _ = rule_of(key)
    alone = np.concatenate([loop(np.array([v, 0], dtype), np.array([m, 50], dtype))[:1] for v, m in zip(x, n)])
    np.testing.assert_array_equal(loop(x, n), alone)
    compare(key, [x, n], ulps=64)


def test_the_inverse_error_function_near_zero_and_near_its_poles():
    near, far = np.linspace(-0.99, 0.99, 500).astype(np.float32), np.nextafter(np.float32(1), np.float32(0))
    loop, _ = rule_of("erfinv.default")
    compare("erfinv.default", [near])
    compare("erfinv.default", [np.append(near, [far, -far, 1, -1, 2, np.nan]).astype(np.float32)])
    np.testing.assert_array_equal(loop(near), loop(np.append(near, np.repeat(far, 64)))[:500])


def test_sinc_rounds_its_angle_as_the_rule_does():
    x = np.random.default_rng(0).uniform(-50, 50, 500).astype(np.float32)
    loop, rule = rule_of("sinc.default")
    np.testing.assert_allclose(loop(x), rule(x), rtol=1e-5, atol=1e-7)
    assert loop(np.float32(0)) == 1 and np.isnan(loop(np.float32(np.inf)))


def test_the_derivative_of_digamma():
    x = np.concatenate([10.0 ** np.linspace(-18, 18, 400), np.random.default_rng(0).uniform(0.5, 40, 400)]).astype(
        np.float32
    )
    op, loop = registry["polygamma.default"], table["rows"][("trigamma",)]
    expected = op.kernel(np, 1, x.astype(np.float64))
    assert (np.abs(loop(x) - expected) <= 4 * np.spacing(expected.astype(np.float32))).all()
    left = np.random.default_rng(1).uniform(-9.9, 0.4, 400).astype(np.float32)
    left = left[np.abs(left - np.rint(left)) > 0.05]
    np.testing.assert_allclose(loop(left), op.kernel(np, 1, left.astype(np.float64)), rtol=2e-5)
    ends = torch.tensor([0.0, -0.0, -1.0, float("inf"), float("nan"), float("-inf"), -1e8])
    found = torch.polygamma(1, ends).tolist()
    assert (
        found[:2] == [np.inf] * 2 and found[2] > 1e15 and found[3] == 0 and np.isnan(found[4:6]).all() and found[6] > 9
    )


def test_the_logarithm_of_the_gamma_function():
    x = numbers(np.random.default_rng(0))
    loop, rule = rule_of("lgamma.default")
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(loop(x), rule(x.astype(np.float64)).astype(np.float32), rtol=1e-6, atol=1e-6)


def test_the_logarithm_of_the_gamma_function_around_its_zeros():
    """Relative to what is left there, wherever it comes from another fit, and at the ends."""
    steps = np.concatenate([np.linspace(-1e-2, 1e-2, 401), [0, 2.0**-23, -(2.0**-24)]])
    x = np.concatenate([at + steps for at in (0.5, 1, 2, 2.5, 8)] + [10.0 ** np.linspace(-44, 35, 500)]).astype(
        np.float32
    )
    loop, rule = rule_of("lgamma.default")
    found, expected = loop(x).astype(np.float64), rule(x.astype(np.float64))
    assert (np.abs(found - expected) <= np.spacing(np.abs(expected).astype(np.float32))).all()
    assert not np.signbit(loop(np.array([1, 2], np.float32))).any()
    ends = np.array([0, -0.0, -1, -7, np.inf, -np.inf, np.nan, 3e38], np.float32)
    assert np.array_equal(loop(ends), rule(ends.astype(np.float64)).astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("key", TWO)
def test_functions_of_two_elements(key: str):
    rng = np.random.default_rng(0)
    x = numbers(rng)
    y = np.concatenate([rng.permutation(x), x, x[::-1]])
    compare(key, [np.concatenate([x, x, x]), y])


def test_special_pairs():
    ends = np.array(ENDS, np.float32)
    x, y = (a.ravel() for a in np.meshgrid(ends, ends))
    for key in TWO:
        compare(key, [x, y])


def test_the_element_after():
    x, y = (rng.normal(size=100) for rng in (np.random.default_rng(0), np.random.default_rng(1)))
    loop, _ = rule_of("nextafter.default")
    for d in (np.float32, np.float64):
        assert np.array_equal(loop(x.astype(d), y.astype(d)), np.nextafter(x.astype(d), y.astype(d)))


@pytest.mark.parametrize("key", POLYNOMIALS)
@pytest.mark.parametrize("d", [np.float32, np.float64])
def test_polynomials(key: str, d):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-1.5, 1.5, 300), [0, 1, -1, 0.5, 2, 40]]).astype(d)
    n = rng.integers(-2, 14, x.size).astype(d) + d(0.25)
    loop, rule = rule_of(key)
    tolerance = 2e-4 if d is np.float32 else 1e-10
    np.testing.assert_allclose(loop(x, n), rule(x, n), rtol=tolerance, atol=tolerance / 10)
    assert loop(d(0.3), d(-1)) == 0


def test_a_loop_stops_where_a_polynomial_overflows():
    loop, _ = rule_of("special_chebyshev_polynomial_t.default")
    assert not np.isfinite(loop(np.float32(3), np.float32(1e15)))


def test_arrays_that_lie_otherwise():
    x = np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)
    for key in ("erfc.default", "special_bessel_j0.default", "tan.default"):
        loop, _ = rule_of(key)
        assert np.array_equal(loop(x.T), loop(np.ascontiguousarray(x.T))) and np.array_equal(
            loop(x[::3, ::2]), loop(x)[::3, ::2]
        )
    fmod, _ = rule_of("fmod.Tensor")
    assert np.array_equal(fmod(x, x[0]), fmod(x, np.ascontiguousarray(np.broadcast_to(x[0], x.shape))))
    assert np.array_equal(fmod(x.copy(), x[::-1]), np.fmod(x, x[::-1]))


SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    float("nan"),
    float("inf"),
    float("-inf"),
    1e-45,
    -1e-45,
    3.4028234e38,
    -3.4028234e38,
    1e-38,
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours_of_special_numbers(dtype):
    x, y = (a.reshape(-1).astype(dtype) for a in np.meshgrid(SPECIAL, SPECIAL))
    found, expected = torch.nextafter(torch.tensor(x), torch.tensor(y)).numpy(), np.nextafter(x, y)
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_sided_limits_of_special_numbers(dtype):
    x = torch.tensor(SPECIAL * 3, dtype=dtype)
    a = x.numpy()
    zero = np.zeros_like(a)
    np.testing.assert_array_equal(torch.relu(x).numpy(), np.maximum(a, zero))
    np.testing.assert_array_equal(torch.clamp_min(x, 0.5).numpy(), np.maximum(a, zero + 0.5))
    np.testing.assert_array_equal(torch.clamp_max(x, 0.5).numpy(), np.minimum(a, zero + 0.5))
    assert torch.clamp_min(x, float("nan")).isnan().all()
    for slope in (0.0, 0.01, 2.0, -1.0):
        found = torch.nn.functional.leaky_relu(x, slope).numpy()
        np.testing.assert_array_equal(found, np.where(a > 0, a, a * dtype.numpy.type(slope)))
    assert torch.relu_(x.clone()).tolist()[:4] == [0, 0, 1, 0]


def test_relu_of_other_dtypes_orders_and_gradients():
    for dtype in (torch.int64, torch.bfloat16, torch.uint8):
        assert torch.relu(torch.tensor([1, 0, 3]).to(dtype)).tolist() == [1, 0, 3]
    x = torch.arange(-6.0, 6).reshape(3, 4).t()
    assert torch.relu(x).stride() == x.stride() and torch.equal(torch.relu(x), x.clamp(min=0))
    y = torch.tensor([-1.0, 2.0], requires_grad=True)
    torch.relu(y).sum().backward()
    assert y.grad.tolist() == [0, 1]
