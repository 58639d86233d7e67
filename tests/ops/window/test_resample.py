"""Resampling and grid sampling against their definitions; transposes; and the public functions' words."""

import ml_dtypes
import numpy as np
import pytest

import pullback as torch
from pullback.ops.system.operator import exports
from pullback.ops.window.kernels import grid, resample
from pullback.ops.window.kernels.axis_map import AxisMap, Tap

F = exports["nn.functional"]
rng = np.random.default_rng(0)
METHODS = ("nearest", "nearest-exact", "linear", "cubic", "linear-aa", "cubic-aa", "lanczos-aa")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("size", "out"), [((5,), (9,)), ((6, 7), (3, 14)), ((1, 4), (3, 1))])
def test_backward_is_the_transpose(method, size, out):
    scales = (None,) * len(size)
    for align in (False, True):
        x, g = rng.standard_normal((2, 2, *size)), rng.standard_normal((2, 2, *out))
        y = resample.resample(np, x, out, scales, method, align)
        gx = resample.resample_backward(np, g, size, scales, method, align)
        np.testing.assert_allclose((g * y).sum(), (gx * x).sum(), atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_constants_stay(method):
    x = np.full((1, 1, 7, 5), 2.5)
    for out in ((3, 11), (14, 2)):
        np.testing.assert_allclose(resample.resample(np, x, out, (None, None), method), np.full((1, 1, *out), 2.5))


def test_known_values():
    x = np.arange(4.0).reshape(1, 1, 4)
    assert resample.resample(np, x, (8,), (None,), "nearest").tolist() == [[[0, 0, 1, 1, 2, 2, 3, 3]]]
    assert resample.resample(np, x, (3,), (None,), "nearest-exact").tolist() == [[[0, 2, 3]]]
    linear = resample.resample(np, x, (8,), (None,), "linear")
    np.testing.assert_allclose(linear, [[[0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]]])
    np.testing.assert_allclose(resample.resample(np, x, (7,), (None,), "linear", True), [[np.arange(7) / 2]])
    cubic = resample.resample(np, x, (2,), (None,), "cubic")
    np.testing.assert_allclose(cubic, [[[0.40625, 2.59375]]])
    np.testing.assert_allclose(resample.resample(np, x, (2,), (None,), "linear-aa"), [[[5 / 7, 16 / 7]]], rtol=1e-12)


def test_half_and_bytes():
    x = rng.integers(0, 255, (1, 1, 5, 5))
    full = resample.resample(np, x.astype(np.float32), (8, 3), (None, None), "linear")
    half = resample.resample(np, x.astype(ml_dtypes.bfloat16), (8, 3), (None, None), "linear")
    np.testing.assert_allclose(half.astype(np.float32), full, rtol=2e-2)
    octets = resample.resample(np, x.astype(np.uint8), (8, 3), (None, None), "linear")
    assert octets.dtype == np.uint8 and np.abs(octets - full).max() <= 1


def test_axis_map_transpose_keeps_infinities_apart():
    m = AxisMap(3, 4, (Tap(np.array([0, 0, 1, 2]), np.array([1.0, 2, 3, 4])), Tap(np.array([2]), None, np.array([0]))))
    assert m.apply(np, np.array([[1.0, 10, 100]]), 1).tolist() == [[101, 2, 30, 400]]
    weighted = AxisMap(3, 4, (m.taps[0],))
    assert weighted.transpose(np).apply(np, np.array([[1.0, 1, np.inf, 1]]), 1).tolist() == [[3, np.inf, 4]]


# ---- grids
def bilinear(image, x, y):
    """One sample, zeros outside."""
    total = 0.0
    for j in (int(np.floor(y)), int(np.floor(y)) + 1):
        for i in (int(np.floor(x)), int(np.floor(x)) + 1):
            if 0 <= j < image.shape[0] and 0 <= i < image.shape[1]:
                total += image[j, i] * (1 - abs(x - i)) * (1 - abs(y - j))
    return total


def test_bilinear_samples():
    image, points = rng.standard_normal((4, 6)), rng.uniform(-1.4, 1.4, (1, 5, 3, 2))
    for align in (False, True):
        got = grid.grid_sample(np, image[None, None], points, grid.BILINEAR, grid.ZEROS, align)
        for at in np.ndindex(5, 3):
            x, y = ((p + 1) / 2 * (n - 1) if align else ((p + 1) * n - 1) / 2 for p, n in zip(points[(0, *at)], (6, 4)))
            np.testing.assert_allclose(got[(0, 0, *at)], bilinear(image, x, y), atol=1e-12)


@pytest.mark.parametrize("padding", [grid.ZEROS, grid.BORDER, grid.REFLECTION])
@pytest.mark.parametrize(("mode", "spatial"), [(0, 2), (1, 2), (2, 2), (0, 3), (1, 3)])
def test_input_gradient_is_the_transpose(mode, spatial, padding):
    size = (4, 3, 5)[:spatial]
    x, points = rng.standard_normal((2, 2, *size)), rng.uniform(-2.5, 2.5, (2, *(3, 2, 2)[:spatial], spatial))
    for align in (False, True):
        y = grid.grid_sample(np, x, points, mode, padding, align)
        g = rng.standard_normal(y.shape)
        gx = grid.grid_sample_input(np, g, x.shape, points, mode, padding, align)
        np.testing.assert_allclose((g * y).sum(), (gx * x).sum(), atol=1e-10)


def test_points_outside_read_nothing():
    x = np.full((1, 1, 2, 2), np.inf)
    far = np.full((1, 1, 1, 2), 9.0)
    assert grid.grid_sample(np, x, far, grid.BILINEAR, grid.ZEROS, False).tolist() == [[[[0.0]]]]
    lost = np.full((1, 1, 1, 2), np.nan)
    assert grid.grid_sample(np, np.ones((1, 1, 2, 2)), lost, grid.NEAREST, grid.ZEROS, False).tolist() == [[[[0.0]]]]


def test_identity_affine_grid_samples_the_image():
    image = torch.arange(12.0).reshape(1, 1, 3, 4)
    theta = torch.tensor([[[1.0, 0, 0], [0, 1, 0]]])
    for align in (False, True):
        points = F["affine_grid"](theta, (1, 1, 3, 4), align_corners=align)
        got = F["grid_sample"](image, points, align_corners=align)
        np.testing.assert_allclose(got.numpy(), image.numpy(), atol=1e-5)


# ---- public functions
def test_interpolate_forms():
    x = torch.ones(1, 2, 4, 6)
    assert F["interpolate"](x, scale_factor=0.5).shape == F["interpolate"](x, (2, 3), mode="area").shape == (1, 2, 2, 3)
    assert F["interpolate"](x, scale_factor=(1.5, 1.3), mode="bilinear").shape == (1, 2, 6, 7)
    assert F["interpolate"](x, 3, mode="bicubic", antialias=True).shape == (1, 2, 3, 3)
    with pytest.warns(UserWarning, match="deprecated"):
        assert F["upsample_bilinear"](x, scale_factor=2).shape == (1, 2, 8, 12)


ERRORS = [
    (lambda: F["interpolate"](torch.ones(1, 2, 2)), ValueError, "either size or scale_factor should be defined"),
    (lambda: F["interpolate"](torch.ones(1, 1, 2, 2), 2, mode="linear"), NotImplementedError,
     "Got 4D input, but linear mode needs 3D input"),
    (lambda: F["interpolate"](torch.ones(1, 1, 2, 2), 0), RuntimeError,
     "Input and output sizes should be greater than 0, but got input (H: 2, W: 2) output (H: 0, W: 0)"),
    (lambda: F["interpolate"](torch.ones(1, 1, 2), 2, align_corners=True), ValueError,
     "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"),
    (lambda: F["interpolate"](torch.ones(1, 1, 2, 2).long(), 3), NotImplementedError, "not implemented for 'Long'"),
    (lambda: F["grid_sample"](torch.ones(1, 1, 2, 2), torch.ones(1, 2, 2, 3), align_corners=False), RuntimeError,
     "grid_sampler(): expected grid to have size 2 in last dimension, but got grid with sizes [1, 2, 2, 3]"),
    (lambda: F["grid_sample"](torch.ones(1, 1, 2, 2), torch.ones(1, 2, 2, 2), mode="x"), ValueError,
     "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: 'x'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS)
def test_words(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)


def test_sizes_are_whole_numbers():
    x = torch.ones(1, 1, 2)
    assert torch.nn.functional.interpolate(x, size=(torch.tensor(4),)).shape == (1, 1, 4)
    for size in (4.0, (torch.tensor(4.0),)):
        with pytest.raises(TypeError, match="expected size to be one of int or"):
            torch.nn.functional.interpolate(x, size=size)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area"])
def test_sizes_that_no_memory_has_are_refused_at_once(mode):
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        torch.nn.functional.interpolate(torch.ones(1, 1, 2, 2), size=(2**31, 2**31), mode=mode)
