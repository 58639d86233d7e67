"""Pooling kernels against windows written out; ties, NaN and infinities; and the public functions' words."""

from itertools import product

import ml_dtypes
import numpy as np
import pytest

import pullback as torch
from pullback.ops.system.operator import exports
from pullback.ops.window.kernels import avg_pool, max_pool

F = exports["nn.functional"]
rng = np.random.default_rng(0)


def regular(size, kernel, stride, padding, dilation, ceil):
    """Starts of the windows along one axis."""
    span = dilation * (kernel - 1) + 1
    room = size + 2 * padding - span
    count = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (count - 1) * stride >= size + padding:
        count -= 1
    return [range(i * stride - padding, i * stride - padding + span, dilation) for i in range(count)]


def direct_max(x, windows):
    """Values and flat places of the largest entry in each window: the first of equals, the last NaN."""
    out = tuple(len(w) for w in windows)
    values, places = np.empty(x.shape[:2] + out, x.dtype), np.empty(x.shape[:2] + out, np.int64)
    for n, c in product(range(x.shape[0]), range(x.shape[1])):
        for at in product(*map(range, out)):
            best = None
            for i in product(*(w[a] for w, a in zip(windows, at))):
                if all(0 <= j < m for j, m in zip(i, x.shape[2:])):
                    v = x[(n, c, *i)]
                    if best is None or v > best[0] or np.isnan(v):
                        best = v, np.ravel_multi_index(i, x.shape[2:])
            values[(n, c, *at)], places[(n, c, *at)] = best
    return values, places


MAX_CASES = [
    ((7,), (3,), (2,), (1,), (1,), False),
    ((5, 6), (2, 3), (2, 1), (1, 1), (1, 2), False),
    ((5, 6), (3, 3), (2, 2), (1, 1), (1, 1), True),
    ((5, 4, 6), (2, 2, 3), (1, 2, 3), (0, 1, 1), (2, 1, 1), True),
]


@pytest.mark.parametrize("fill", ["distinct", "ties", "nan", "lowest"])
@pytest.mark.parametrize("case", MAX_CASES)
def test_max_pool(case, fill):
    size, *attributes, ceil = case
    x = rng.standard_normal((2, 2, *size))
    if fill == "ties":
        x = np.sign(x)
    elif fill == "nan":
        x[rng.random(x.shape) < 0.2] = np.nan
    elif fill == "lowest":
        x = np.where(rng.random(x.shape) < 0.9, -np.inf, x)
    windows = [regular(n, *axis, ceil) for n, *axis in zip(size, *attributes)]
    values, places = max_pool.max_pool(np, x, *attributes, ceil)
    want_values, want_places = direct_max(x, windows)
    np.testing.assert_array_equal(values, want_values)
    np.testing.assert_array_equal(places, want_places)


def test_max_pool_of_integers_and_half():
    x = rng.integers(-100, 0, (1, 2, 5, 5))
    for dtype in (np.int64, np.float16, ml_dtypes.bfloat16):
        values, _ = max_pool.max_pool(np, x.astype(dtype), (2, 2), (2, 2), (1, 1), (1, 1), False)
        assert values.dtype == dtype and values[0, 0, 0, 0] == x.astype(dtype)[0, 0, 0, 0]


