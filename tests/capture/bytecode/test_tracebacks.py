"""An error in a compiled function shows the user's lines, and nothing of the compiler."""

import os
import subprocess
import sys
import traceback

import pytest

import pullback as torch


def inner(a, b):
    c = a.sin()
    return c @ b


def shapes(x):
    z = x * 2
    return inner(z, z)


def raises(x):
    x = x + 1
    raise ValueError("mine")


def after_a_break(x):
    y = x + 1
    print("between")
    return inner(y, y)


def looks_up(x):
    return {"a": x}["b"]


def out_of_range(x):
    return x[torch.tensor([5])]


class Layer(torch.nn.Module):
    def forward(self, x):
        return shapes(x)


def lines_of(error: BaseException) -> list[tuple[str, str]]:
    """(function, line) of the entries of a traceback that are of this file, but for the outermost."""
    entries = traceback.extract_tb(error.__traceback__)
    return [(entry.name, entry.line) for entry in entries if entry.filename == __file__][1:]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("f", [shapes, raises, after_a_break, looks_up, out_of_range, Layer()])
def test_the_lines_are_those_of_the_program(f, backend):
    with pytest.raises(Exception) as plain:  # noqa: PT011
        f(torch.ones(2, 3))
    run = torch.compile(f, backend=backend)
    for _ in range(2):
        with pytest.raises(plain.type) as compiled:
            run(torch.ones(2, 3))
        assert lines_of(compiled.value) == lines_of(plain.value)
        assert {entry.filename for entry in traceback.extract_tb(compiled.value.__traceback__)} == {__file__}


def test_an_exception_that_is_given_knows_where_it_was_raised():
    def f(x):
        try:
            raises(x)
        except ValueError as error:
            return x + 1, error

    error = torch.compile(f, fullgraph=True, backend="eager")(torch.ones(2))[1]
    assert [(n, s) for n, s in lines_of(error)] == [("raises", 'raise ValueError("mine")')]


PROGRAM = """
import pullback as torch

def f(x):
    return x @ x

torch.compile(f)(torch.ones(2, 3))
"""


@pytest.mark.parametrize("verbose", ["0", "1"])
def test_the_rest_is_shown_where_it_is_asked_for(verbose, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(path)], env={**os.environ, "TORCHDYNAMO_VERBOSE": verbose},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    files = [line for line in done.stderr.splitlines() if line.startswith("  File")]
    assert ("machine.py" in done.stderr) == (verbose == "1") and any("line 5, in f" in line for line in files)
    if verbose == "0":
        assert len(files) == 2
