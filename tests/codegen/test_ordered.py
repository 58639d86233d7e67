"""Scans and sorts in native code: every dimension, NaN and infinities, ties, one element, none, long rows."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import Native
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


def selections(x):
    """Everything that is read off an order, along both dimensions."""
    result = []
    for dim, keep in ((0, False), (1, True), (1, False)):
        result += [*x.topk(3, dim), *x.topk(20, dim, False), *x.topk(x.shape[dim], dim), *x.topk(0, dim)]
        result += [*x.kthvalue(1, dim, keep), *x.kthvalue(17, dim, keep), *x.kthvalue(x.shape[dim], dim, keep)]
        result += [*x.median(dim, keep), *x.nanmedian(dim, keep), *x.mode(dim, keep), *x.t().median(dim)]
    return (*result, x.median(), x.nanmedian(), x.t().median())


@pytest.mark.parametrize("d", ["float32", "float64", "int32", "int64", "uint8", "bfloat16"])
def test_selections_among_many_elements(d: str) -> None:
    x = torch.cat([odd(), odd()])
    x[11] = NAN
    x = x.to(getattr(torch, d)) if "float" in d else x.nan_to_num(0, 9, -9).abs().to(getattr(torch, d))
    result = check(selections, x)
    assert any("ranks 0 to 3" in k for k in result.kernels)  # and the rest is not sorted


def test_selections_of_one_element_of_nothing_and_of_long_rows() -> None:
    check(
        lambda x: (*x.topk(1), *x.kthvalue(1), *x.median(0), *x.nanmedian(0), *x.mode(), x.median()), torch.tensor(3.0)
    )
    check(lambda x: (*x.topk(1, 1), *x.kthvalue(1, 1), *x.mode(1)), torch.randn(7, 1))
    check(lambda x: (x.median(), x.nanmedian(), x.int().median(), *x.topk(2, 1), *x.median(1)), torch.zeros(0, 4))
    x = torch.randn(3, 5000)
    check(lambda x: (*(x * 2).topk(300, 1), *(x * 100).to(torch.int16).kthvalue(2500, 1), *x.double().median(1)), x)


def test_few_elements_with_ties_are_the_operators() -> None:
    """Which of equals is picked is then what PyTorch's algorithms come to, and no rule says that."""
    result = Native(make_fx(lambda x: x.topk(2)[1], tracing_mode="fake")(torch.zeros(3, 8)))
    assert result.reasons["topk"] == "ties among few elements, broken as PyTorch breaks them"
    check(lambda x: x.topk(2)[1] + 0, torch.zeros(3, 8), whole=False)
