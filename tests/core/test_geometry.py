"""Shapes and strides: what NumPy says of the same arrays."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as torch
from pullback.core.geometry import (
    broadcast_shapes,
    contiguous_strides,
    elementwise_strides,
    infer_size,
    is_contiguous,
    is_dense,
    may_overlap,
    view_strides,
    wrap_dim,
    wrap_dims,
)  # fmt: skip

shapes = st.lists(st.integers(1, 4), max_size=4).map(tuple)
bounded = settings(max_examples=80, deadline=None, derandomize=True)


@bounded
@given(shapes)
def test_contiguous_strides_are_numpys(shape) -> None:
    assert contiguous_strides(shape) == tuple(s // 8 for s in np.empty(shape).strides)
    assert is_contiguous(shape, contiguous_strides(shape)) and is_dense(shape, contiguous_strides(shape))


@bounded
@given(shapes, shapes)
def test_broadcasting_is_numpys(a, b) -> None:
    try:
        wanted = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(RuntimeError, match="must match the size of tensor b"):
            broadcast_shapes(a, b)
    else:
        assert broadcast_shapes(a, b) == wanted


@bounded
@given(st.data())
def test_a_view_has_strides_exactly_when_numpy_needs_no_copy(data) -> None:
    a = (
        np.arange(24)
        .reshape(2, 3, 4)
        .transpose(data.draw(st.permutations(range(3))))[:, :: data.draw(st.integers(1, 2))]
    )
    new = data.draw(st.sampled_from([(a.size,), (2, a.size // 2), (*a.shape, 1), (a.shape[0], -1), (1, *a.shape)]))
    new = infer_size(new, a.size)
    result = view_strides(a.shape, tuple(s // 8 for s in a.strides), new)
    reshaped = a.reshape(new)
    assert (result is not None) == np.shares_memory(reshaped, a)
    if result is not None:
        assert [s for s, n in zip(result, new, strict=True) if n > 1] == [
            s // 8 for s, n in zip(reshaped.strides, new, strict=True) if n > 1
        ]


def test_overlap() -> None:
    assert may_overlap((3,), (0,)) and may_overlap((2, 2), (1, 1))
    assert not may_overlap((2, 3), (3, 1)) and not may_overlap((2, 3), (1, 2)) and not may_overlap((1, 3), (0, 1))


def test_dims_wrap() -> None:
    assert [wrap_dim(d, 3) for d in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    assert wrap_dim(-1, 0) == 0 and wrap_dims((0, -1), 3) == (0, 2)
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
        wrap_dim(2, 2)
    with pytest.raises(RuntimeError, match="appears multiple times"):
        wrap_dims((0, -2), 2)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_elementwise_results_keep_the_order_of_their_operands(order) -> None:
    a = np.empty([(2, 3, 4)[d] for d in order]).transpose(np.argsort(order))
    strides = tuple(s // 8 for s in a.strides)
    assert elementwise_strides(a.shape, [(a.shape, strides), (a.shape, strides)]) == strides


def test_a_slice_of_channels_last_memory_has_gaps():
    x = torch.randn(2, 8, 6, 10).contiguous(memory_format=torch.channels_last)
    for part in (x[:, ::2], x[:, :, ::2], x[:, :4], x[:, :, :1]):
        assert not part.is_contiguous(memory_format=torch.channels_last)
        result = part.contiguous(memory_format=torch.channels_last)
        assert result.is_contiguous(memory_format=torch.channels_last) and torch.equal(result, part)
    assert x[:1].is_contiguous(memory_format=torch.channels_last)
    assert torch.randn(2, 1, 4, 5).is_contiguous(memory_format=torch.channels_last)


def test_no_elements_are_dense_whatever_their_strides():
    for shape, stride in (((2, 0), (0, 1)), ((0, 2), (1, 0)), ((0,), (7,)), ((2, 0, 3), (0, 0, 0))):
        assert is_dense(shape, stride)
    assert is_dense((2, 3), (1, 2)) and not is_dense((2, 3), (0, 1))


@pytest.mark.parametrize(
    "shapes, words",
    [
        (
            ((10, 10), (11, 11)),
            r"size of tensor a \(10\) must match the size of tensor b \(11\) at non-singleton dimension 1",
        ),
        (((2, 10, 10), (11, 11)), "at non-singleton dimension 2"),
        (((10, 2), (11, 2)), "at non-singleton dimension 0"),
    ],
)
def test_of_sizes_that_do_not_meet_the_last_are_named(shapes, words):
    with pytest.raises(RuntimeError, match=words):
        broadcast_shapes(*shapes)
