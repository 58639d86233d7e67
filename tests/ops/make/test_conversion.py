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
