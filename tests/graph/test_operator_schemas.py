"""Arguments by signature."""

import numbers
import typing

import pytest

import pullback as torch
from pullback import nn
from pullback.graph import Tracer, symbolic_trace
from pullback.graph.annotate import annotate
from pullback.graph.operator_schemas import (
    create_type_hint,
    get_signature_for_torch_op,
    normalize_function,
    type_matches,
)


def test_operators():
    args, kwargs = normalize_function(torch.ops.aten.sum.dim_IntList, (1, [0]))
    assert args == (1, [0]) and kwargs == {"keepdim": False, "dtype": None}
    args, kwargs = normalize_function(torch.nn.functional.relu, (1,), normalize_to_only_use_kwargs=True)
    assert args == () and kwargs == {"input": 1, "inplace": False}
    assert (
        str(get_signature_for_torch_op(torch.ops.aten.add.Tensor)[0])
        == "(input: 'Tensor', other: 'Tensor', *, alpha: 'Scalar' = 1)"
    )
    assert get_signature_for_torch_op(print) is None
    with pytest.raises(RuntimeError, match="the schema match was ambiguous"):
        normalize_function(torch.ops.aten.lerp, (1, 2, 3))
    kinds = (torch.Tensor, torch.Tensor, float)
    assert normalize_function(torch.ops.aten.lerp, (1, 2, 3), arg_types=kinds).args == (1, 2, 3)
    assert normalize_function(torch.ops.aten.lerp, (1, 2, 3), arg_types=(str, str, str)) is None


def test_modules():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(2, 2)

        def forward(self, x):
            return self.lin(x)

    gm = symbolic_trace(M())
    x, lin, _ = gm.graph.nodes
    assert lin.normalized_arguments(gm) == ((x,), {}) and x.normalized_arguments(gm) is None
    assert lin.normalized_arguments(gm, normalize_to_only_use_kwargs=True).kwargs == {"input": x}


def test_mutable_operations_can_be_refused():
    class Functional(Tracer):
        check_mutable_operations = True

    def f(x):
        return torch.add(x, 1, out=x)

    with pytest.raises(
        RuntimeError, match=r"Tried to trace mutable operation aten::add.out\(.*FX only supports functional code"
    ):
        Functional().trace(f)


def test_annotate():
    def f(x):
        return annotate(x + 1, int)

    gm = symbolic_trace(f)
    assert "add : int = x + 1" in gm.code and annotate(3, int) == 3
    with pytest.raises(RuntimeError, match="already had a type"):
        symbolic_trace(twice)


def twice(x: int):
    return annotate(x, int)


@pytest.mark.parametrize(
    ("signature", "argument", "fits"),
    [
        (int, int, True),
        (numbers.Number, float, True),
        (int, torch.dtype, True),
        (int | float, float, True),
        (list[int] | None, list[int], True),
        (list[int], int, True),
        (list[int], create_type_hint((int, int)), True),
        (list[torch.Tensor], create_type_hint([torch.nn.Parameter, torch.Tensor]), True),
        (torch.Tensor, torch.nn.Parameter, True),
        (int, float, False),
        (int | float, str, False),
        (list[torch.Tensor], list[int], False),
        (torch.nn.Parameter, torch.Tensor, False),
    ],
)
def test_types_of_arguments_fit_those_of_signatures(signature, argument, fits):
    assert type_matches(signature, argument) is fits


def test_a_hint_is_of_the_type_that_fits_all():
    assert create_type_hint([1, 2]) == list[int] and create_type_hint((int, int)) == tuple[int, ...]
    assert create_type_hint([torch.nn.Parameter, torch.Tensor]) == list[torch.Tensor]
    assert create_type_hint([int, "a"]) == list[typing.Any] and create_type_hint(5) == 5
