"""Docstrings of public operators. Run as a script, this writes what the examples print into `pullback/ops/texts`."""

from __future__ import annotations

import contextlib
import doctest
import io
import sys
import types
from pathlib import Path

import pytest

import pullback as torch
from pullback.ops import texts
from pullback.ops.system.operator import exports

FILES = sorted(Path(texts.__file__).parent.glob("*.txt"))
HOMES = ("torch", "Tensor", "nn.functional", "linalg", "fft", "special", "signal.windows")


def printed(example: str) -> str:
    """An example with what its statements print now."""
    names: dict = {"torch": torch, "__name__": "example"}
    torch.manual_seed(0)
    result = []
    for statement in doctest.DocTestParser().get_examples(example):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(statement.source, "<example>", "single"), names)
        result += [f">>> {statement.source.rstrip()}".replace("\n", "\n... ")]
        result += [line or "<BLANKLINE>" for line in out.getvalue().splitlines()]
    return "\n".join(result)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.filterwarnings("ignore")
def test_examples_show_what_they_print(file: Path) -> None:
    parts = file.read_text(encoding="utf-8")[3:].split("\n## ")
    examples = {part.partition("\n")[0]: part[part.index(">>> ") :].rstrip() for part in parts}
    assert {name: printed(example) for name, example in examples.items()} == examples


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.filterwarnings("ignore")
def test_public_functions_have_examples_that_hold(home: str) -> None:
    wrong = {name: why for name, function in exports[home].items() if name[0] != "_" and (why := lacks(function, name))}
    assert not wrong


def lacks(function: object, name: str) -> str:
    """What is wrong with a docstring; nothing for what is no function."""
    if not isinstance(function, types.FunctionType):
        return ""
    says, _, example = (function.__doc__ or "").partition(">>> ")
    example = example.partition("\n\n`")[0]  # behind it stand the schemas
    if not says.strip() or not example:
        return "no docstring" if not says.strip() else "no example"
    if f".{name}(" not in example and f".{function.__name__}(" not in example:
        return f"not called in its example: {example}"
    try:
        now = printed(f">>> {example}")
    except Exception as error:  # noqa: BLE001 - whatever it is, the example does not hold
        return f"raises {error!r}"
    return "" if now == f">>> {example}" else f"prints {now!r}, not {example!r}"


def test_entries_are_of_public_names() -> None:
    for name in texts.entries():
        home, _, short = name.rpartition(".")
        assert short in exports[home] or home == "Tensor" and hasattr(torch.Tensor, short), f"{name} is no public name"


def main() -> int:
    for file in FILES:
        parts = file.read_text(encoding="utf-8")[3:].split("\n## ")
        parts = [part[: part.index(">>> ")] + printed(part[part.index(">>> ") :]) + "\n" for part in parts]
        file.write_text("## " + "\n## ".join(parts), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
