"""The glossary leads to files that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(
    r"^\| ([^|`]+) \| ([^|]+) \| `([^`]+)` \|$", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE
)


def test_words_are_in_order_and_said_once():
    words = [word for word, _, _ in ROWS if word != "word"]
    assert len(words) > 40 and words == sorted(set(words), key=str.lower)


@pytest.mark.parametrize("word, meaning, file", ROWS)
def test_a_word_lives_where_it_says(word, meaning, file):
    assert (ROOT / "pullback" / file).exists() or (ROOT / file).exists()


def test_files_that_the_architecture_names_are_there():
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`([\w./]+/[\w.]+\.(?:py|c|h))`", page))
    assert named and not [n for n in sorted(named) if not any((ROOT / base / n).exists() for base in ("pullback", "."))]
