"""Versions of a schema: which programs of one run with the other (answers recorded from PyTorch)."""

from __future__ import annotations

import pytest

from pullback.ops.system.schema import Schema

OLD = "f(Tensor self, int a, *, int b=1, Tensor(a!) out) -> (Tensor(a!))"


@pytest.mark.parametrize(
    "new, fits",
    [
        (OLD, True),
        ("f(Tensor self, int a, *, int b=1, int c=2, Tensor(a!) out) -> (Tensor(a!))", True),
        ("f(Tensor self, int? a, *, int b=1, Tensor(a!) out) -> (Tensor(a!))", True),
        ("f(Tensor self, int a, *, int b=1, int c, Tensor(a!) out) -> (Tensor(a!))", False),
        ("f(Tensor self, int a, *, int b=2, Tensor(a!) out) -> (Tensor(a!))", False),
        ("f(Tensor self, *, int a, int b=1, Tensor(a!) out) -> (Tensor(a!))", False),
        ("f(Tensor self, int a, *, int b=1) -> (Tensor(a!))", False),
        ("f(Tensor self, int a, *, int b=1, Tensor(a!) out) -> (Tensor(a!)?)", False),
        ("g(Tensor self, int a, *, int b=1, Tensor(a!) out) -> (Tensor(a!))", False),
    ],
)
def test_calls_of_an_old_schema_run_with_a_new_one(new, fits):
    assert Schema(new).is_backward_compatible_with(Schema(OLD)) is fits


@pytest.mark.parametrize(
    "new, why",
    [
        (OLD, ""),
        ("f(Tensor self, int a, *, int b=1, int c=2, Tensor(a!) out) -> (Tensor(a!))", ""),
        (
            "f(Tensor self, int a, *, int b=1, int[2] c=1, Tensor(a!) out) -> (Tensor(a!))",
            "Function schema is not forward compatible since the new argument 'c' of type int[] has a container type as its default value.",
        ),
        (
            "f(Tensor self, int a, *, int b=1, int c, Tensor(a!) out) -> (Tensor(a!))",
            "Function schema is not forward compatible since the new argument 'c' of type int did not provide a default value.",
        ),
        (
            "f(Tensor self, int a, *, int b=3, Tensor(a!) out) -> (Tensor(a!))",
            "'b' is not forward compatible with the older version of the schema",
        ),
        (
            "f(Tensor self, int a, *, int b=1) -> (Tensor(a!))",
            "Function schema should have the same number of out arguments",
        ),
    ],
)
def test_calls_of_a_new_schema_run_with_an_old_one(new, why):
    assert Schema(new).check_forward_compatible_with(Schema(OLD)) == (not why, why)


def test_types_of_values_in_programs():
    schema = Schema("f(ScalarType? dtype, SymInt[2] size, Device? device) -> SymInt")
    assert [a.type.str() for a in schema.arguments] == ["int?", "int[]", "Device?"]
    assert [a.real_type.str() for a in schema.arguments] == ["ScalarType?", "SymInt[2]", "Device?"]
    assert (schema.returns[0].type.str(), schema.returns[0].real_type.str()) == ("int", "SymInt")
