"""The account of a script: what was captured of each of its functions."""

import ast

import pytest

from pullback.cli.compiled_script import compiled_code, compiles_itself, yields
from tests.cli.test_run import pullback

SCRIPT = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x).relu()

    @staticmethod
    def untouched(x):
        return x

def noisy(net, x):
    y = net(x)
    print("seen", tuple(y.shape))
    return y.sum()

def numbers():
    yield 1

print(type(noisy(Net(), torch.ones(3, 2))).__name__, list(numbers()))
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_functions_are_listed_with_what_ended_their_graphs(script):
    done = pullback("explain", str(script))
    assert done.returncode == 0, done.stderr
    assert "seen (3, 1)" in done.stdout and "Tensor [1]" in done.stdout
    assert "it prints" in done.stdout and "noisy" in done.stdout
    assert "What to try" in done.stdout and "Print after" in done.stdout


def test_operators_without_loops_are_listed_with_the_reason(tmp_path):
    path = tmp_path / "invert.py"
    path.write_text("import torch\n\ndef f(x):\n    return torch.linalg.inv(x)\n\nf(torch.eye(3))\n")
    done = pullback("explain", str(path))
    assert done.returncode == 0, done.stderr
    assert "linalg_inv_ex" in done.stdout and "no rule" in done.stdout and "no loops" in done.stdout


def test_the_same_script_under_capture_prints_the_same(script):
    plain, compiled = pullback("run", str(script)), pullback("run", "--compile", str(script))
    assert plain.returncode == compiled.returncode == 0, compiled.stderr
    assert plain.stdout == compiled.stdout


def test_a_missing_script_is_named():
    done = pullback("explain", "nowhere.py")
    assert done.returncode == 2 and "can't open file 'nowhere.py'" in done.stderr


def test_what_is_decorated():
    text = SCRIPT.replace("import torch", "").replace("torch.nn.Module", "object").rpartition("print(type")[0]
    seen = []
    exec(
        compiled_code(text, "train.py"),
        {"__pullback_compile__": lambda f: seen.append(f.__qualname__) or f, "__name__": "x"},
    )
    assert seen == ["Net.forward", "noisy"]


def test_generators_are_told_apart():
    def function(text):
        return ast.parse(text).body[0]

    assert yields(function("def f():\n    yield 1"))
    assert not yields(function("def f():\n    def g():\n        yield 1\n    return g"))


def test_of_a_script_that_compiles_itself_the_account_is_of_what_it_compiles(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(
        SCRIPT.rpartition("print(")[0]
        + "def main():\n    net = torch.compile(Net(), backend='eager')\n    noisy(net, torch.ones(3, 2))\n"
        "    print(len(list(net.parameters())))\n\nmain()\n"
    )
    done = pullback("explain", str(path))
    assert done.returncode == 0, done.stderr
    assert "seen (3, 1)" in done.stdout and "Net" in done.stdout and "of those" in done.stdout
    assert "it prints" not in done.stdout and "noisy" not in done.stdout


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\n@torch.compile\ndef f(x): pass", True),
        ("from torch import compile", True),
        ("model.compile()", True),
        ("import re\nre.compile('a')", False),
        ("compile('1', 'f', 'eval')", False),
    ],
)
def test_scripts_that_compile_themselves(source, expected):
    assert compiles_itself(source, "f.py") is expected
