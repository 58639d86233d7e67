"""Truths on the bytes of numbers (`x.view(torch.bool)`): true where a byte is not 0, and 1 in every calculation."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import pullback as torch

BYTES = [195, 0, 1, 2]
TRUTHS = [1, 0, 1, 1]


def mask():
    base = torch.tensor(BYTES, dtype=torch.uint8)
    return base, base.view(torch.bool)


def saved(b):
    file = io.BytesIO()
    torch.save(b, file)
    file.seek(0)
    return torch.load(file)


MADE = {
    "view": lambda b: b,
    "view of it": lambda b: b.view(2, 2).t().t().reshape(4),
    "detached": lambda b: b.detach(),
    "clone": lambda b: b.clone(),
    "copy": copy.deepcopy,
    "pickle": lambda b: pickle.loads(pickle.dumps(b)),
    "file": saved,
    "storage": lambda b: torch.empty(0, dtype=torch.bool).set_(b.untyped_storage()),
    "set": lambda b: torch.empty(0, dtype=torch.bool).set_(b),
    "buffer": lambda b: torch.frombuffer(bytearray(BYTES), dtype=torch.bool),
    "array": lambda b: torch.from_numpy(np.array(BYTES, np.uint8).view(bool)),
    "copied array": lambda b: torch.tensor(np.array(BYTES, np.uint8).view(bool)),
    "capsule": torch.from_dlpack,
}


@pytest.mark.parametrize("made", MADE)
def test_wherever_they_come_from(made):
    b = MADE[made](mask()[1])
    assert b.int().tolist() == (b + 0.0).tolist() == TRUTHS and b.cumsum(0).tolist() == [1, 1, 2, 3]


X = torch.arange(4.0)
USES = {
    "numbers": lambda b: (b.float(), b.to(torch.uint8), b * 2, b.sort(), torch.cat([b, b.int()])),
    "tests": lambda b: (b == True, b ^ True, b.all(), torch.unique(b), b.nonzero(), b.max(0)),  # noqa: E712
    "masks": lambda b: (
        X[b],
        torch.where(b, X, -X),
        X.masked_fill(b, 9),
        torch.masked_select(X, b),
        torch.zeros(4).copy_(b),
    ),
    "places": lambda b: (
        b.flip(0).int(),
        b[[0, 3]].int(),
        b.gather(0, torch.tensor([3, 0])).int(),
        torch.stack([b, b]).sum(),
    ),
    "vmap": lambda b: torch.vmap(lambda v: v.int() * 2)(b),
    "compiled": torch.compile(lambda b: (b + 1.0, b.sum(), b == True, torch.where(b, 1, 2))),  # noqa: E712
}


@pytest.mark.parametrize("use", USES)
def test_whatever_is_done_with_them(use):
    plain = torch.tensor(TRUTHS, dtype=torch.bool)
    got, expected = USES[use](mask()[1]), USES[use](plain)
    assert str(got) == str(expected)


def test_results_of_masked_calls_keep_their_dtype():
    assert torch.masked_select(X, mask()[1]).dtype is torch.float32


@pytest.mark.parametrize(
    "write, numbers",
    [
        (lambda b: b.fill_(True), [1, 1, 1, 1]),
        (lambda b: b.logical_not_(), [0, 1, 0, 0]),
        (lambda b: b.copy_(torch.tensor([0, 3, 0, 1])), [0, 1, 0, 1]),
        (lambda b: b.__setitem__(1, True), [195, 1, 1, 2]),
        (lambda b: b.index_fill_(0, torch.tensor([1]), True), [195, 1, 1, 2]),
        (lambda b: b.__setitem__(b, False), [0, 0, 0, 0]),
    ],
)
def test_writes_reach_the_numbers(write, numbers):
    base, b = mask()
    write(b)
    assert base.tolist() == numbers and b._version == 1 and b.int().tolist() == [int(n != 0) for n in numbers]


def test_later_writes_to_the_numbers_are_seen():
    base = torch.tensor([255, 0, 1], dtype=torch.uint8)
    b = base.view(torch.bool)
    base.add_(1)
    assert b.int().tolist() == [0, 1, 1] and b.view(torch.uint8).tolist() == [0, 1, 2]


def test_a_single_truth():
    b = torch.tensor(7, dtype=torch.uint8).view(torch.bool)
    assert (b + 1).item() == 2 and (b == True).item() and (b & b).int().item() == 1  # noqa: E712
    assert b.chalf().dtype is torch.complex32 and torch.tensor(np.array(7, np.uint8).view(bool)).int().item() == 1
