"""What is built is kept by content, appears whole or not at all, and is built again where it was damaged."""

from __future__ import annotations

import errno
import os
import threading
import warnings

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


def test_folders_are_private(tmp_path):
    entry = cache.cached("key", maker([]))
    assert cache.folder().stat().st_mode & 0o777 == entry.parent.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_write_to_is_refused_in_words(tmp_path):
    base = tmp_path / "cache"
    base.mkdir()
    base.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=r"cache folder .*mode 0777: others could put code there.*chmod 700"):
        entry = cache.cached("key", maker([]))
    assert base not in entry.parents and entry.read_text() == "library"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.cached("key", maker([])) == entry


def test_an_inner_folder_that_others_can_write_to_is_not_used():
    entry = cache.cached("inner", maker([], "first"))
    entry.parent.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="others could put code there"):
        other = cache.cached("inner", maker([], "second"))
    assert other != entry and other.read_text() == "second"


def test_a_full_disk_is_a_warning():
    result: list = []

    def full(folder, target):
        if cache.folder() in folder.parents:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        maker(result)(folder, target)

    with pytest.warns(RuntimeWarning, match="nothing can be kept.*No space left"):
        entry = cache.cached("full", full)
    assert entry.read_text() == "library" and cache.folder() not in entry.parents


def test_what_was_not_used_for_longest_goes_first():
    entries = [cache.cached(str(n), maker([], "x" * 100)) for n in range(5)]
    for age, entry in enumerate(entries):
        os.utime(entry.with_suffix(".sum"), (1000 + age, 1000 + age))
    cache.cached("0", maker([]))  # the oldest is used again
    cache.bound(cache.folder(), 250, entries[1])
    assert [e.exists() for e in entries] == [True, True, False, False, False]
