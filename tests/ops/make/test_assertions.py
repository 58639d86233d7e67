"""Assertions that graphs hold."""

from __future__ import annotations

import pytest

import pullback as torch

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
