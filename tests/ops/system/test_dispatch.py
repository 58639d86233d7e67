"""From a public call to its kernel: arguments by position and name, modes and subclasses on the way."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.ops.system.overrides import TorchDispatchMode, TorchFunctionMode


def test_arguments_by_position_and_by_name() -> None:
    x = torch.ones(2, 3)
    assert (
        torch.sum(x, 1).tolist()
        == torch.sum(input=x, dim=1).tolist()
        == torch.sum(x, axis=1).tolist()
        == x.sum(dim=(1,)).tolist()
    )
    assert x.view(3, 2).shape == x.view((3, 2)).shape == (3, 2)
    with pytest.raises(TypeError):
        torch.sum(x, nothing=1)


def test_decompose_runs_what_an_operator_is_written_in() -> None:
    x, w = torch.ones(2, 3), torch.ones(4, 3)
    aten = torch.ops.aten
    assert torch.equal(aten.linear.default.decompose(x, w), torch.full((2, 4), 3.0))
    assert aten.flatten.using_ints.decompose(x, start_dim=0).shape == (6,)
    assert aten.mm.default.decompose(x, w.t()) is NotImplemented


def test_function_mode_sees_calls_and_dispatch_mode_operators() -> None:
    functions, operators = [], []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            functions.append(func.__name__)
            return func(*args, **(kwargs or {}))

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            operators.append(str(func))
            return func(*args, **(kwargs or {}))

    with Functions(), Operators():
        torch.add(torch.ones(2), 1)
    assert "add" in functions and "aten.add.Tensor" in operators


def test_a_subclass_intercepts_functions() -> None:
    class Logged(torch.Tensor):
        calls: list = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    t = torch.ones(2).as_subclass(Logged)
    assert type(t * 2) is Logged and type(torch.sin(t)) is Logged and "sin" in Logged.calls
