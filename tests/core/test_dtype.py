"""dtypes: one object each, with PyTorch's names and facts."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import pullback as torch

ALL = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]


@pytest.mark.parametrize("d", ALL, ids=str)
def test_a_dtype_is_one_object(d) -> None:
    assert pickle.loads(pickle.dumps(d)) is d and copy.deepcopy(d) is d
    assert repr(d).startswith("torch.") and getattr(torch, repr(d).removeprefix("torch.")) is d
    assert torch.empty(2, dtype=d).element_size() == d.itemsize
    assert torch.empty(2, dtype=d).to(torch.float64).dtype is torch.float64


def test_facts() -> None:
    assert torch.float is torch.float32 and torch.long is torch.int64 and torch.half is torch.float16
    assert torch.bfloat16.is_floating_point and torch.complex64.is_complex and not torch.uint8.is_signed
    assert torch.complex64.to_real() is torch.float32 and torch.float64.to_complex() is torch.complex128


@pytest.mark.parametrize("d", [torch.float16, torch.float32, torch.float64], ids=str)
def test_finfo_is_numpys(d) -> None:
    ours, theirs = torch.finfo(d), np.finfo(d.numpy)
    assert (ours.eps, ours.max, ours.min, ours.tiny) == tuple(
        float(v) for v in (theirs.eps, theirs.max, theirs.min, theirs.tiny)
    )


def test_iinfo() -> None:
    assert torch.iinfo(torch.int8).min == -128 and torch.iinfo(torch.uint8).max == 255
    with pytest.raises(TypeError):
        torch.iinfo(torch.float32)


def test_limits_of_types_of_python():
    assert torch.finfo(float).dtype == torch.finfo(complex).dtype == "float64"
    assert torch.iinfo(int).max == 2**63 - 1
    with pytest.raises(TypeError, match="requires a floating point"):
        torch.finfo(int)
    with pytest.raises(TypeError, match=r"finfo\(\): argument 'type' \(position 1\) must be torch.dtype"):
        torch.finfo("float32")


def test_complex_of_a_dtype():
    assert torch.bfloat16.to_complex() is torch.complex64 and torch.complex32.to_complex() is torch.complex32
    for d, name in ((torch.bool, "Bool"), (torch.int8, "Char"), (torch.float8_e4m3fn, "Float8_e4m3fn")):
        with pytest.raises(RuntimeError, match=f"Unknown Complex ScalarType for {name}"):
            d.to_complex()
