"""The page on joint graphs says what the code on it prints. Run as a script, this writes the outputs into the page."""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import sys
from pathlib import Path

import pullback as torch

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "joint.md"
BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
FILE = "example.py"  # what the blocks are called in the comments of graphs


def outputs(page: str) -> list[str]:
    """What each block of code prints, run one after the other as one file."""
    blocks = [match.group(1) for match in BLOCK.finditer(page)]
    source = "".join(blocks)
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    names: dict = {"__name__": "example"}
    found, line = [], 0
    torch.manual_seed(0)
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + block, FILE, "exec"), names)
        lines = [text.rstrip() for text in printed.getvalue().strip("\n").rstrip().splitlines()]
        found.append("".join(f"{text}\n" for text in lines))
        line += block.count("\n")
    return found


def test_page_shows_what_its_code_prints(tmp_path, monkeypatch):
    page = PAGE.read_text(encoding="utf-8")
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    shown = [match.group(2) for match in BLOCK.finditer(page)]
    assert len(shown) == page.count("```python") == page.count("```text") >= 5
    for expected, printed in zip(shown, outputs(page), strict=True):
        assert printed == expected
    drawn = (tmp_path / "docs" / "partition.svg").read_text(encoding="utf-8")
    assert drawn == (ROOT / "docs" / "partition.svg").read_text(encoding="utf-8")


def main() -> int:
    """Write the outputs, and the picture, anew."""
    os.chdir(ROOT)
    page = PAGE.read_text(encoding="utf-8")
    printed = iter(outputs(page))
    PAGE.write_text(
        BLOCK.sub(lambda m: f"```python\n{m.group(1)}```\n\n```text\n{next(printed)}```", page), encoding="utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
