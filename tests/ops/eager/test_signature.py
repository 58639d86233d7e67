"""What `inspect.signature` and `help` say of public functions: the same before and after the first call."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys

import pytest

import pullback as torch
from pullback.ops.system.operator import exports

F = torch.nn.functional


def parameters(function) -> list[str]:
    return list(inspect.signature(function).parameters)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (torch.mul, ["input", "other", "out"]),
        (torch.Tensor.add_, ["input", "other", "alpha"]),
        (torch.add, ["input", "other", "alpha", "out"]),
        (torch.sum, ["input", "dim", "keepdim", "dtype", "out"]),
        (torch.max, ["input", "args", "kwargs"]),
        (torch.softmax, ["input", "dim", "dtype", "out"]),
        (F.softmax, ["input", "dim", "_stacklevel", "dtype"]),
        (F.linear, ["input", "weight", "bias"]),
        (torch.cumsum, ["input", "dim", "dtype", "out"]),
        (torch.cat, ["tensors", "dim", "out", "axis"]),
        (torch.Tensor.__add__, ["self", "other"]),
    ],
)
def test_parameters(function, names: list[str]) -> None:
    assert parameters(function) == names


def test_defaults_and_kinds() -> None:
    shown = inspect.signature(torch.add)
    assert shown.parameters["alpha"].default == 1
    assert shown.parameters["alpha"].kind is inspect.Parameter.KEYWORD_ONLY
    assert shown.parameters["input"].default is inspect.Parameter.empty
    assert shown.return_annotation == "Tensor"
    assert shown.bind(torch.ones(2), 3).arguments["other"] == 3
    with pytest.raises(TypeError, match="missing a required argument: 'other'"):
        shown.bind(torch.ones(2))


def test_a_bound_method_is_without_its_first_parameter() -> None:
    assert parameters(torch.ones(2).mul) == ["other", "out"]


def test_before_and_after_the_first_call() -> None:
    """In a process of its own, where nothing has been called."""
    text = (
        "import inspect, pydoc, pullback as torch\n"
        "def said(): return [(str(inspect.signature(f)), pydoc.render_doc(f)) for f in (torch.mul, torch.sum, torch.softmax)]\n"
        "before = said()\n"
        "torch.mul(torch.ones(2), 2), torch.sum(torch.ones(2)), torch.softmax(torch.ones(2), 0)\n"
        "assert before == said()\n"
        "print(pydoc.plain(before[0][1]))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "mul(input: 'Tensor', other: 'Tensor | Number', *, out: 'Tensor | None' = None) -> 'Tensor'" in done.stdout
    assert "mul.Tensor(Tensor self, Tensor other) -> Tensor" in done.stdout


def test_every_public_function_has_a_signature_and_help() -> None:
    for space, table in exports.items():
        for name, function in table.items():
            if hasattr(function, "__signature__"):  # generated from schemas
                assert " object at 0x" not in str(inspect.signature(function)), f"{space}.{name}"
    assert "mul" in pydoc.render_doc(torch.mul)
