"""Pages of the documentation say what the code on them prints. Run as a script, this writes the outputs into the pages."""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import sys
from pathlib import Path

import pytest

import pullback as torch

ROOT = Path(__file__).resolve().parents[2]
LEARN = ("tensors", "gradients", "training", "compiling", "engine", "compiler")
USE = ("moving", "debugging", "custom_operators", "gpu")
PAGES = (
    "joint.md",
    "compile.md",
    "export.md",
    "codegen.md",
    *(f"{name}.md" for name in USE),
    *(f"learn/{name}.md" for name in LEARN),
)
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


@pytest.mark.parametrize("name", PAGES)
def test_pages_show_what_their_code_prints(name: str, tmp_path, monkeypatch) -> None:
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    shown = [match.group(2) for match in BLOCK.finditer(page)]
    assert len(shown) == page.count("```python") == page.count("```text") > 0
    for expected, printed in zip(shown, outputs(page), strict=True):
        assert printed == expected
    for drawn in (tmp_path / "docs").iterdir():
        assert drawn.read_text(encoding="utf-8") == (ROOT / "docs" / drawn.name).read_text(encoding="utf-8")


def test_the_readme_runs(capsys) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == "tensor([-0.9093, -0.8415,  0.0000,  0.8415,  0.9093])\n"
    assert len(page.splitlines()) < 60  # one screen


def test_every_page_with_code_is_run() -> None:
    elsewhere = {
        "architecture.md",
        "errors.md",
        "distributed.md",
    }  # test_declarations, test_errors; what needs several ranks
    with_code = {
        str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md") if "```python" in p.read_text("utf-8")
    }
    assert with_code - elsewhere == set(PAGES)


def test_the_picture_is_drawn(tmp_path, monkeypatch) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    outputs((ROOT / "docs" / "joint.md").read_text(encoding="utf-8"))
    assert (tmp_path / "docs" / "partition.svg").exists()


def main() -> int:
    """Write the outputs, and the pictures, anew."""
    os.chdir(ROOT)
    for name in PAGES:
        file = ROOT / "docs" / name
        page = file.read_text(encoding="utf-8")
        printed = iter(outputs(page))
        file.write_text(
            BLOCK.sub(lambda m, printed=printed: f"```python\n{m.group(1)}```\n\n```text\n{next(printed)}```", page),
            encoding="utf-8",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
