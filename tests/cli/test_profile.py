"""`pullback profile`: tables, a page and a trace of a run."""

import json

from tests.cli.test_run import pullback

SCRIPT = """
import sys, torch
w = torch.randn(64, 64, requires_grad=True)
rows = [w]
for _ in range(int(sys.argv[1])):
    (rows[0] @ w).relu().sum().backward()
print("done")
sys.exit(3)
"""


def test_a_run_is_profiled(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    page, trace = tmp_path / "flame.html", tmp_path / "trace.json"
    done = pullback("profile", "--html", str(page), "--trace", str(trace), str(script), "300")
    assert done.returncode == 3, done.stderr
    assert (
        "done" in done.stdout
        and "kind of work" in done.stdout
        and "train.py:6" in done.stdout
        and "rows[0]" in done.stdout
    )
    assert "relu" in trace.read_text() and json.loads(trace.read_text())
    assert page.read_text().startswith("<!doctype html>")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    done = pullback("profile", "--html", str(tmp_path / "no" / "x.html"), "train.py")
    assert done.returncode == 2 and "no such folder" in done.stderr


def test_the_version():
    assert pullback("--version").stdout.startswith("pullback ")
