"""Switches of libraries: what can be set is read back, and what nobody knows is refused."""

import pytest

import pullback as torch

b = torch.backends


def test_precision_of_one_kind_of_kernel():
    assert [k.fp32_precision for k in (b.mkldnn.matmul, b.mkldnn.conv, b.mkldnn.rnn)] == ["none"] * 3
    b.mkldnn.conv.fp32_precision = "bf16"
    b.mkldnn.fp32_precision = "tf32"
    try:
        assert (b.mkldnn.conv.fp32_precision, b.mkldnn.rnn.fp32_precision) == ("bf16", "tf32")
    finally:
        b.mkldnn.conv.fp32_precision = b.mkldnn.fp32_precision = "none"
    b.fp32_precision = "ieee"
    try:
        assert b.mkldnn.matmul.fp32_precision == "ieee"
    finally:
        b.fp32_precision = "none"


@pytest.mark.parametrize("place", [b, b.mkldnn, b.mkldnn.rnn, b.cudnn, b.cudnn.conv, b.cuda.matmul])
def test_unknown_precisions(place):
    before = place.fp32_precision
    with pytest.raises(RuntimeError, match="Unknown precision: half"):
        place.fp32_precision = "half"
    assert place.fp32_precision == before


def test_precisions_of_cuda_are_other_names():
    assert b.cudnn.conv.fp32_precision == "tf32" and b.cuda.matmul.fp32_precision == "ieee"
    b.cudnn.rnn.fp32_precision = "ieee"
    try:
        assert not b.cudnn.allow_tf32
    finally:
        b.cudnn.allow_tf32 = True
