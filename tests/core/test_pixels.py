"""Images that lie channels-last: the numbers of row-major ones, in the order of memory that was given."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pullback as torch
from pullback.core.pixels import as_pixels, new_pixels, pixels_of, pixels_per_row

F = torch.nn.functional
LAST = torch.channels_last
SHAPES = [(2, 3, 5, 7), (1, 16, 8, 8), (3, 70, 4, 6), (2, 2, 9, 3), (1, 130, 3, 5), (4, 8, 2, 2)]
DTYPES = [torch.float32, torch.float64, torch.bfloat16]


def statistics(x) -> list:
    c = x.shape[1]
    return [torch.linspace(low, 2.0, c, dtype=x.dtype) for low in (-1.0, 0.5, 0.1, -2.0)]


def normalized(x, weight: bool = True, bias: bool = True):
    mean, var, w, b = statistics(x)
    return F.batch_norm(x, mean, var, w if weight else None, b if bias else None)


EXACT = {
    "max_pool2d": lambda x: F.max_pool2d(x, 2, return_indices=True),
    "max_pool2d, padded": lambda x: F.max_pool2d(x, 3, 1, 1, return_indices=True),
    "max_pool2d, apart": lambda x: F.max_pool2d(x, 2, 1, 0, 1, ceil_mode=True, return_indices=True),
    "max_pool2d, dilated": lambda x: F.max_pool2d(x, 2, (1, 2), 1, 2, return_indices=True),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, (2, 3), return_indices=True),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "avg_pool2d, padded": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "avg_pool2d, divided": lambda x: F.avg_pool2d(x, 2, 1, divisor_override=3),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "bilinear": lambda x: F.interpolate(x, size=(9, 4), mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, size=(4, 11), mode="bicubic", align_corners=True),
    "antialiased": lambda x: F.interpolate(x, size=(2, 5), mode="bilinear", antialias=True),
    **{f"cat {d}": lambda x, d=d: torch.cat([x, x + 1, x], d) for d in (0, 1, 2, -1)},
    "cat, unequal": lambda x: torch.cat([x, x[:, :1].contiguous(memory_format=LAST) + x * 0, x], 1),
}
NEAR = {
    "batch_norm": normalized,
    "batch_norm, no bias": lambda x: normalized(x, bias=False),
    "batch_norm, plain": lambda x: normalized(x, False, False),
    "batch_norm, training": lambda x: F.batch_norm(x, None, None, training=True),
}
REDUCED = {
    "mean": lambda x: x.mean((2, 3)),
    "sum": lambda x: x.sum((-1, -2), keepdim=True),
    "amax": lambda x: x.amax((2, 3)),
    "amin": lambda x: x.amin((3, 2), keepdim=True),
    "mean of rows": lambda x: x.mean(3),
    "sum of all": lambda x: x.sum(),
}


def all_of(result) -> tuple:
    return result if isinstance(result, tuple) else (result,)


def images(shape, dtype) -> tuple:
    x = torch.randn(shape, dtype=dtype)
    return x, x.to(memory_format=LAST)


CASES = list(itertools.product(SHAPES, DTYPES))


@pytest.mark.parametrize("name", EXACT)
def test_same_numbers_in_the_order_given(name):
    for shape, dtype in CASES:
        try:
            want = all_of(EXACT[name](x := torch.randn(shape, dtype=dtype)))
        except RuntimeError:  # windows that such small images have no room for
            continue
        for got, w in zip(all_of(EXACT[name](x.to(memory_format=LAST))), want, strict=True):
            assert torch.equal(got, w), (shape, dtype)
            assert got.is_contiguous(memory_format=LAST), (shape, dtype)


@pytest.mark.parametrize("name", NEAR)
def test_standardized_in_the_order_given(name):
    for shape, dtype in CASES:
        x, last = images(shape, dtype)
        got = NEAR[name](last)
        torch.testing.assert_close(got, NEAR[name](x))
        assert got.is_contiguous(memory_format=LAST)


@pytest.mark.parametrize("name", REDUCED)
def test_reduced(name):
    for shape, dtype in CASES:
        x, last = images(shape, dtype)
        torch.testing.assert_close(REDUCED[name](last), REDUCED[name](x))


@pytest.mark.parametrize("name", ["max_pool2d, padded", "avg_pool2d, padded", "bilinear", "cat 1", "batch_norm"])
def test_gradients(name):
    f = (EXACT | NEAR)[name]
    found = []
    for given in images((2, 6, 5, 7), torch.float64):
        x = given.detach().requires_grad_()
        y = all_of(f(x))[0]
        (y * torch.arange(y.numel(), dtype=y.dtype).reshape(y.shape)).sum().backward()
        found.append(x.grad)
    torch.testing.assert_close(*found)


def test_gradients_of_weights_by_running_statistics():
    found = []
    for x in images((2, 6, 5, 7), torch.float64):
        mean, var, w, b = statistics(x)
        w, b = w.requires_grad_(), b.requires_grad_()
        F.batch_norm(x, mean, var, w, b).square().sum().backward()
        found.append((w.grad, b.grad))
    torch.testing.assert_close(*found)


def test_special_numbers():
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([-inf, nan, 1.0, -0.0, 0.0, inf, nan, -inf]).repeat(18).reshape(2, 3, 4, 6)
    for f in (EXACT["max_pool2d"], EXACT["max_pool2d, padded"], EXACT["avg_pool2d"]):
        for got, want in zip(all_of(f(x.to(memory_format=LAST))), all_of(f(x)), strict=True):
            torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)


def test_images_with_gaps_and_of_one_channel():
    base = torch.randn(2, 6, 8, 8).to(memory_format=LAST)
    for x in (base[:, :4], base[:, :, ::2], base[:, :1], base[:1], base[:, :, :1], base.transpose(2, 3)):
        for f in (EXACT["max_pool2d, padded"], EXACT["bilinear"], EXACT["cat 1"], EXACT["cat 2"]):
            for got, want in zip(all_of(f(x)), all_of(f(x.contiguous())), strict=True):
                assert torch.equal(got, want)
        torch.testing.assert_close(normalized(x), normalized(x.contiguous()))


def test_what_does_not_fit_is_refused():
    x = torch.randn(2, 3, 4, 5).to(memory_format=LAST)
    for others, dim in (((x, x[:, :, :2]), 1), ((x, x[0]), 0), ((x, x), 4)):
        with pytest.raises((RuntimeError, IndexError)):
            torch.cat(others, dim)
    with pytest.raises(RuntimeError, match="should contain 3 elements not 2"):
        F.batch_norm(x, torch.zeros(2), torch.ones(3))
    with pytest.raises(RuntimeError, match="must be defined"):
        F.batch_norm(x, None, None)


def test_dtypes_that_differ_are_joined_as_one():
    x = torch.randn(2, 3, 4, 5).to(memory_format=LAST)
    joined = torch.cat([x, x.double()], 1)
    assert joined.dtype is torch.float64 and joined.is_contiguous(memory_format=LAST)
    assert torch.equal(joined, torch.cat([x.contiguous(), x.contiguous().double()], 1))


def test_views():
    a = new_pixels((2, 3, 4, 5), np.dtype(np.float32))
    assert a.shape == (2, 3, 4, 5) and a.base is None
    assert pixels_of(a).flags.c_contiguous and as_pixels(a).shape == (2, 4, 5, 3)
    assert as_pixels(np.zeros((2, 3, 4, 5))) is None and as_pixels(a[:, :2]) is None
    assert new_pixels((2, 3, 4, 5, 6), np.dtype(np.int64)).strides == (8 * 360, 8, 8 * 90, 8 * 18, 24)


@pytest.mark.parametrize("pixels", [1, 2, 7, 24, 4096])
@pytest.mark.parametrize("channels", [1, 3, 16, 128, 500])
def test_rows_of_pixels(pixels, channels):
    together = pixels_per_row(pixels, channels)
    assert pixels % together == 0 and together & (together - 1) == 0
    assert together == 1 or together * channels < 256
