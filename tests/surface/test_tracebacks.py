"""Uncaught errors: what is printed is the program's; what is caught keeps every frame."""

import subprocess
import sys

import pullback as torch
from pullback.core.machinery import is_machinery
from pullback.surface.tracebacks import fold, folded

PROGRAM = """
import {sets}
import pullback as torch
def join(a, b):
    return torch.cat([a, b])
join(torch.ones(2, 3), torch.ones(2, 4))
"""


def run(tmp_path, monkeypatch, sets="os", **environment):
    script = tmp_path / "script.py"
    script.write_text(PROGRAM.format(sets=sets))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)


def test_a_script_shows_its_own_lines(tmp_path, monkeypatch):
    done = run(tmp_path, monkeypatch)
    assert done.returncode == 1
    shown = done.stderr.splitlines()
    assert "inside pullback left out: PULLBACK_TRACEBACK=full shows them" in shown[0]
    assert [line for line in shown if "File" in line and "script.py" not in line] == []
    assert shown[-1].startswith("RuntimeError: Sizes of tensors must match")


def test_every_frame_on_demand(tmp_path, monkeypatch):
    done = run(tmp_path, monkeypatch, PULLBACK_TRACEBACK="full")
    assert "left out" not in done.stderr
    assert "dispatch.py" in done.stderr


def test_a_hook_of_the_program_stays(tmp_path, monkeypatch):
    done = run(tmp_path, monkeypatch, sets="sys; sys.excepthook = lambda *e: print('mine')")
    assert done.stdout == "mine\n"
    assert done.stderr == ""


def test_caught_errors_keep_their_frames_and_causes_are_folded_too():
    try:
        try:
            torch.ones(2) + torch.ones(3)
        except RuntimeError as error:
            raise ValueError("other") from error
    except ValueError as error:
        names = []
        at = error.__cause__.__traceback__
        while at is not None:
            names.append(at.tb_frame.f_code.co_filename)
            at = at.tb_next
        assert any(map(is_machinery, names))
        assert "left out" in fold(error)
        assert error.__cause__.__traceback__.tb_next is None


def test_a_traceback_of_machinery_alone_stays_whole():
    try:
        torch.ones(2) + torch.ones(3)
    except RuntimeError as error:
        inner = error.__traceback__.tb_next
        assert folded(inner) == (inner, 0)
