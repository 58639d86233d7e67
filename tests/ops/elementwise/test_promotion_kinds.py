"""Dtypes of computations and results, by kinds of operators (values recorded from PyTorch)."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.ops.elementwise.promotion_kinds import ELEMENTWISE_TYPE_PROMOTION_KIND as Kind
from pullback.ops.elementwise.promotion_kinds import elementwise_dtypes


@pytest.mark.parametrize(
    ("operands", "kind", "expected"),
    [
        ((torch.half,), "DEFAULT", ("float32", "float16")),
        ((torch.half,), "NO_OPMATH", ("float16", "float16")),
        ((torch.half, torch.float), "DEFAULT", ("float32", "float32")),
        ((torch.int32,), "INT_TO_FLOAT", ("float32", "float32")),
        ((torch.bfloat16,), "INT_TO_FLOAT", ("float32", "bfloat16")),
        ((torch.complex64,), "COMPLEX_TO_FLOAT", ("complex64", "float32")),
        ((torch.bool,), "BOOL_TO_LONG", ("int64", "int64")),
        ((torch.int32, torch.float), "ALWAYS_BOOL", ("float32", "bool")),
    ],
)
def test_dtypes(operands, kind: str, expected) -> None:
    found = elementwise_dtypes(*[torch.ones(2, dtype=d) for d in operands], type_promotion_kind=Kind[kind])
    assert found == tuple(getattr(torch, name) for name in expected)
