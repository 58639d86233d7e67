"""The page of common mistakes shows what each of them prints. Run as a script, this writes what they print into the page."""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import sys
import warnings
from pathlib import Path

import pytest

import pullback as torch
from pullback import nn
from pullback.surface.tracebacks import print_uncaught

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "errors.md"
BLOCK = re.compile(r"### (.*?)\n\n(.*?)```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
POINTERS = re.compile(r"^ *[~^]+ *\n", re.MULTILINE)  # versions of Python put them in different places
FIRST = re.compile(r'^(  File ".*\n    .*\n)(?:    .*\n)+', re.MULTILINE)  # newer ones print all lines of a statement
FILE = "example.py"


def printed(code: str) -> str:
    """What a program prints that ends in an error nobody catches."""
    linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)
    names = {"torch": torch, "nn": nn, "F": nn.functional, "__name__": "example"}
    out = io.StringIO()
    with (
        contextlib.redirect_stderr(out),
        contextlib.redirect_stdout(out),
        warnings.catch_warnings(record=True) as warned,
    ):
        try:
            exec(compile(code, FILE, "exec"), names)
        except Exception as error:
            for w in warned:
                print(f"{w.category.__name__}: {w.message}")
            print_uncaught(type(error), error, error.__traceback__.tb_next)
    text = re.sub(
        r'(?:  File "(?!example|pullback).*\n(?:    .*\n)?)+', "", out.getvalue().replace(f"{ROOT}{os.sep}", "")
    )
    text = FIRST.sub(r"\1", POINTERS.sub("", text))
    text = re.sub(r"\. Did you mean: '\w+'\?$", "", text, flags=re.MULTILINE)  # Python 3.12 guesses, 3.11 does not
    text = re.sub(r'(File "pullback[^"]*"), line \d+', r"\1", text)
    text = re.sub(r"^\(\d+ frames? inside", "(frames inside", text, flags=re.MULTILINE)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


MISTAKES = {m.group(1): m for m in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))}


def test_the_gallery_is_whole():
    page = PAGE.read_text(encoding="utf-8")
    assert len(MISTAKES) == page.count("```python") >= 50


@pytest.mark.parametrize("title", MISTAKES)
def test_mistakes_print_what_the_page_shows(title: str):
    _, _, code, shown = MISTAKES[title].groups()
    assert printed(code) == shown
    assert f'File "{FILE}"' in shown and len(shown.splitlines()) < 24


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        BLOCK.sub(lambda m: m.group(0)[: m.start(4) - m.start(0)] + printed(m.group(3)) + "```", page), "utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
