"""Maxima and minima of numbers that are special: what comes out is the same, bit for bit, by compiled code and without."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import pullback as torch
from pullback.runtime.build import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

INF, NAN = float("inf"), float("nan")
SPECIAL = (0.0, -0.0, 1.0, -1.0, 6.0, 3e-39, -3e-39, INF, -INF, NAN, -NAN)
REPEATS = 5  # so that whole vectors are worked on as well as what remains
DTYPES = [torch.float32, torch.float64]


def pairs(dtype) -> tuple:
    x, y = zip(*product(SPECIAL, SPECIAL), strict=True)
    return tuple(torch.tensor(v, dtype=dtype).repeat(REPEATS) for v in (x, y))


def bits(t) -> np.ndarray:
    a = t.numpy()
    return a.view(f"u{a.itemsize}")


def same(got, want) -> None:
    np.testing.assert_array_equal(bits(got), bits(want))


def numbers_of(t):
    """The same with one NaN for all: which of two comes out, no one asks."""
    return torch.where(t.isnan(), NAN, t)


def chosen(x: float, y: float, beyond) -> float:
    """The one that is beyond the other, NaN where there is one, of equal ones the second."""
    return x if x != x or beyond(x, y) else y


def expected(x, y, beyond):
    numbers = [chosen(a, b, beyond) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return torch.tensor(numbers, dtype=x.dtype)


LARGER, SMALLER = float.__gt__, float.__lt__


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "beyond"), [("maximum", LARGER), ("minimum", SMALLER)])
def test_pairs(name, beyond, dtype):
    x, y = pairs(dtype)
    f = getattr(torch, name)
    want = expected(x, y, beyond)
    got, compiled = f(x, y), torch.compile(lambda x, y: f(x, y))(x, y)
    for result in (got, compiled):
        same(numbers_of(result), numbers_of(want))
    same(compiled, got)


FUNCTIONS = {
    **{f"clamp_min {m}": lambda x, m=m: x.clamp_min(m) for m in SPECIAL[:-1]},
    **{f"clamp_max {m}": lambda x, m=m: x.clamp_max(m) for m in SPECIAL[:-1]},
    **{f"clamp {low} {high}": lambda x, b=(low, high): x.clamp(*b) for low, high in product((-1.0, -0.0, 0.0, NAN), (0.0, 1.0, INF, NAN))},
    "relu": torch.relu,
    "relu6": torch.nn.functional.relu6,
    "hardtanh": torch.nn.functional.hardtanh,
    "hardsigmoid": torch.nn.functional.hardsigmoid,
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_bounds(dtype):
    x, _ = pairs(dtype)
    for name, f in FUNCTIONS.items():
        got = f(x)
        same(torch.compile(f)(x), got)
        assert got[x.isnan()].isnan().all(), name


@pytest.mark.parametrize("dtype", DTYPES)
def test_bounds_that_are_tensors(dtype):
    x, y = pairs(dtype)
    for low, high in ((y, None), (None, y), (y, y.flip(0))):
        got = x.clamp(low, high)
        compiled = torch.compile(lambda x, low=low, high=high: x.clamp(low, high))(x)
        same(numbers_of(compiled), numbers_of(got))
        given = [x, *[b for b in (low, high) if b is not None]]
        assert torch.equal(got.isnan(), torch.stack([t.isnan() for t in given]).any(0))
