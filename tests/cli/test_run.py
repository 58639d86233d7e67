"""A script run by the command sees `torch`, its arguments and its own folder, and leaves the caller's alone."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import torch
import neighbour

x = torch.tensor([3.0], requires_grad=True)
(x * x).backward()
print(__name__, sys.argv[1:], neighbour.word, x.grad.item(), torch.__name__)
"""


def pullback(*words, cwd=None):
    # Relative entries of the path (the checkout itself) must still be found from another folder.
    path = os.pathsep.join(map(os.path.abspath, filter(None, ["", os.getcwd(), os.environ.get("PYTHONPATH")])))
    return subprocess.run(
        [sys.executable, "-m", "pullback", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path},
    )


@pytest.fixture
def script(tmp_path):
    (tmp_path / "neighbour.py").write_text("word = 'beside'\n")
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path / "train.py"


def test_a_script_runs_as_main_with_torch(script):
    done = pullback("run", str(script), "--lr", "3")
    assert done.stdout.startswith("__main__ ['--lr', '3'] beside 6.0"), done.stderr


def test_a_module_runs_too(script):
    done = pullback("run", "-m", "train", "-v", cwd=script.parent)
    assert done.stdout.startswith("__main__ ['-v'] beside 6.0"), done.stderr


def test_exit_status_is_the_scripts(script):
    script.write_text("raise SystemExit(7)")
    assert pullback("run", str(script)).returncode == 7


def test_a_missing_script_is_named():
    done = pullback("run", "nowhere.py")
    assert done.returncode == 2 and "nowhere.py" in done.stderr


def test_tracebacks_begin_at_the_program(tmp_path):
    (tmp_path / "inner.py").write_text("def fail():\n    raise ValueError('from inside')\n")
    (tmp_path / "outer.py").write_text(
        "import inner\ntry:\n    inner.fail()\nexcept ValueError as e:\n    raise KeyError(1) from e\n"
    )
    said = pullback("run", str(tmp_path / "outer.py")).stderr
    assert "runpy" not in said and "cli" not in said
    assert [line.split('"')[1] for line in said.splitlines() if line.startswith("  File")] == [
        str(tmp_path / "outer.py"),
        str(tmp_path / "inner.py"),
        str(tmp_path / "outer.py"),
    ]


def test_errors_of_the_command_itself_keep_their_frames():
    assert "cli" in pullback("run", "-m", "no_such_module_at_all").stderr
