"""Copies and casts: what numbers become in another dtype."""

from __future__ import annotations

import math

import pytest

import pullback as torch


@pytest.mark.parametrize("source", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_floats_outside_the_range_of_integers(source):
    """What is outside of int32, and NaN, is its lowest number; narrower integers are cut from that, eager and compiled."""
    x = torch.tensor([math.nan, math.inf, -math.inf, 300.0, -2.5], dtype=source)
    lowest = -(2**31)
    expected = {
        torch.int32: [lowest, lowest, lowest, 300, -2],
        torch.int16: [0, 0, 0, 300, -2],
        torch.int8: [0, 0, 0, 44, -2],
        torch.uint8: [0, 0, 0, 44, 254],
    }
    for target, numbers in expected.items():
        assert x.to(target).tolist() == numbers
        assert torch.zeros(5, dtype=target).copy_(x).tolist() == numbers
        assert torch.compile(lambda t, d=target: (t * 1).to(d))(x).tolist() == numbers


def test_to_a_memory_format_looks_at_the_order_of_dimensions():
    """Itself where the strides are ordered so already, gaps or none; where sizes of 1 leave it open, a copy."""
    last = torch.channels_last
    open_order = torch.zeros(3, 2, 1, 1)
    assert open_order.to(memory_format=last).stride() == (2, 1, 2, 2)
    gaps = torch.zeros(4, 6, 2, 2).contiguous(memory_format=last)[:, ::2]
    assert gaps.to(memory_format=last) is gaps
    turned = torch.zeros(3, 4).t()
    assert turned.to(memory_format=torch.contiguous_format) is turned
    image = torch.zeros(2, 3, 4, 4)
    for cast in (image.cpu, image.float):
        assert cast() is image and cast(memory_format=last).stride() == (48, 1, 12, 3)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        turned.float(memory_format=last)
