"""Every public name says what it does; those of `torch`, `Tensor`, `nn` and `optim` show it by an example that holds."""

from __future__ import annotations

import enum
import importlib
import importlib.util
import inspect
import types
from pathlib import Path

import pytest

import pullback as torch
from tests.ops.test_texts import printed

SHOWN = ("", "nn", "nn.functional", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "linalg", "fft", "special", "signal.windows")  # fmt: skip
SAID = (
    "autograd", "func", "sparse", "nested", "distributions", "utils.data", "utils.checkpoint", "amp", "profiler", "library", "export",
    "distributed", "cuda", "random", "testing",
)  # fmt: skip
NOT_SHOWN = {  # what is in a module for its own use, or would need a world around it
    "nn.functional": {"handle_torch_function", "has_torch_function"},
    "nn.init": {"any_overridden", "call_overridden", "public"},
    "optim": {"swap_in_optimizer_params_and_state"},
}


def public(module: types.ModuleType):
    """The names that users call, with what they are."""
    for name in sorted(set(getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")])):
        value = getattr(module, name, None)
        if callable(value) and getattr(value, "__module__", "") not in ("typing", "collections.abc"):
            yield name, value


def members():
    """The public methods and properties of `Tensor`: what every tensor has."""
    usual = set(dir(torch.ones(1)))
    for name in sorted(n for n in usual if not n.startswith("_")):
        value = inspect.getattr_static(torch.Tensor, name)
        value = getattr(value, "__func__", value)
        if callable(value) or inspect.isdatadescriptor(value):
            yield name, value


def module_of(name: str) -> types.ModuleType:
    return importlib.import_module(f"pullback.{name}" if name else "pullback")


def lacks(value: object) -> str:
    """What is wrong with a docstring. A list of names needs no example."""
    if isinstance(value, enum.EnumMeta):
        return ""
    says, _, example = (inspect.getdoc(value) or "").partition(">>> ")
    if not says.strip() or not example:
        return "no example" if says.strip() else "no docstring"
    example = f">>> {example}".partition("\n\n")[0]
    try:
        now = printed(example)
    except Exception as error:  # noqa: BLE001 - whatever it is, the example does not hold
        return f"raises {error!r}"
    return "" if now == example else f"prints {now!r}"


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.filterwarnings("ignore")
def test_examples_hold(name: str) -> None:
    left_out = NOT_SHOWN.get(name, set())
    found = {n: why for n, value in public(module_of(name)) if n not in left_out and (why := lacks(value))}
    assert not found


@pytest.mark.filterwarnings("ignore")
def test_examples_of_members_of_tensors_hold() -> None:
    assert not {n: why for n, value in members() if (why := lacks(value))}


@pytest.mark.parametrize("name", (*SHOWN, *SAID))
def test_every_public_name_says_what_it_does(name: str) -> None:
    assert not [n for n, value in public(module_of(name)) if not (inspect.getdoc(value) or "").strip()]


def test_no_page_of_the_reference_is_empty() -> None:
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("reference", Path(__file__).parents[2] / "docs" / "reference.py")
    assert spec is not None and spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    assert set(reference.MODULES) == {*SHOWN, *SAID}
    for name in reference.MODULES:
        page = reference.module_page(name)
        headings = page.split("\n## ")[1:]
        assert headings and all(part.rpartition("```")[2].strip() or ">>> " in part for part in headings), name
