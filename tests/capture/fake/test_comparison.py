"""Tensors compared by their metadata, and what fakes say of themselves."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.fake.comparison import compare_metadata, suggest_memory_format
from pullback.capture.fake.mode import FakeTensorMode


def test_metadata_that_differs_is_named():
    a = torch.ones(2, 3)
    compare_metadata(a, torch.zeros(2, 3), check_strides=True)
    for b, words in ((a.double(), "Dtypes"), (a.T, "Shapes"), (torch.ones(3, 2).T, "Strides")):
        with pytest.raises(RuntimeError, match=words):
            compare_metadata(a, b, check_strides=True)


def test_formats():
    x = torch.ones(2, 3, 4, 5)
    assert suggest_memory_format(x) is torch.contiguous_format
    assert suggest_memory_format(x.contiguous(memory_format=torch.channels_last)) is torch.channels_last


def test_attributes_of_fakes_alone():
    with FakeTensorMode() as mode:
        x = torch.tensor([1])
        assert x.constant is not None and x.fake_device.type == "cpu"
        x.resize_([2])
        assert x.constant is None
    real = torch.ones(1)
    assert not hasattr(real, "constant")
    real.constant = 3
    assert real.constant == 3
    leaf = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    leaf.grad_dtype = torch.float32
    assert mode.from_tensor(leaf).grad_dtype is torch.float32
    with mode, pytest.raises(RuntimeError, match="Negative strides are not supported"):
        torch.empty(4).as_strided((2,), (-1,), 1)
