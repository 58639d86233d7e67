"""Operators held to their schemas, call by call."""

import pytest

import pullback as torch
from pullback.library import _scoped_library
from pullback.library.schema_check import Aliasing, Mutation, SchemaCheckMode


def test_built_in_operators_keep_their_schemas(capsys):
    x = torch.ones(2, 3)
    with SchemaCheckMode() as mode:
        x.view(6).add_(1)
        torch.split(x, 1)
        torch.max(x, dim=0)
        x.to(torch.float64)
    assert mode.mutated == [Mutation("aten::add_", "input")]
    assert mode.aliasing[:2] == [
        Aliasing("aten::view", "input", "output_0"),
        Aliasing("aten::add_", "input", "output_0"),
    ]
    mode.display_ops()
    assert capsys.readouterr().out.startswith("aten::view,aten::add_,aten::split")
    mode.reset_cache()
    assert mode.ops == mode.mutated == mode.aliasing == []


@pytest.mark.parametrize(
    "kernel, words",
    [
        (lambda x: x.add_(1).clone(), "Argument x is not defined as mutable but was mutated"),
        (lambda x: x.view(-1), "Argument x is not defined to alias output but was aliasing"),
    ],
)
def test_what_a_schema_does_not_say(kernel, words):
    with _scoped_library("t_schema", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", kernel, "CPU")
        with SchemaCheckMode(), pytest.raises(RuntimeError, match=words):
            torch.ops.t_schema.f(torch.zeros(2))


def test_an_argument_given_back():
    with _scoped_library("t_schema", "FRAGMENT") as lib:
        lib.define("g(Tensor(a) x) -> Tensor(a)")
        lib.impl("g", lambda x: x, "CPU")
        with SchemaCheckMode(), pytest.raises(RuntimeError, match="not allowed to directly return inputs"):
            torch.ops.t_schema.g(torch.zeros(2))


def test_tensors_without_data_are_let_through():
    with SchemaCheckMode() as mode:
        torch.empty(2, device="meta") + 1
    assert mode.ops == ["aten::empty", "aten::add"]
