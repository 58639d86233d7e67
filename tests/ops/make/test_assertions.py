"""Assertions that graphs hold."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.shapes import ShapeEnv

aten = torch.ops.aten


def test_numbers_and_tensors_that_are_zero_raise() -> None:
    assert aten._assert_scalar(True, "words") is None
    with pytest.raises(RuntimeError, match="words"):
        aten._assert_scalar(False, "words")
    aten._assert_async(torch.ones(1))
    aten._assert_async.msg(torch.ones(()), "words")
    with pytest.raises(RuntimeError, match="single nonzero value"):
        aten._assert_async(torch.zeros(1))
    with pytest.raises(RuntimeError, match="words"):
        aten._assert_async.msg(torch.zeros(()), "words")
    with pytest.raises(RuntimeError, match="ambiguous"):
        aten._assert_async(torch.ones(2))


def test_metadata() -> None:
    t = torch.ones(2, 3)
    aten._assert_tensor_metadata(t, [2, 3], [3, 1], torch.float32, device="cpu")
    aten._assert_tensor_metadata(t)
    for args, words in (
        (([2, 2],), "sizes"),
        ((None, [1, 2]), "strides"),
        ((None, None, torch.float64), "dtype"),
    ):
        with pytest.raises(RuntimeError, match=f"Tensor {words} mismatch! Expected"):
            aten._assert_tensor_metadata(t, *args)


def test_ranges_of_numbers():
    assert aten.sym_constrain_range(5, min=1, max=10) is None and aten.sym_constrain_range(5.5, min=6) is None
    with pytest.raises(RuntimeError, match=r"Invalid value range for 50 between \[1, 10\]"):
        aten.sym_constrain_range(50, min=1, max=10)
    with pytest.raises(RuntimeError, match="Max must be greater than or equal to min"):
        aten.sym_constrain_range(5, min=6, max=3)
    assert aten.sym_constrain_range_for_size(1) is None
    with pytest.raises(RuntimeError, match="Invalid value range for -1 between"):
        aten.sym_constrain_range_for_size(-1)
    with pytest.raises(RuntimeError, match="greater than 2. got: 1"):
        aten.sym_constrain_range_for_size(5, max=1)


def test_ranges_of_symbols_are_known_from_there_on():
    env = ShapeEnv()
    n = env.create_unbacked_symint()
    aten.sym_constrain_range_for_size(n, min=2, max=7)
    assert n >= 2 and n <= 7
