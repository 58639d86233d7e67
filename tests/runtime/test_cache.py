"""What is built is kept by content, appears whole or not at all, and is built again where it was damaged."""

from __future__ import annotations

import threading

import pytest

from pullback.runtime import cache


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path / "cache"))


def maker(result: list, text: str = "library"):
    def make(folder, target):
        result.append(target)
        target.write_text(text)

    return make


def test_the_same_key_is_made_once():
    result: list = []
    first = cache.cached("key", maker(result))
    assert first.read_text() == "library" and cache.cached("key", maker(result)) == first and len(result) == 1
    assert cache.cached("other", maker(result)) != first and len(result) == 2


def test_a_damaged_entry_is_made_again():
    result: list = []
    entry = cache.cached("key", maker(result))
    entry.write_text("dam")
    assert cache.cached("key", maker(result)).read_text() == "library" and len(result) == 2
    entry.with_suffix(".sum").unlink()
    cache.cached("key", maker(result))
    assert len(result) == 3


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
    result: list = []
    workers = [threading.Thread(target=lambda: results.append(cache.cached("key", maker(result)))) for _ in range(8)]
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
