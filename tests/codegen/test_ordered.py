"""Scans and sorts in native code: every dimension, NaN and infinities, ties, one element, none, long rows."""

from __future__ import annotations

import pytest

import pullback as torch
from tests.codegen.test_program import check

NAN, INF = float("nan"), float("inf")


def odd() -> torch.Tensor:
    """A matrix with NaN, infinities, zeros of both signs and many ties."""
    x = (torch.randn(37, 53) * 3).round()
    x[3, 4], x[5, 6], x[7], x[:, 9] = NAN, INF, -INF, 0.0
    x[::2, 9] = -0.0
    return x


@pytest.mark.parametrize("d", ["float32", "float64", "int32", "bool", "bfloat16"])
def test_scans_and_sorts_along_each_dimension(d: str) -> None:
    x = odd()
    x = (
        x.to(getattr(torch, d))
        if d in ("float32", "float64", "bfloat16")
        else x.nan_to_num(0, 9, -9).to(getattr(torch, d))
    )

    def f(x):
        result = []
        for dim in (0, -1):
            for way in (False, True):
                result += [*x.sort(dim, way), x.argsort(dim, way)]
            result += [*x.cummax(dim), *x.cummin(dim), x.cumsum(dim), x.t().cumprod(dim)]
        return tuple(result)

    check(f, x)


def test_long_rows_and_what_is_around_them() -> None:
    x = torch.randn(6, 1000)
    check(lambda x: (*(x * 2).sort(1), (x * 100).to(torch.int16).argsort(1, True), x.double().round().argsort(1)), x)
    result = check(lambda x: ((x * 2).cumsum(1) + 1, x.logcumsumexp(1), x.double().t().cumsum(0) * 3), x)
    assert any("running sum of b0" in k and "* 2" in k for k in result.kernels)  # what comes in is computed on the way
    check(
        lambda x: x.logcumsumexp(0),
        torch.tensor([[-INF, 1.0, INF, NAN], [-INF, -INF, INF, 2.0], [3.0, 90.0, -INF, 0.0]]),
    )


def test_numbers_and_nothing() -> None:
    def f(x):
        return x.cumsum(0) * 1, *x.sort(0), *x.cummax(0), x.argsort(-1) + 0

    check(f, torch.tensor(3.0))
    check(f, torch.zeros(0, 4))
    check(f, torch.zeros(4, 0))
    check(f, torch.ones(1))
