"""Schemas: PyTorch's texts, read."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.ops.system.operator import registry
from pullback.ops.system.schema import Schema


def test_arguments_are_read() -> None:
    s = Schema(
        "f.x(Tensor(a!) self, int[2] size=1, *, Scalar? alpha=None, str mode='none', Tensor?[] rest) -> (Tensor values, Tensor indices)"
    )
    names = [(a.name, a.kwarg_only, a.is_tensor, a.is_list, a.optional) for a in s.arguments]
    assert names == [
        ("self", False, True, False, False),
        ("size", False, False, True, False),
        ("alpha", True, False, False, True),
        ("mode", True, False, False, False),
        ("rest", True, True, True, False),
    ]
    assert s.arguments[3].default == "none" and s.arguments[2].default is None
    assert [n for _, n in s.returns] == ["values", "indices"]


@pytest.mark.parametrize("op", [op for op in registry.values() if op.namespace == "aten"][::7], ids=str)
def test_every_schema_parses_and_names_its_operator(op) -> None:
    assert op.schema.arguments is not None and op.text.startswith(op.name)
    assert all(a.name.isidentifier() for a in op.schema.arguments)


def test_packets_give_overloads() -> None:
    x = torch.ones(2)
    assert torch.ops.aten.add.Tensor(x, x).tolist() == [2, 2] and torch.ops.aten.add(x, 1).tolist() == [2, 2]
    assert str(torch.ops.aten.add.Tensor) == "aten.add.Tensor" and "Tensor" in torch.ops.aten.add.overloads()
    with pytest.raises(RuntimeError, match="missing value for argument 'other'"):
        torch.ops.aten.add.Tensor(x)
    with pytest.raises(AttributeError):
        torch.ops.aten.no_such_operator


def test_schemas_that_say_the_same_are_equal():
    texts = "f.out(Tensor self, int a=2) -> Tensor(a!)", "f.out(Tensor self,int a=2)->Tensor(a!)"
    one, other = map(Schema, texts)
    assert one == other and hash(one) == hash(other) and len({one, other}) == 1
    different = (
        "f(Tensor self, int a=2) -> Tensor(a!)", "f.out(Tensor self, int a=3) -> Tensor(a!)", "f.out(Tensor self, int a=2) -> Tensor",
        "f.out(Tensor self, *, int a=2) -> Tensor(a!)", "f.out(Tensor? self, int a=2) -> Tensor(a!)",
    )  # fmt: skip
    assert all(one != Schema(text) for text in different) and len({one, *map(Schema, different)}) == 6
