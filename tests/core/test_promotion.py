"""Type promotion: PyTorch's lattice, and ranks of tensors, 0-d tensors and numbers."""

from __future__ import annotations

import itertools

import pytest

import pullback as torch

ORDER = [
    torch.bool,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations_with_replacement(ORDER, 2)), ids=str)
def test_promotion_is_symmetric_and_never_loses_the_category(a, b) -> None:
    result = torch.promote_types(a, b)
    assert result is torch.promote_types(b, a)
    assert torch.can_cast(a, result) and torch.can_cast(b, result)
    assert torch.promote_types(result, a) is result


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        (torch.uint8, torch.int8, torch.int16), (torch.float16, torch.bfloat16, torch.float32), (torch.float64, torch.complex64, torch.complex128),
        (torch.int64, torch.float16, torch.float16), (torch.bool, torch.uint8, torch.uint8),
    ],
)  # fmt: skip
def test_pairs(a, b, result) -> None:
    assert torch.promote_types(a, b) is result


def test_dimensions_outrank_zero_dimensions_and_numbers() -> None:
    vector, scalar = torch.ones(2, dtype=torch.float32), torch.ones((), dtype=torch.float64)
    assert (vector + scalar).dtype is torch.float32
    assert (vector + 1.5).dtype is torch.float32 and (vector + 1j).dtype is torch.complex64
    assert (torch.ones(2, dtype=torch.int32) + scalar).dtype is torch.float64
    assert (torch.ones(2, dtype=torch.int32) + 1.5).dtype is torch.get_default_dtype()
    assert (torch.ones(2, dtype=torch.uint8) + torch.tensor(300)).dtype is torch.uint8
    assert torch.result_type(scalar, 1) is torch.float64


def test_what_cannot_be_cast() -> None:
    assert not torch.can_cast(torch.float32, torch.int64) and not torch.can_cast(torch.complex64, torch.float64)
    assert torch.can_cast(torch.float64, torch.float16) and torch.can_cast(torch.int64, torch.uint8)
