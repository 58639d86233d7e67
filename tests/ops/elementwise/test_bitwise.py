"""Bits and truth: operators, shifts beyond the width, what is refused."""

import pytest

import pullback as torch


def test_bits():
    x = torch.tensor([6, -2])
    assert (x & 3).tolist() == [2, 2] and (x | 1).tolist() == [7, -1] and (x ^ x).tolist() == [0, 0]
    assert (~x).tolist() == [-7, 1] and (~torch.tensor([True])).item() is False
    assert (torch.tensor([True]) & torch.tensor([False])).dtype is torch.bool
    assert torch.bitwise_and(3, x).tolist() == [2, 2] and (x & True).dtype is torch.int64


def test_shifts():
    x = torch.tensor([1, -8])
    assert (x << 2).tolist() == [4, -32] and (x >> 1).tolist() == [0, -4]
    assert (x << 70).tolist() == [0, 0] and (x >> 70).tolist() == [0, -1] and (x << -1).tolist() == [0, 0]
    assert (torch.tensor([200], dtype=torch.uint8) << 1).item() == 144


def test_truth():
    x, y = torch.tensor([0.0, 2.0]), torch.tensor([1, 0])
    assert torch.logical_and(x, y).tolist() == [False, False] and torch.logical_or(x, y).tolist() == [True, True]
    assert torch.logical_xor(x, y).tolist() == [True, True] and x.logical_not().tolist() == [True, False]
    assert y.clone().logical_not_().tolist() == [0, 1]


REFUSED = [
    ("torch.ones(2) & 1", NotImplementedError, "\"bitwise_and_cpu\" not implemented for 'Float'"),
    ("torch.ones(2) << 1", NotImplementedError, "\"lshift_cpu\" not implemented for 'Float'"),
    ("torch.tensor([True]) << True", NotImplementedError, "\"lshift_cpu\" not implemented for 'Bool'"),
    ("torch.bitwise_or(torch.tensor([1]), 1.5)", NotImplementedError, "not implemented for 'Float'"),
    ("torch.bitwise_not(torch.ones(2))", NotImplementedError, "\"bitwise_not_cpu\" not implemented for 'Float'"),
    ("~torch.ones(2)", TypeError, "only implemented on integer and Boolean-type tensors"),
    ("torch.logical_and(torch.ones(2), 1)", TypeError, "must be Tensor, not int"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        eval(call)
