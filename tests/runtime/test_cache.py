"""What is built is kept by content, appears whole or not at all, and is built again where it was damaged."""

from __future__ import annotations

import threading

import pytest

from pullback.runtime import cache


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path / "cache"))


def maker(made: list, text: str = "library"):
    def make(folder, target):
        made.append(target)
        target.write_text(text)

    return make


def test_the_same_key_is_made_once():
    made: list = []
    first = cache.cached("key", maker(made))
    assert first.read_text() == "library" and cache.cached("key", maker(made)) == first and len(made) == 1
    assert cache.cached("other", maker(made)) != first and len(made) == 2


def test_a_damaged_entry_is_made_again():
    made: list = []
    entry = cache.cached("key", maker(made))
    entry.write_text("dam")
    assert cache.cached("key", maker(made)).read_text() == "library" and len(made) == 2
    entry.with_suffix(".sum").unlink()
    cache.cached("key", maker(made))
    assert len(made) == 3


def test_a_failure_leaves_nothing():
    def fails(folder, target):
        target.write_text("half")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        cache.cached("key", fails)
    files = [p for p in cache.folder().rglob("*") if p.is_file()]
    assert files == []


def test_many_at_once():
    results: list = []
    made: list = []
    workers = [threading.Thread(target=lambda: results.append(cache.cached("key", maker(made)))) for _ in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert len(set(results)) == 1 and results[0].read_text() == "library"


def test_a_folder_that_cannot_be_written_is_replaced(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("PULLBACK_CACHE", str(blocked / "below"))
    assert cache.cached("key", maker([])).read_text() == "library"
