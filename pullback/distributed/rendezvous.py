"""Which of how many processes this one is: from arguments, `env://`, `tcp://` and `file://` addresses, or the launcher.

Out: a `Place`: size, rank (-1: the launcher knows) and a store where one was given or can be made. The ranks themselves
meet through MPI; an address only says who is who.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Any
from urllib.parse import parse_qs, urlparse

from . import mpi
from .stores import FileStore, HashStore, PrefixStore, Store


class Place:
    """A process's place in the world, and a store that it shares with the others, where there is one."""

    def __init__(self, size: int, rank: int, store: Store | None, address: tuple[str, int] | None = None):
        self.size, self.rank, self.store, self.address = size, rank, store, address

    def meeting_point(self) -> tuple[str, int]:
        """The address at which ranks meet that no launcher started; rank 0 tells it by the store where none was given."""
        if self.address is not None:
            return self.address
        if self.store is None:
            raise ValueError(
                "init_process_group: ranks that no launcher started need an address to meet at: init_method='tcp://HOST:PORT' or "
                "MASTER_ADDR and MASTER_PORT in the environment"
            )
        if self.rank == 0:
            with socket.create_server(("127.0.0.1", 0)) as found:
                self.store.set("pullback/meeting", f"127.0.0.1:{found.getsockname()[1]}")
        host, _, port = self.store.get("pullback/meeting").decode().rpartition(":")
        if self.store.add("pullback/met", 1) == self.size:
            self.store.set("pullback/all-met", b"1")
        self.store.wait(["pullback/all-met"])
        time.sleep(
            0.1
        )  # rank 0 may keep the store: its answers must be on their way before MPI's start blocks the process
        return host, int(port)


def place_of(method: str | None, size: int, rank: int, store: Store | None, needs_env: bool) -> Place:
    """The place that arguments, or an address, say."""
    size, rank = -1 if size is None else size, -1 if rank is None else rank
    if store is not None:
        if size <= 0 or rank < 0:
            raise ValueError("world_size and rank must be given, and world_size positive, if a store is given")
        return _checked(Place(size, rank, PrefixStore("default_pg", store)))
    if method is None or method.startswith("env://"):
        return _checked(_from_environment(size, rank, needs_env))
    url = urlparse(method)
    query = {k: int(v[0]) for k, v in parse_qs(url.query).items() if k in ("rank", "world_size")}
    size, rank = query.get("world_size", size), query.get("rank", rank)
    if url.scheme not in ("tcp", "file"):
        raise RuntimeError(f"No rendezvous handler for {url.scheme}://: init_method {method!r} has no known scheme")
    if not mpi.launched() and (rank < 0 or size < 0):
        raise ValueError(
            f"Error initializing torch.distributed using {url.scheme}:// rendezvous: rank or world_size parameter missing"
        )
    if url.scheme == "file" and not url.path:
        raise ValueError(f"init_method {method!r}: expected a path after file://")
    result: Store = HashStore() if size == 1 or url.scheme == "tcp" else FileStore(url.path, size)
    address = (url.hostname or "127.0.0.1", url.port or 29500) if url.scheme == "tcp" else None
    return _checked(Place(size, rank, result if size == 1 or url.scheme == "file" else None, address))


def _checked(place: Place) -> Place:
    if place.size == 0 or place.size > 0 and place.rank >= place.size:
        raise ValueError(f"rank {place.rank} is not below world_size {place.size}")
    return place


def _from_environment(size: int, rank: int, needed: bool) -> Place:
    if mpi.launched():
        return Place(_read("WORLD_SIZE", size), _read("RANK", rank), _store_of_environment())
    if not needed and size < 0 and "WORLD_SIZE" not in os.environ:
        return Place(1, 0, HashStore())
    found = {name: _read(name, given) for name, given in (("RANK", rank), ("WORLD_SIZE", size))}
    for name, value in found.items():
        if value < 0:
            raise ValueError(
                f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but not set"
            )
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if found["WORLD_SIZE"] > 1 and name not in os.environ:
            raise ValueError(
                f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but not set: "
                "ranks that no launcher started meet there. To start them together: pullback launch -n "
                f"{found['WORLD_SIZE']} script.py"
            )
    address = os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "29500"))
    store = HashStore() if found["WORLD_SIZE"] == 1 else _store_of_environment()
    return Place(found["WORLD_SIZE"], found["RANK"], store, address)


def _read(name: str, given: int) -> int:
    """A number that was given, or else the environment's; -1 where neither is."""
    return given if given >= 0 else int(os.environ.get(name, -1))


def _store_of_environment() -> Store | None:
    """The store of a job whose ranks share the launcher's folder."""
    folder = os.environ.get("PULLBACK_JOB")
    return PrefixStore("default_pg", FileStore(os.path.join(folder, "store"))) if folder else None


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any):
    """Yields (store, rank, world size) of an address, as PyTorch's does."""
    place = place_of(url, world_size, rank, None, needs_env=True)
    yield place.store, place.rank, place.size
