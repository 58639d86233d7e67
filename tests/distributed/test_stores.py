"""Stores: the same behaviour whatever is behind them."""

import datetime
import threading

import pytest

import pullback.distributed as dist


@pytest.fixture(params=["hash", "file", "tcp", "prefix"])
def store(request, tmp_path):
    if request.param == "hash":
        return dist.HashStore()
    if request.param == "file":
        return dist.FileStore(str(tmp_path / "store"), 1)
    if request.param == "tcp":
        return dist.TCPStore("127.0.0.1", 0, is_master=True)
    return dist.PrefixStore("mine", dist.HashStore())


def test_values(store):
    store.set("a", "1")
    assert store.get("a") == b"1" and store.check(["a"]) and not store.check(["a", "b"])
    assert store.add("n", 2) == 2 and store.add("n", 3) == 5 and store.get("n") == b"5"
    store.append("a", b"2")
    assert store.get("a") == b"12"
    assert store.num_keys() == 2 and store.delete_key("a") and not store.delete_key("a")


def test_compare_set(store):
    assert store.compare_set("k", "", "first") == b"first"
    assert store.compare_set("k", "other", "second") == b"first"
    assert store.compare_set("k", "first", "second") == b"second"


def test_get_waits(store):
    threading.Timer(0.05, lambda: store.set("late", b"\x00\xff")).start() if not isinstance(store, dist.TCPStore) else (
        threading.Timer(0.05, lambda: dist.TCPStore("127.0.0.1", store.port).set("late", b"\x00\xff")).start()
    )
    assert store.get("late") == b"\x00\xff"


def test_wait_says_what_is_missing(store):
    with pytest.raises(dist.DistStoreError, match="wait timeout after 20ms, keys: .*nobody"):
        store.wait(["nobody"], datetime.timedelta(milliseconds=20))


def test_prefixes_share_a_store():
    below = dist.HashStore()
    a, b = dist.PrefixStore("a", below), dist.PrefixStore("b", below)
    a.set("k", "1")
    b.set("k", "2")
    assert (a.get("k"), b.get("k"), below.get("a/k")) == (b"1", b"2", b"1")


def test_a_file_is_shared(tmp_path):
    one, other = (dist.FileStore(str(tmp_path / "s"), 2) for _ in range(2))
    one.set("k", "1")
    assert other.get("k") == b"1" and other.add("n", 1) == 1 and one.add("n", 1) == 2


def test_a_store_that_nobody_keeps():
    with pytest.raises(dist.DistNetworkError, match="failed to connect to a store at 127.0.0.1:1 "):
        dist.TCPStore("127.0.0.1", 1, timeout=0.1)
