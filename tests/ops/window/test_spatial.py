"""Windows, maps and grids in C give what the array library gives, whatever the dtype, rank and layout."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import pullback as torch
from pullback.core import small, spatial
from pullback.core.random_boxmuller import box_muller, box_muller_arrays
from pullback.ops.system.operator import registry
from pullback.ops.window.kernels import avg_pool, grid, max_pool, resample
from pullback.ops.window.kernels.axis_map import AxisMap, Tap, apply_all

pytestmark = pytest.mark.skipif(spatial._spatial is None, reason="the extension is not built")
SIZES = (7, 6, 9)


class ArrayLibrary:
    """NumPy under another name: kernels take it for another array library, and use no loop in C."""

    def __getattr__(self, name: str):
        return getattr(np, name)


XP = ArrayLibrary()
DTYPES = pytest.mark.parametrize("d", ["float32", "float64"])
RANKS = pytest.mark.parametrize("rank", [1, 2, 3])


def _numbers(*shape: int, d: str = "float64", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(d)


def _close(a: np.ndarray, b: np.ndarray) -> None:
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    np.testing.assert_allclose(
        a, b, rtol=1e-5 if a.dtype == "float32" else 1e-12, atol=1e-4 if a.dtype == "float32" else 1e-12
    )


@DTYPES
@RANKS
def test_averages_and_their_backward(d: str, rank: int) -> None:
    x = _numbers(2, 3, *SIZES[:rank], d=d)
    for k, s, p, ceil, pads, divisor in itertools.product(
        (2, 3), (1, 2), (0, 1), (False, True), (False, True), (None, 5)
    ):
        window = ((k,) * rank, (s,) * rank, (p,) * rank, ceil, pads, divisor)
        out = avg_pool.avg_pool(np, x, *window)
        _close(out, avg_pool.avg_pool(XP, x, *window))
        _close(*(avg_pool.avg_pool_backward(xp, out, x.shape[2:], *window) for xp in (np, XP)))


@DTYPES
@RANKS
def test_adaptive_windows(d: str, rank: int) -> None:
    x = _numbers(2, 3, *SIZES[:rank], d=d)
    for out in ((1,) * rank, (3,) * rank, (5, 4, 9)[:rank]):
        y = avg_pool.adaptive_avg_pool(np, x, out)
        _close(y, avg_pool.adaptive_avg_pool(XP, x, out))
        _close(*(avg_pool.adaptive_avg_pool_backward(xp, y, x.shape[2:]) for xp in (np, XP)))
        for a, b in zip(*(max_pool.adaptive_max_pool(xp, x, out) for xp in (np, XP)), strict=True):
            assert np.array_equal(a, b)


@DTYPES
@RANKS
def test_maxima_and_their_places(d: str, rank: int) -> None:
    x = _numbers(2, 3, *SIZES[:rank], d=d)
    odd = x.copy()
    odd.flat[5], odd[:, 0, 0] = np.nan, -np.inf
    odd[1] = -np.inf
    for values, k, s, p, dilation in itertools.product((x, odd, np.round(x)), (2, 3), (1, 2), (0, 1), (1, 2)):
        window = [(n,) * rank for n in (k, s, p, dilation)]
        for a, b in zip(*(max_pool.max_pool(xp, values, *window, False) for xp in (np, XP)), strict=True):
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


@DTYPES
@RANKS
def test_resampling_is_equal_to_the_last_bit(d: str, rank: int) -> None:
    x = _numbers(2, 3, *SIZES[:rank], d=d)
    methods = ("nearest", "nearest-exact", "linear", "cubic", "linear-aa", "cubic-aa", "lanczos-aa")
    for method, out, align in itertools.product(
        methods, ((4,) * rank, (13, 11, 5)[:rank], SIZES[:rank]), (False, True)
    ):
        given = ((None,) * rank, method, align)
        y = resample.resample(np, x, out, *given)
        assert np.array_equal(y, resample.resample(XP, x, out, *given))
        assert np.array_equal(*(resample.resample_backward(xp, y, x.shape[2:], *given) for xp in (np, XP)))


@DTYPES
@pytest.mark.parametrize("rank", [2, 3])
def test_sampling_by_a_grid(d: str, rank: int) -> None:
    x, points = _numbers(2, 3, *SIZES[:rank], d=d), 1.5 * _numbers(2, *(4, 5, 3)[:rank], rank, d=d, seed=1)
    points.flat[:2] = 1, -1
    for mode, padding, align in itertools.product((0, 1, 2) if rank == 2 else (0, 1), (0, 1, 2), (False, True)):
        given = (mode, padding, align)
        y = grid.grid_sample(np, x, points, *given)
        _close(y, grid.grid_sample(XP, x, points, *given))
        _close(*(grid.grid_sample_input(xp, y, x.shape, points, *given) for xp in (np, XP)))
        _close(*(grid.grid_sample_grid(xp, y, x, points, *given) for xp in (np, XP)))


def test_a_point_that_is_no_number_reads_nothing() -> None:
    x, points = torch.ones(1, 1, 2, 2), torch.full((1, 1, 1, 2), float("nan"))
    assert torch.nn.functional.grid_sample(x, points, align_corners=False).item() == 0


def test_layouts_halves_and_nothing_at_all() -> None:
    F = torch.nn.functional
    x = torch.randn(2, 4, 6, 6)
    turned = x.permute(0, 1, 3, 2)
    last = x.to(memory_format=torch.channels_last)
    for call in (
        lambda v: F.avg_pool2d(v, 2),
        lambda v: F.adaptive_max_pool2d(v, 3),
        lambda v: F.interpolate(v, scale_factor=2, mode="bilinear"),
    ):
        assert torch.equal(call(turned), call(turned.contiguous()))
        assert torch.equal(call(last), call(x))
        half = call(x.to(torch.bfloat16))
        assert half.dtype is torch.bfloat16
        assert torch.allclose(half.float(), call(x), atol=0.05)
    assert F.avg_pool2d(torch.empty(0, 3, 4, 4), 2).shape == (0, 3, 2, 2)
    assert F.adaptive_avg_pool2d(torch.randn(2, 0, 4, 4), 2).shape == (2, 0, 2, 2)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    F = torch.nn.functional
    x, points = torch.randn(2, 3, 200, 200), torch.randn(2, 200, 200, 2)
    before, found = torch.get_num_threads(), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        leaf = x.clone().requires_grad_()
        y = F.grid_sample(leaf, points, align_corners=False)
        found.append(
            (
                F.avg_pool2d(x, 3, 1, 1),
                F.interpolate(x, scale_factor=1.5, mode="bicubic"),
                y,
                torch.autograd.grad(y.sum(), leaf)[0],
            )
        )
    torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_normal_numbers_are_equal_to_the_last_bit() -> None:
    uniform = np.random.default_rng(0).integers(0, 1 << 24, 1 << 18).astype("float32") * np.float32(2**-24)
    uniform[:3] = 0, 1 - 2**-24, 0.5
    a, b = box_muller(uniform.copy()), box_muller_arrays(uniform.copy())
    assert np.array_equal(a.view("int32"), b.view("int32"))


@DTYPES
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_of_rows(d: str, mode: str) -> None:
    table = torch.from_numpy(_numbers(6, 3, d=d))
    index, offsets = torch.tensor([0, 5, 5, 1, 2, 4]), torch.tensor([0, 0, 3, 3, 6])
    factors = torch.from_numpy(_numbers(6, d=d, seed=1)) if mode == "sum" else None
    given = {"offsets": offsets, "mode": mode, "per_sample_weights": factors, "padding_idx": 1}
    direct = torch.nn.functional.embedding_bag(index, table, **given)
    strided = torch.nn.functional.embedding_bag(index, table.t().contiguous().t(), **given)  # by the array library
    assert torch.allclose(direct, strided)
    assert direct[0].abs().sum() == 0
    assert torch.nn.functional.embedding_bag(index[:0], table, offsets[:1]).tolist() == [[0.0] * 3]


def test_small_resampling_gives_what_its_rules_give() -> None:
    """Sizes that grow, shrink and stay, by size and by scale, in the operators that have a function for small calls."""
    names = [f"{p}{n}d" for n in (1, 2, 3) for p in ("upsample_nearest", "_upsample_nearest_exact")]
    taken = 0
    for name in (*names, "upsample_linear1d", "upsample_bilinear2d"):
        op, spatially = registry[f"{name}.default"], int(name[-2])
        for size, scale, align, wide in itertools.product(
            (1, 2, 3, 5, 6, 9, 13), (None, 0.4, 1.7, 2.0), (False, True), (False, True)
        ):
            x = torch.from_numpy(_numbers(2, 3, *(6, 5, 2)[:spatially], d="float64" if wide else "float32"))
            x.view(-1)[7], x.view(-1)[11] = math.inf, math.nan
            out = tuple(size if scale is None else max(1, int(n * scale)) for n in x.shape[2:])
            args = (x, out, *((align,) if "linear" in name else ()), *(scale,) * spatially)
            found = small.table[f"{name}.default"](args)
            if found is not None:
                taken += 1
                _close(found.numpy(), op.kernel(np, x.numpy(), *args[1:]))
    assert taken > 500


@DTYPES
def test_maps_of_both_axes(d: str) -> None:
    """Whatever number of taps an entry has, none among them; rows that repeat; the last axis alone."""
    x = _numbers(2, 4, 5, d=d)
    uneven = AxisMap(
        5,
        3,
        (
            Tap(np.array([1, 4]), np.array([0.5, 2.0]), np.array([0, 2])),
            Tap(np.array([0]), np.array([3.0]), slice(2, 3)),
        ),
    )
    repeated = AxisMap(4, 6, (Tap(np.array([0, 0, 1, 3, 3, 2])),))
    pairs = AxisMap(5, 2, (Tap(np.array([0, 3])), Tap(np.array([4, 1]))))
    three = AxisMap(5, 2, tuple(Tap(np.array([k, 4 - k]), np.array([0.1, k])) for k in range(3)))
    for maps in (
        [repeated, uneven],
        [repeated, three],
        [None, uneven],
        [repeated, pairs],
        [None, three],
        [uneven_rows(4), three],
        [repeated, None],
    ):
        _close(*(apply_all(xp, x, maps) for xp in (np, XP)))
        _close(*(apply_all(xp, x[:, ::-1, ::-1], maps) for xp in (np, XP)))


def uneven_rows(inputs: int) -> AxisMap:
    return AxisMap(
        inputs,
        4,
        (Tap(np.array([1, 1, 3]), np.array([1.0, 1.0, -2.0]), slice(0, 3)), Tap(np.array([2]), None, slice(1, 2))),
    )


def test_columns_are_added_up_where_windows_take_them() -> None:
    op, taken = registry["col2im.default"], 0
    for d, kernel, dilation, padding, stride in itertools.product(
        ("float32", "float64"), ((2, 2), (3, 1), (1, 4)), ((1, 1), (2, 3)), ((0, 0), (1, 2)), ((1, 1), (2, 3))
    ):
        size = (9, 11)
        out = [
            (n + 2 * p - g * (k - 1) - 1) // s + 1
            for n, p, g, k, s in zip(size, padding, dilation, kernel, stride, strict=True)
        ]
        x = torch.from_numpy(_numbers(2, 3 * kernel[0] * kernel[1], out[0] * out[1], d=d))
        for t in (x, x[0], x[:0]):
            args = (t, size, kernel, dilation, padding, stride)
            found = small.table["col2im.default"](args)
            if found is not None:
                taken += 1
                _close(found.numpy(), op.kernel(np, t.numpy(), *args[1:]))
    assert taken == 2 * 24 * 2
