"""Errors of programs that are captured as one graph: those of the program, and `Unsupported`."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.trace.program import UncapturedHigherOrderOpError, Unsupported


class Odd(ValueError):
    def __init__(self, number: int, *, hint: str):
        super().__init__(number)
        self.hint = hint


def raises(error):
    def f(x):
        x = x + 1
        raise error

    return torch.compile(f, backend="eager", fullgraph=True)


@pytest.mark.parametrize(
    "error", [TypeError("no"), KeyError("k"), StopIteration(3), AttributeError("a", name="n", obj=1), OSError(2, "gone"),
              Odd(3, hint="less"), AssertionError(), RuntimeError("r")],
)  # fmt: skip
def test_an_error_is_of_both_kinds(error) -> None:
    with pytest.raises(type(error)) as found:
        raises(error)(torch.ones(2))
    assert isinstance(found.value, Unsupported)
    assert found.value.args == error.args and type(found.value).__name__ == type(error).__name__
    assert str(found.value).startswith(str(error)) and "Observed exception" in str(found.value)
    assert "raise error" in str(found.value)
    assert vars(error).items() <= vars(found.value).items()
    for name in ("name", "value"):
        assert getattr(found.value, name, None) == getattr(error, name, None)


def test_an_error_without_fullgraph_is_the_programs_own() -> None:
    def f(x):
        raise TypeError("no")

    with pytest.raises(TypeError) as found:
        torch.compile(f, backend="eager")(torch.ones(2))
    assert type(found.value) is TypeError


def test_errors_of_functions_that_operators_take() -> None:
    def f(x, y):
        return torch.cond(x.sum() > 0, lambda x, y: x + y, lambda x: x, (x, y))

    with pytest.raises(
        UncapturedHigherOrderOpError, match="takes 1 positional(.|\n)*Higher Order Operator: torch.cond"
    ) as found:
        torch.compile(f, backend="eager", fullgraph=True)(torch.ones(2), torch.ones(2))
    assert isinstance(found.value, TypeError)
    assert torch.compile(f, backend="eager")(torch.ones(2), torch.ones(2)).tolist() == [
        2,
        2,
    ]  # the branch that is taken is right
