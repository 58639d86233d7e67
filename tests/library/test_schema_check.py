"""Operators held to their schemas, call by call."""

import pytest

import pullback as torch
from pullback.library import _scoped_library
from pullback.library.aliasing import is_alias_of, overlaps
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


def test_what_shares_memory_with_a_written_argument_is_written_too():
    x = torch.rand(3, 3)
    with SchemaCheckMode() as mode:
        x.add_(x)
    assert mode.mutated == [("aten::add_", "input"), ("aten::add_", "other")]
    assert mode.aliasing == [("aten::add_", "input", "output_0"), ("aten::add_", "other", "output_0")]


def test_running_statistics_are_written_without_a_word():
    batch = torch.nn.BatchNorm1d(3)
    with SchemaCheckMode() as mode:
        batch(torch.rand(4, 3))
    assert {name for _, name in mode.mutated} >= {"running_mean", "running_var"}


class Holder(torch.Tensor):
    """A wrapper whose operators do what their schemas deny."""

    @staticmethod
    def __new__(cls, elem):
        return torch.Tensor._make_wrapper_subclass(cls, elem.shape, dtype=elem.dtype)

    def __init__(self, elem):
        self.elem = elem

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = [a.elem if isinstance(a, cls) else a for a in args]
        out = func(*plain, **(kwargs or {}))
        if func is torch.ops.aten.add.Tensor:
            args[0].elem = out
        if func is torch.ops.aten.sub.Tensor:
            args[0].elem = torch.rand(3)
        return cls(out)


@pytest.mark.parametrize("name, words", [("add", "not defined to alias output"), ("sub", "not defined as mutable")])
def test_wrappers_are_looked_into(name, words):
    a, b = Holder(torch.rand(3)), Holder(torch.rand(3))
    with SchemaCheckMode():
        torch.mul(a, b)
        with pytest.raises(RuntimeError, match=words):
            getattr(torch, name)(a, b)


def test_memory_in_common():
    x = torch.arange(6.0)
    assert is_alias_of([x[:2]], x[4:]) and not is_alias_of([], x) and not is_alias_of(x, x.clone())
    assert overlaps([x.clone(), x[:3]], x[2:]) and not overlaps(x[:2], x[4:]) and not overlaps([], [])
