"""Few files know an operator by its name: what stages must know of it is in its declaration."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "pullback"
SPACE = r"^(torch\.|nn\.functional\.|aten\.|aten::|Tensor\.)?"
NAMES = {
    "softmax": r"_?(log_|safe_)?softmax(_backward|_backward_data)?",
    "conv2d": r"(conv2d|_?convolution|convolution_backward)",
    "cumsum": r"(cum|cumsum)",
}
KNOWN = {
    "softmax": {
        "codegen/cuda/calls.py", "core/cuda_rows.py", "masked/filling.py", "masked/maskedtensor/rules.py", "ops/eager/rows.py", "joint/rows.py", "ops/layout/nested/reductions.py", "ops/network/multihead.py",
        "ops/reduce/softmaxes.py",
    },
    "conv2d": {
        "capture/front/layouts.py", "nn/functional.py", "nn/init.py", "ops/window/conv.py", "ops/window/shortcuts.py", "surface/jit/graphs.py",
    },
    "cumsum": {"capture/bytecode/arrays/reductions.py", "masked/filling.py", "ops/layout/nested/reductions.py", "ops/reduce/scans.py"},
}  # fmt: skip


def strings(tree: ast.AST) -> set[str]:
    """The strings of a file that are no docstrings and no sentences; of a schema, the name."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    first = [n.body[0] for n in ast.walk(tree) if isinstance(n, documented) and n.body]
    docstrings = {id(statement.value) for statement in first if isinstance(statement, ast.Expr)}
    found = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in docstrings]
    heads = {value.partition("(")[0].strip() for value in found if isinstance(value, str)}
    return {head for head in heads if " " not in head}


@pytest.fixture(scope="module")
def files() -> dict[str, set[str]]:
    """The strings of every file that has a name at all."""
    wanted = re.compile("softmax|conv|cum")
    texts = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    return {path: strings(ast.parse(text)) for path, text in texts.items() if wanted.search(text)}


@pytest.mark.parametrize("name", NAMES)
def test_who_knows_an_operator_by_name(name, files):
    form = re.compile(f"{SPACE}{NAMES[name]}(\\.|$)")
    assert {path for path, found in files.items() if any(map(form.search, found))} == KNOWN[name]
