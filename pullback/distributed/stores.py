"""Stores: small values under names that several processes share.

`HashStore` is a dict in one process, `FileStore` a file that processes of one machine lock in turn, `TCPStore` a dict in
one process that others reach by its address (over the standard library's connections), `PrefixStore` part of another
store. `get` and `wait` return when the names are there, or raise after the store's timeout.
"""

from __future__ import annotations

import base64
import datetime
import json
import threading
import time
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from .work import DistNetworkError, DistStoreError, seconds

DEFAULT_TIMEOUT = 300.0


def as_bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def lock(file: Any) -> None:
    """Wait until this process alone has a file; closing it lets go."""
    try:
        import fcntl
    except ImportError:
        raise DistStoreError(
            "FileStore: files cannot be locked on this system (there is no fcntl); use TCPStore"
        ) from None
    fcntl.flock(file, fcntl.LOCK_EX)


class Store:
    """What all stores can do."""

    def __init__(self) -> None:
        self._seconds = DEFAULT_TIMEOUT

    @property
    def timeout(self) -> datetime.timedelta:
        return datetime.timedelta(seconds=self._seconds)

    def set_timeout(self, timeout: Any) -> None:
        self._seconds = seconds(timeout)

    def has_extended_api(self) -> bool:
        return True

    def multi_set(self, keys: list[str], values: list) -> None:
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def multi_get(self, keys: list[str]) -> list[bytes]:
        return [self.get(key) for key in keys]

    def wait(self, keys: list[str], timeout: Any = None) -> None:
        """Return when all names are there."""
        self._do("wait", list(keys), self._seconds if timeout is None else seconds(timeout))

    def get(self, key: str) -> bytes:
        """The value of a name, when it is there."""
        self.wait([key])
        return self._do("get", key)

    def set(self, key: str, value: Any) -> None:
        self._do("set", key, as_bytes(value))

    def append(self, key: str, value: Any) -> None:
        self._do("append", key, as_bytes(value))

    def add(self, key: str, amount: int) -> int:
        """Add to a number, from 0; gives the sum."""
        return self._do("add", key, int(amount))

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Set a name whose value is the expected one, or a new name where none is expected; gives its value then."""
        return self._do("compare_set", key, as_bytes(expected_value), as_bytes(desired_value))

    def check(self, keys: list[str]) -> bool:
        return self._do("check", list(keys))

    def delete_key(self, key: str) -> bool:
        return self._do("delete_key", key)

    def num_keys(self) -> int:
        return self._do("num_keys")

    def _do(self, what: str, *args: Any) -> Any:
        raise NotImplementedError


class Table:
    """The dict behind a store, and what each call does with it."""

    def __init__(self, values: dict[str, bytes] | None = None):
        self.values = {} if values is None else values

    def get(self, key: str) -> bytes:
        if key not in self.values:
            raise DistStoreError(f"the store has no key {key!r}")
        return self.values[key]

    def set(self, key: str, value: bytes) -> None:
        self.values[key] = value

    def append(self, key: str, value: bytes) -> None:
        self.values[key] = self.values.get(key, b"") + value

    def add(self, key: str, amount: int) -> int:
        total = int(self.values.get(key, b"0")) + amount
        self.values[key] = str(total).encode()
        return total

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        have = self.values.get(key)
        if have == expected or have is None and not expected:
            self.values[key] = desired
        return self.values.get(key, expected)

    def check(self, keys: list[str]) -> bool:
        return all(k in self.values for k in keys)

    def delete_key(self, key: str) -> bool:
        return self.values.pop(key, None) is not None

    def num_keys(self) -> int:
        return len(self.values)


def missing(keys: list[str], limit: float) -> DistStoreError:
    return DistStoreError(f"wait timeout after {limit * 1000:.0f}ms, keys: {', '.join(keys)}")


class HashStore(Store):
    """A store of the threads of one process."""

    def __init__(self) -> None:
        super().__init__()
        self._table, self._changed = Table(), threading.Condition()

    def _do(self, what: str, *args: Any) -> Any:
        with self._changed:
            if what == "wait":
                keys, limit = args
                if not self._changed.wait_for(lambda: self._table.check(keys), limit):
                    raise missing(keys, limit)
                return None
            result = getattr(self._table, what)(*args)
            self._changed.notify_all()
            return result


class FileStore(Store):
    """A store in a file, for the processes that can lock it."""

    PAUSE = 0.01

    def __init__(self, file_name: str, world_size: int = -1):
        super().__init__()
        self.path, self.world_size = file_name, world_size

    def _do(self, what: str, *args: Any) -> Any:
        if what == "wait":
            return self._wait(*args)
        with open(self.path, "a+b") as file:
            lock(file)
            file.seek(0)
            table = Table({k: base64.b64decode(v) for k, v in json.loads(file.read() or b"{}").items()})
            before = dict(table.values)
            result = getattr(table, what)(*args)
            if table.values != before:
                file.truncate(0)
                file.write(json.dumps({k: base64.b64encode(v).decode() for k, v in table.values.items()}).encode())
            return result

    def _wait(self, keys: list[str], limit: float) -> None:
        end = time.monotonic() + limit
        while not self._do("check", keys):
            if time.monotonic() > end:
                raise missing(keys, limit)
            time.sleep(self.PAUSE)


class PrefixStore(Store):
    """The part of another store whose names begin with a prefix."""

    def __init__(self, prefix: str, store: Store):
        super().__init__()
        self.prefix, self.underlying_store = prefix, store
        self._seconds = store._seconds

    def _do(self, what: str, *args: Any) -> Any:
        if what == "num_keys":
            return self.underlying_store._do(what)
        first, *rest = args
        name = lambda key: f"{self.prefix}/{key}"
        return self.underlying_store._do(
            what, list(map(name, first)) if isinstance(first, list) else name(first), *rest
        )


class TCPStore(Store):
    """A store that one process (`is_master`) keeps and others reach by its address."""

    def __init__(
        self, host_name: str, port: int = 0, world_size: int | None = None, is_master: bool = False, timeout: Any = None,
        wait_for_workers: bool = True, multi_tenant: bool = False, master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self._seconds = DEFAULT_TIMEOUT if timeout is None else seconds(timeout)
        self.host, self._server = host_name, _Server(host_name, port) if is_master else None
        self.port = self._server.port if self._server is not None else port
        self._turn = threading.Lock()
        self._connection = _connect(host_name, self.port, self._seconds)
        if wait_for_workers and world_size is not None and world_size > 0:
            self._wait_for_workers(world_size)

    def _wait_for_workers(self, count: int) -> None:
        if self.add("pullback/workers", 1) == count:
            self.set("pullback/all-workers", b"1")
        self.wait(["pullback/all-workers"])

    def _do(self, what: str, *args: Any) -> Any:
        with self._turn:
            self._connection.send_bytes(_encode([what, *args]))
            ok, result = _decode(self._connection.recv_bytes())
        if ok:
            return result
        raise DistStoreError(result)

    def num_keys(self) -> int:
        return self._do("num_keys")


def _connect(host: str, port: int, limit: float) -> Connection:
    end = time.monotonic() + limit
    while True:
        try:
            return Client((host, port), "AF_INET")
        except OSError as e:
            if time.monotonic() > end:
                raise DistNetworkError(
                    f"The client has failed to connect to a store at {host}:{port} in {limit:.0f} s: {e}"
                ) from e
            time.sleep(0.05)


def _encode(message: list) -> bytes:
    return json.dumps(message, default=lambda b: {"b": base64.b64encode(b).decode()}).encode()


def _decode(data: bytes) -> list:
    return json.loads(data, object_hook=lambda d: base64.b64decode(d["b"]))


class _Server:
    """The process that keeps a store: one thread for each that is connected."""

    def __init__(self, host: str, port: int):
        try:
            self.listener = Listener((host, port), "AF_INET", backlog=128)
        except OSError as e:
            raise DistNetworkError(f"a store cannot listen at {host}:{port}: {e}") from e
        self.port = self.listener.address[1]
        self.store = HashStore()
        threading.Thread(target=self._accept, name="pullback-store", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection = self.listener.accept()
            except (OSError, EOFError):
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        try:
            while True:
                connection.send_bytes(_encode(self._answer(_decode(connection.recv_bytes()))))
        except (EOFError, OSError):
            connection.close()

    def _answer(self, message: list) -> list:
        what, *args = message
        if what != "wait" and not hasattr(Table, what):
            return [False, f"a store cannot {what!r}"]
        try:
            return [True, self.store._do(what, *args)]
        except DistStoreError as e:
            return [False, str(e)]
