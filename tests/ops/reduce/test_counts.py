"""Runs, quantiles, histograms, distances and bags of rows in C: what they give is what the rules of their operators give."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import pullback as torch
from pullback.core import small
from tests.ops.test_small import compare, operator_of

if "quantile.scalar" not in small.table:
    pytest.skip("the extensions are not built", allow_module_level=True)

FLOATS = (torch.float32, torch.float64)
rng = np.random.default_rng(0)


def _odd(*shape: int, decimals: int = 1) -> torch.Tensor:
    """Numbers with equal ones, infinities, zeros of both signs and NaN among them."""
    x = rng.standard_normal(shape).round(decimals)
    flat = x.reshape(-1)
    for value in (math.nan, math.inf, -math.inf, 0.0, -0.0):
        flat[rng.integers(0, flat.size, flat.size // 16)] = value
    return torch.from_numpy(x)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles(name: str) -> None:
    op = operator_of(f"{name}.scalar")
    hows = ("linear", "lower", "higher", "midpoint", "nearest")
    inputs = [_odd(5, 7, 3), _odd(1), _odd(40), torch.randn(4, 9), torch.full((3, 4), math.nan), torch.tensor(2.5)]
    taken = 0
    for x, dtype, q, how in itertools.product(inputs, FLOATS, (0, 0.3, 0.5, 1.0, 1 / 3), hows):
        for dim in (None, *range(-x.ndim, x.ndim)):
            taken += compare(op, (x.to(dtype), q, dim, bool(taken % 2), how))
    assert taken > 1000
    assert small.table[f"{name}.scalar"]((torch.randn(3), 1.5, None, False, "linear")) is None


def test_histograms() -> None:
    op, flat = operator_of("histogram.bin_ct"), operator_of("histc.default")
    taken = 0
    for n, bins, dtype in itertools.product((1, 2, 7, 300, 5000), (1, 2, 7, 10, 100), FLOATS):
        for x in (torch.randn(n, dtype=dtype), torch.randint(0, 11, (n,)).to(dtype) / 10, torch.arange(n, dtype=dtype)):
            taken += compare(op, (x, bins, None, None, False))
            for low, high in ((0, 0), (-1, 1), (0.1, 0.7)):
                taken += compare(flat, (x, bins, low, high))
    assert taken > 500
    x = _odd(300)  # the rules know what is not finite: histc leaves it out where it is told a range
    assert small.table["histogram.bin_ct"]((x, 4, None, None, False)) is None
    assert small.table["histc.default"]((x, 4, 0, 0)) is None
    assert compare(flat, (x, 4, -1, 1))


def test_distances() -> None:
    pairs, between = operator_of("_pdist_forward.default"), operator_of("_cdist_forward.default")
    for n, width, dtype, p in itertools.product((1, 2, 9), (1, 5, 32, 77), FLOATS, (1.0, 2.0, math.inf)):
        for x, z in ((torch.randn(n, width), torch.randn(4, width)), (_odd(n, width), _odd(4, width))):
            assert compare(pairs, (x.to(dtype), p), 2e-5)
            assert compare(between, (x.to(dtype), z.to(dtype), p, 2), 2e-5)
    assert small.table["_cdist_forward.default"]((torch.randn(30, 2), torch.randn(30, 2), 2.0, None)) is None
    assert small.table["_pdist_forward.default"]((torch.randn(3, 2), 3.0)) is None


def test_bags() -> None:
    op = operator_of("_embedding_bag.default")
    taken = 0
    for width, mode, dtype, padding, last in itertools.product(
        (1, 3, 16, 90, 200), range(3), FLOATS, (-1, 2), (False, True)
    ):
        table = _odd(6, width).to(dtype)
        for offsets in ([0], [0, 2, 2, 5], [0, 0, 9], [0, 9]):
            factors = torch.randn(9, dtype=dtype) if mode == 0 and width > 3 else None
            index = torch.from_numpy(rng.integers(0, 6, 9))
            args = (table, index, torch.tensor(offsets), False, mode, False, factors, last, padding)
            taken += compare(op, args, 1e-5)
    assert taken > 200
    for index, offsets in (([6], [0]), ([-1], [0]), ([1], [1]), ([1], [0, 2]), ([1, 2], [0, 2, 1])):
        args = (torch.ones(6, 2), torch.tensor(index), torch.tensor(offsets), False, 0, False, None, False, -1)
        assert small.table["_embedding_bag.default"](args) is None


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32])
def test_runs(dtype) -> None:
    op = operator_of("unique_consecutive.default")
    for x in (
        torch.tensor(3),
        torch.tensor([1, 1, 1]),
        torch.randint(0, 3, (5, 9)),
        torch.randint(0, 2, (200_000,)),
        _odd(90),
    ):
        x = x.nan_to_num(1).clamp(-9, 9).to(dtype) if not dtype.is_floating_point else x.to(dtype)
        for inverse, counts in itertools.product((False, True), repeat=2):
            assert compare(op, (x, inverse, counts, None))
    values = torch.unique_consecutive(torch.tensor([0.0, -0.0, -0.0, 1.0]))
    assert values.tolist() == [0.0, 1.0] and math.copysign(1, values[0].item()) == 1


def test_results_that_are_not_asked_for_are_empty() -> None:
    for x in (torch.tensor([1, 1, 2]), torch.tensor([True, True, False])):
        assert [t.numel() for t in torch.ops.aten.unique_consecutive(x)] == [2, 0, 0]
        assert [t.numel() for t in torch.ops.aten.unique_consecutive(x, True)] == [2, 3, 0]


def test_many_values_are_searched_for() -> None:
    op = operator_of("searchsorted.Tensor")
    values = torch.randn(40, 1500)
    for rows in (torch.randn(40, 33).sort(-1)[0], torch.randn(33).sort()[0]):
        for right in (False, True):
            assert compare(op, (rows, values, False, right, None, None))
