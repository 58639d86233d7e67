"""Errors of the capture itself: never the program's to handle."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import pullback as torch
from pullback.capture.bytecode.handlers import HANDLERS
from pullback.capture.bytecode.segment import TracingMachine


def unknown_name() -> None:
    nowhere  # type: ignore[name-defined]  # noqa: B018, F821


def of_an_object(machine: object) -> None:
    machine.nothing  # type: ignore[attr-defined]  # noqa: B018


def at_home(function: Callable) -> Callable:
    """The function, as if it stood in a file of the capture."""
    home = HANDLERS["UNARY"].__code__.co_filename
    function.__code__ = function.__code__.replace(co_filename=home)  # type: ignore[attr-defined]
    return function


def guarded(x: torch.Tensor) -> tuple[torch.Tensor, str]:
    said = "whole"
    try:
        y = x * 2
        y = -y
    except (NameError, AttributeError):
        said = "handled"
        y = x
    return y + 1, said


@pytest.mark.parametrize(
    "fails", [lambda m: at_home(unknown_name)(), lambda m: at_home(of_an_object)(m)], ids=["name", "attribute"]
)
def test_a_defect_ends_the_graph_and_no_handler_of_the_program_sees_it(
    fails: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(machine, frame, arg):
        fails(machine)

    monkeypatch.setattr(TracingMachine, "handlers", {**TracingMachine.handlers, "UNARY": broken})
    x = torch.ones(3)
    with pytest.warns(RuntimeWarning, match="the capture itself fails: (NameError|AttributeError)"):
        y, said = torch.compile(guarded, backend="eager")(x)
    assert said == "whole" and torch.equal(y, guarded(x)[0])


@pytest.mark.parametrize("read", ["nowhere", "torch.nothing", "[].nothing", "x.nothing"])
def test_errors_of_the_program_stay_its_own(read: str, recwarn: pytest.WarningsRecorder) -> None:
    names = {"torch": torch}
    exec(f"def f(x):\n try:\n  {read}\n except (NameError, AttributeError) as e:\n  return x + 1, str(e)\n", names)
    x = torch.ones(2)
    y, words = torch.compile(names["f"], backend="eager", fullgraph=True)(x)  # type: ignore[operator]
    assert torch.equal(y, x + 1) and words == names["f"](x)[1]  # type: ignore[operator]
    assert not [w for w in recwarn if "the capture itself" in str(w.message)]