@pytest.mark.parametrize(("size", "out"), [((7,), (3,)), ((5, 8), (4, 4)), ((4, 4), (6, 1)), ((3, 5, 4), (2, 3, 4))])
def test_adaptive_pools(size, out):
    x = rng.standard_normal((2, 2, *size))
    windows = [[range(i * n // o, -(-(i + 1) * n // o)) for i in range(o)] for n, o in zip(size, out)]
    values, places = max_pool.adaptive_max_pool(np, x, out)
    want_values, want_places = direct_max(x, windows)
    np.testing.assert_array_equal(values, want_values)
    np.testing.assert_array_equal(places, want_places)
    means = avg_pool.adaptive_avg_pool(np, x, out)
    for at in product(*map(range, out)):
        want = x[(..., *(slice(w[a].start, w[a].stop) for w, a in zip(windows, at)))].mean(tuple(range(2, x.ndim)))
        np.testing.assert_allclose(means[(..., *at)], want)
    g = rng.standard_normal(means.shape)
    np.testing.assert_allclose((avg_pool.adaptive_avg_pool_backward(np, g, size) * x).sum(), (g * means).sum())


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize(("counted", "divisor"), [(True, None), (False, None), (True, 5)])
def test_avg_pool(ceil, counted, divisor):
    size, kernel, stride, padding = (5, 6), (3, 2), (2, 2), (1, 1)
    x = rng.standard_normal((2, 2, *size))
    windows = [regular(n, k, s, p, 1, ceil) for n, k, s, p in zip(size, kernel, stride, padding)]
    y = avg_pool.avg_pool(np, x, kernel, stride, padding, ceil, counted, divisor)
    for at in product(*(range(len(w)) for w in windows)):
        spans = [windows[a][i] for a, i in enumerate(at)]
        inner = [slice(max(s.start, 0), min(s.stop, n)) for s, n in zip(spans, size)]
        padded = np.prod([min(s.stop, n + p) - s.start for s, n, p in zip(spans, size, padding)])
        count = divisor or (padded if counted else np.prod([s.stop - s.start for s in inner]))
        np.testing.assert_allclose(y[(..., *at)], x[(..., *inner)].sum((2, 3)) / count)
    g = rng.standard_normal(y.shape)
    gx = avg_pool.avg_pool_backward(np, g, size, kernel, stride, padding, ceil, counted, divisor)
    np.testing.assert_allclose((gx * x).sum(), (g * y).sum())


def test_avg_pool_of_integers_divides_towards_zero():
    y = avg_pool.avg_pool(np, np.array([[[-7, -6, 3, 4]]]), (2,), (2,), (0,), False, True, None)
    assert y.tolist() == [[[-6, 3]]]


def test_an_infinity_stays_in_its_window():
    x = np.zeros((1, 1, 7))
    x[0, 0, 6] = np.inf
    for y in (
        avg_pool.avg_pool(np, x, (2,), (2,), (0,), False, True, None),
        avg_pool.adaptive_avg_pool(np, x, (3,)),
        avg_pool.adaptive_avg_pool_backward(np, x, (14,)),
    ):
        assert np.isfinite(y[0, 0, 0]) and not np.isnan(y).any()


def test_fractional_windows_start_in_order():
    x = rng.standard_normal((1, 1, 9, 9))
    values, places = max_pool.fractional_max_pool(np, x, (2, 2), (4, 4), np.full((1, 1, 2), 0.4))
    np.testing.assert_array_equal(values.ravel(), x.ravel()[places.ravel()])
    assert (np.diff(places[0, 0] // 9, axis=0) >= 0).all() and places.max() >= 7 * 9 + 7


# ---- public functions
def test_unpooling_puts_back():
    x = torch.arange(1.0, 17.0).reshape(1, 1, 4, 4)
    y, where = F["max_pool2d"](x, 2, return_indices=True)
    assert where.tolist() == [[[[5, 7], [13, 15]]]]
    back = F["max_unpool2d"](y, where, 2)
    assert back.tolist() == [[[[0, 0, 0, 0], [0, 6, 0, 8], [0, 0, 0, 0], [0, 14, 0, 16]]]]
    assert F["max_unpool2d"](y, where, 2, output_size=(5, 4)).shape == (1, 1, 5, 4)
    with pytest.raises(RuntimeError, match="Found an invalid max index: 20 "):
        F["max_unpool2d"](y, torch.full((1, 1, 2, 2), 20, dtype=torch.int64), 2)


def test_forms_of_arguments():
    x = torch.ones(2, 3, 8)
    assert F["max_pool1d"](x, (2,), stride=None).shape == F["avg_pool1d"](x, [2]).shape == (2, 3, 4)
    assert F["adaptive_avg_pool1d"](x, 3).shape == F["adaptive_max_pool1d"](x, 3).shape == (2, 3, 3)
    image = torch.ones(3, 8, 6)
    assert F["adaptive_avg_pool2d"](image, (None, 2)).shape == (3, 8, 2)
    assert F["adaptive_max_pool2d"](image, 4, return_indices=True)[1].dtype is torch.int64
    assert F["avg_pool2d"](image, 2, stride=None).tolist() == [[[1.0] * 3] * 4] * 3


ERRORS = [
    (lambda: F["max_pool2d"](torch.ones(1, 1, 2, 2), 3), RuntimeError,
     "Given input size: (1x2x2). Calculated output size: (1x0x0). Output size is too small"),
    (lambda: F["max_pool2d"](torch.ones(1, 1, 2, 2), 2, 2, 2), RuntimeError,
     "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and dilation=1"),
    (lambda: F["max_pool1d"](torch.ones(2, 10), 3, padding=2, dilation=2), RuntimeError,
     "max_pool1d() padding should be at most half of kernel size, but got padding=2 and kernel_size=3"),
    (lambda: F["max_pool1d"](torch.ones(2, 10), 3, padding=2, dilation=2, return_indices=True), RuntimeError,
     "pad should be smaller than or equal to half of kernel size, but got padW = 2, padH = 0, kW = 3, kH = 1"),
    (lambda: F["max_pool3d"](torch.ones(1, 9, 9, 9), 3, padding=2, dilation=2), RuntimeError,
     "pad should be smaller than or equal to half of kernel size, but got kT: 3 kW: 3 kH: 3 padT: 2 padW: 2 padH: 2"),
    (lambda: F["max_pool2d"](torch.ones(1, 1, 2, 2), (1, 1, 1)), RuntimeError,
     "max_pool2d: kernel_size must either be a single int, or a tuple of two ints"),
    (lambda: F["max_pool2d"](torch.ones(2, 2), 2), RuntimeError,
     "non-empty 3D or 4D (batch mode) tensor expected for input"),
    (lambda: F["max_pool1d"](torch.ones(1, 2), 3), RuntimeError, "max_pool1d() Invalid computed output size: 0"),
    (lambda: F["avg_pool2d"](torch.ones(1, 1, 2, 2), 2, divisor_override=0), RuntimeError, "divisor must be not zero"),
    (lambda: F["avg_pool3d"](torch.ones(1, 1, 2, 2, 2), 3), RuntimeError,
     "input image (T: 2 H: 2 W: 2) smaller than kernel size (kT: 3 kH: 3 kW: 3)"),
    (lambda: F["adaptive_avg_pool2d"](torch.ones(2), 2), RuntimeError,
     "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got [2]"),
    (lambda: F["max_pool2d"](torch.ones(1, 1, 2, 2).bool(), 2), NotImplementedError,
     "\"max_pool2d\" not implemented for 'Bool'"),
    (lambda: F["fractional_max_pool2d"](torch.ones(1, 1, 4, 4), 2), ValueError,
     "fractional_max_pool2d requires specifying either an output_size or an output_ratio"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS)
def test_words(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)


def test_numbers_beyond_those_of_c_are_refused():
    x = torch.rand(1, 4, 4, 4)
    with pytest.raises(RuntimeError, match="value cannot be converted to type int without overflow"):
        torch.nn.functional.avg_pool2d(x, (2**63 - 1, 100), 1)
    with pytest.raises(RuntimeError, match="value cannot be converted to type int without overflow"):
        torch.nn.functional.max_pool2d(x, 2, (1, 2**40))
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
        torch.nn.functional.interpolate(x, scale_factor=1e20, mode="bilinear")
    with pytest.raises(RuntimeError, match="the product of kernel_width and kernel_height overflowed"):
        torch.nn.functional.fold(torch.rand(3, 7), 16, 2**40)
    with pytest.raises(ValueError, match="upscale factor is too large"):
        torch.nn.functional.pixel_shuffle(x, 2**40)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_in_c_give_what_pooling_with_places_gives(dtype):
    rng = np.random.default_rng(0)
    for size, k, s, p, d in product((1, 2, 5, 17, 64), (1, 2, 3, 5), (1, 2, 3), (0, 1, 2), (1, 2)):
        if p > k // 2 or size + 2 * p < d * (k - 1) + 1:
            continue
        x = rng.standard_normal((2, 3, size)).round(1)
        x[rng.random(x.shape) < 0.1] = np.nan
        x[0, 0], x[1, 1, 0] = -np.inf, np.inf
        x = torch.from_numpy(x).to(dtype)
        for ceil in (False, True):
            for t in (x, x[1], x.transpose(0, 1), x.flip(-1)):
                values = F["max_pool1d"](t, k, s, p, d, ceil)
                expected = F["max_pool1d"](t, k, s, p, d, ceil, return_indices=True)[0]
                assert values.dtype is dtype and torch.equal(values.nan_to_num(7), expected.nan_to_num(7))
                assert torch.equal(values.isnan(), expected.isnan())


def test_one_image_in_space_is_no_batch_of_flat_ones() -> None:
    x = torch.arange(96.0).reshape(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    out = torch.nn.functional.adaptive_avg_pool3d(x, 1)
    assert out.shape == (2, 1, 1, 1) and out.flatten().tolist() == [23.5, 71.5]
