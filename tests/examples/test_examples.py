"""The scripts under examples/ run through the command, say what they should, and are all listed in the docs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# The script, its arguments for a short run, and words of its last output.
RUNS = {
    "image_classifier.py": (["--epochs", "1", "--count", "200"], "final accuracy"),
    "char_rnn.py": (["--epochs", "2"], "epoch 1 loss"),
    "vae.py": (["--epochs", "1"], "epoch 0 loss"),
    "dqn.py": (["--episodes", "30"], "policy from each place"),
    "gpt.py": (["--steps", "4"], "sorted"),
}


def run(name, *words):
    return subprocess.run(
        [sys.executable, "-m", "pullback", "run", str(ROOT / "examples" / name), *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        # One thread: the matrices are small, and other tests are running.
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )


@pytest.mark.parametrize("name", RUNS)
def test_an_example_runs(name, tmp_path):
    words, expected = RUNS[name]
    if name == "image_classifier.py":
        words = [*words, "--checkpoint", str(tmp_path / "shapes.pt")]
    done = run(name, *words)
    assert done.returncode == 0 and expected in done.stdout, done.stderr
    assert "nan" not in done.stdout and not done.stderr


def test_q_learning_finds_the_way():
    assert "[1, 1, 1, 1]" in run("dqn.py").stdout


def test_every_example_is_tested_and_documented():
    names = {path.name for path in (ROOT / "examples").glob("*.py")}
    listed = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")
    assert names == set(RUNS) and all(f"../examples/{name}" in listed for name in names)
