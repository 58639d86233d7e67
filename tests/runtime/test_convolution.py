"""Convolutions in C against sums written out tap by tap in float64: any sizes, strides of memory, sets of instructions, threads."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as torch
from pullback.runtime import network

pytestmark = pytest.mark.skipif(network.kernels() is None, reason="the extension is not built, or there is no BLAS")
TOLERANCE = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-12}


class Sizes(NamedTuple):
    images: int
    inner: int  # channels of a group
    outer: int
    groups: int
    size: tuple
    kernel: tuple
    stride: tuple
    padding: tuple
    dilation: tuple

    @property
    def places(self) -> tuple:
        axes = zip(self.size, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in axes)

    @property
    def shapes(self) -> tuple:
        """Of input, weight and result."""
        x, w = (self.images, self.inner * self.groups, *self.size), (self.outer * self.groups, self.inner, *self.kernel)
        return x, w, (self.images, w[0], *self.places)

    @property
    def attributes(self) -> tuple:
        return self.stride, self.padding, self.dilation, self.groups


@st.composite
def sizes(draw) -> Sizes:
    axes = draw(st.sampled_from((1, 2, 2, 3)))
    each = [
        st.tuples(*[st.sampled_from(values)] * axes)
        for values in ((1, 2, 3, 4, 5), (1, 1, 2, 3), (0, 1, 2, 5), (1, 1, 2, 3))
    ]
    kernel, stride, padding, dilation = (draw(e) for e in each)
    longest = (1, 2, 3, 4, 7, 8, 16, 17, 33) if axes < 3 else (1, 2, 3, 5)
    size = draw(st.tuples(*[st.sampled_from(longest)] * axes))
    reach = [d * (k - 1) + 1 - 2 * p for k, p, d in zip(kernel, padding, dilation, strict=True)]
    size = tuple(map(max, size, reach))
    groups = draw(st.sampled_from((1, 1, 2, 5)))
    inner, outer = draw(st.sampled_from((1, 2, 3, 9, 33))), draw(st.sampled_from((1, 2, 3, 5, 8, 13, 27)))
    return Sizes(draw(st.sampled_from((1, 2, 7))), inner, outer, groups, size, kernel, stride, padding, dilation)


def turned(a: np.ndarray, how: str) -> np.ndarray:
    """The same numbers, with other strides."""
    if how == "channels last":
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1)
    if how == "every second":
        wide = np.full((*a.shape[:-1], 2 * a.shape[-1]), np.nan, a.dtype)
        wide[..., ::2] = a
        return wide[..., ::2]
    if how == "backwards":
        return np.ascontiguousarray(a[::-1, ..., ::-1])[::-1, ..., ::-1]
    return a


LAYOUTS = st.sampled_from(("row-major", "channels last", "every second", "backwards"))


def written_out(c: Sizes, x: np.ndarray, w: np.ndarray, g: np.ndarray) -> tuple:
    """(result, gradient of the input, gradient of the weight) in float64."""
    x, w, g = (a.astype(np.float64) for a in (x, w, g))
    border = [(0, 0), (0, 0), *((p, p) for p in c.padding)]
    wide = np.pad(x, border)
    y, dx, dw = np.zeros(g.shape), np.zeros(wide.shape), np.zeros(w.shape)
    for at in product(*map(range, c.kernel)):
        spans = zip(at, c.dilation, c.stride, c.places, strict=True)
        seen = tuple(slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, s, n in spans)
        for group in range(c.groups):
            i, o = (slice(group * n, (group + 1) * n) for n in (c.inner, c.outer))
            part, tap, cotangent = wide[(slice(None), i, *seen)], w[(o, slice(None), *at)], g[:, o]
            y[:, o] += np.einsum("nc...,oc->no...", part, tap)
            dx[(slice(None), i, *seen)] += np.einsum("no...,oc->nc...", cotangent, tap)
            flat = [a.reshape(*a.shape[:2], -1) for a in (cotangent, part)]
            dw[(o, slice(None), *at)] = np.einsum("nop,ncp->oc", *flat)
    return y, dx[(..., *(slice(p, p + n) for p, n in zip(c.padding, c.size, strict=True)))], dw


def in_c(c: Sizes, x, w, g, bias=None) -> tuple:
    rest = c.attributes
    return (
        network.convolution(x, w, bias, *rest, c.places),
        network.convolution_input(g, w, c.size, *rest),
        network.convolution_weight(g, x, w.shape, *rest),
    )


def arrays(c: Sizes, kind, seed: int) -> list:
    source = np.random.default_rng(seed)
    return [source.standard_normal(shape).astype(kind) for shape in c.shapes]


@settings(max_examples=60, deadline=None)
@given(
    sizes(),
    st.sampled_from((np.float32, np.float64)),
    st.tuples(LAYOUTS, LAYOUTS, LAYOUTS),
    st.booleans(),
    st.integers(0, 99),
)
def check(c: Sizes, kind, layouts, biased: bool, seed: int) -> None:
    given_arrays = arrays(c, kind, seed)
    wanted = written_out(c, *given_arrays)
    x, w, g = map(turned, given_arrays, layouts)
    bias = np.arange(w.shape[0], dtype=kind) if biased else None
    y, dx, dw = in_c(c, x, w, g, bias)
    shifted = wanted[0] if bias is None else wanted[0] + bias.reshape(-1, *[1] * len(c.size))
    for ours, theirs in zip((y, dx, dw), (shifted, *wanted[1:]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE[ours.dtype] * max(1, np.abs(theirs).max()))


def test_what_is_computed(instructions):
    check()


@st.composite
def sizes_of_each_channel(draw) -> Sizes:
    """Channels by themselves, as many as vectors hold and others; filters with and without gaps, strides and borders."""
    axes = draw(st.sampled_from((1, 2, 2, 2, 3)))
    kernel, stride, padding, dilation = (
        draw(st.tuples(*[st.sampled_from(values)] * axes))
        for values in ((1, 2, 3, 3, 4, 5, 6, 7), (1, 1, 1, 2, 3), (0, 1, 2, 3), (1, 1, 1, 2))
    )
    longest = (1, 2, 5, 7, 8, 9, 14, 17, 28, 35) if axes < 3 else (1, 2, 3, 5)
    size = draw(st.tuples(*[st.sampled_from(longest)] * axes))
    reach = [d * (k - 1) + 1 - 2 * p for k, p, d in zip(kernel, padding, dilation, strict=True)]
    groups = draw(st.sampled_from((2, 16, 19, 40)))
    return Sizes(
        draw(st.sampled_from((1, 2, 5))), 1, 1, groups, tuple(map(max, size, reach)), kernel, stride, padding, dilation
    )


@settings(max_examples=80, deadline=None)
@given(
    sizes_of_each_channel(),
    st.sampled_from((np.float32, np.float64)),
    st.tuples(LAYOUTS, LAYOUTS, LAYOUTS),
    st.integers(0, 99),
)
def check_each_channel(c: Sizes, kind, layouts, seed: int) -> None:
    given_arrays, bias = arrays(c, kind, seed), np.arange(c.groups, dtype=kind)
    wanted = written_out(c, *given_arrays)
    plain = in_c(c, *given_arrays, bias)
    other = in_c(c, *map(turned, given_arrays, layouts), bias)
    shifted = wanted[0] + bias.reshape(-1, *[1] * len(c.size))
    for ours, there, theirs in zip(plain, other, (shifted, *wanted[1:]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE[ours.dtype] * max(1, np.abs(theirs).max()))
        np.testing.assert_array_equal(ours, there)  # no layout changes a bit


def test_each_channel_by_itself(instructions):
    check_each_channel()


LARGE = {
    "pieces of an image": Sizes(1, 5, 9, 1, (40, 37), (3, 3), (1, 1), (1, 1), (1, 1)),
    "many channels": Sizes(3, 150, 40, 1, (5, 6), (3, 3), (1, 1), (1, 1), (1, 1)),
    "one tap": Sizes(2, 300, 20, 1, (12, 13), (1, 1), (1, 1), (0, 0), (1, 1)),
    "a long row": Sizes(2, 2, 9, 1, (3000,), (9,), (2,), (4,), (3,)),
    "a long kernel": Sizes(1, 1, 2, 1, (2500,), (2000,), (1,), (3,), (1,)),
    "a kernel as long as the image": Sizes(3, 4, 6, 1, (9, 700), (9, 700), (1, 1), (0, 0), (1, 1)),
    "a long stride": Sizes(2, 3, 9, 1, (160, 70), (3, 70), (80, 70), (0, 0), (1, 1)),
    "many rows": Sizes(2, 3, 300, 1, (6, 6), (2, 2), (2, 2), (0, 0), (1, 1)),
    "each channel": Sizes(2, 1, 1, 20, (50, 47), (3, 3), (1, 1), (1, 1), (1, 1)),
    "each channel, rows that are cut": Sizes(2, 1, 1, 3, (90, 30), (3, 3), (1, 1), (1, 1), (1, 1)),
    "each channel, a wide filter": Sizes(3, 1, 1, 20, (14, 14), (7, 7), (1, 1), (3, 3), (1, 1)),
    "many channels side by side": Sizes(9, 40, 72, 2, (9, 10), (3, 3), (1, 1), (1, 1), (1, 1)),
    "small images": Sizes(37, 6, 70, 1, (8, 8), (4, 4), (2, 2), (1, 1), (1, 1)),
    "many weights": Sizes(3, 1030, 130, 1, (3, 2), (3, 3), (1, 1), (1, 1), (1, 1)),
    "pairs of columns": Sizes(2, 3, 20, 1, (9, 71), (3, 4), (1, 2), (1, 3), (1, 1)),
    "slices": Sizes(2, 4, 6, 1, (9, 11, 12), (3, 3, 3), (2, 1, 1), (1, 1, 1), (1, 1, 1)),
}


@pytest.mark.parametrize("name", LARGE)
def test_sizes_that_are_cut(name):
    c = LARGE[name]
    given_arrays = arrays(c, np.float32, 0)
    for ours, theirs in zip(in_c(c, *given_arrays), written_out(c, *given_arrays), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-5 * np.abs(theirs).max())


@pytest.mark.parametrize("name", LARGE)
def test_threads_do_not_change_a_bit(name):
    c, before = LARGE[name], torch.get_num_threads()
    given_arrays, found = arrays(c, np.float32, 0), []
    try:
        for threads, layout in product((1, 2, 3, 3), ("row-major", "channels last")):
            torch.set_num_threads(threads)
            found.append(in_c(c, *(turned(a, layout) for a in given_arrays)))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_lies_behind_a_row_is_not_read():
    """Infinities next to what a tap reads stay out of sums that do not meet them."""
    c = Sizes(1, 1, 1, 2, (5, 5), (3, 3), (1, 1), (0, 0), (1, 1))
    x, w, g = arrays(c, np.float32, 0)
    x[..., 4, :] = x[..., 4] = np.inf
    y, _, dw = in_c(c, x, w, g)
    assert np.isfinite(y[..., :2, :2]).all() and not np.isfinite(y[..., 2, :]).any()
    assert np.isfinite(dw[..., :2, :2]).all() and not np.isfinite(dw[..., 2, :]).any()


def test_pixels_are_read_where_they_lie():
    """Layers of each channel by itself give channels-last what they were given so, without a copy to row-major order in between."""
    c = Sizes(2, 1, 1, 24, (9, 8), (3, 3), (1, 1), (1, 1), (1, 1))
    x, w, g = (torch.from_numpy(turned(a, "channels last")) for a in arrays(c, np.float32, 0))
    y, dx, dw = in_c(c, *(t.numpy() for t in (x, w, g)))
    assert y.base is None and dx.base is None and y.strides == dx.strides == x.numpy().strides
    settings = (None, [1, 1], [1, 1], [1, 1], False, [0, 0], 24)
    found = torch.ops.aten.convolution(x, w, *settings)
    assert found.is_contiguous(memory_format=torch.channels_last) and found._array.base is None
    np.testing.assert_array_equal(found.numpy(), y)
    gradients = torch.ops.aten.convolution_backward(g, x, w, *settings, [True, True, False])
    np.testing.assert_array_equal(gradients[0].numpy(), dx)
    np.testing.assert_array_equal(gradients[1].numpy(), dw)
