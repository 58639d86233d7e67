"""Collectives on Python objects: they travel pickled, as bytes.

In: objects that pickle can take. Out: the same on other ranks. Pickles run code when they are loaded: only ranks of one
job, which trust one another, exchange them.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from .collectives import root_of
from .groups import group_or_world
from .point_to_point import _peer
from .process_group import ProcessGroup

TAG = 31_000  # of messages that hold objects


def _sizes(pg: ProcessGroup, name: str, size: int) -> np.ndarray:
    """The lengths of what each rank has."""
    mine, all_sizes = np.array([size], np.int64), np.empty(pg.size(), np.int64)
    pg.begin(name, "(lengths)", lambda c: c.on_host.allgather(mine, list(all_sizes.reshape(-1, 1)))).wait()
    return all_sizes


def _packed(value: Any) -> np.ndarray:
    return np.frombuffer(bytearray(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)), np.uint8)


def all_gather_object(object_list: list, obj: Any, group: Any = None) -> None:
    """The objects of all ranks, in a list on each."""
    pg = group_or_world(group)
    if pg is None:
        return
    if len(object_list) != pg.size():
        raise ValueError(f"object_list: expected a list of {pg.size()}, one for each rank, got {len(object_list)}")
    data = _packed(obj)
    received = [np.empty(n, np.uint8) for n in _sizes(pg, "all_gather_object", data.size)]
    pg.begin("all_gather_object", "(objects)", lambda c: c.on_host.allgather(data, received)).wait()
    object_list[:] = [pickle.loads(part.tobytes()) for part in received]


def gather_object(
    obj: Any,
    object_gather_list: list | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """The objects of all ranks, in a list on one of them."""
    pg = group_or_world(group)
    if pg is None:
        return
    root = root_of(pg, dst, group_dst, "dst")
    here = pg.rank() == root
    if here != (object_gather_list is not None):
        word = "must be specified on destination rank" if here else "must NOT be specified on non-destination ranks"
        raise ValueError(f"Argument ``object_gather_list`` {word}.")
    data = _packed(obj)
    sizes = _sizes(pg, "gather_object", data.size)
    received = [np.empty(n, np.uint8) for n in sizes] if here else None
    pg.begin("gather_object", "(objects)", lambda c: c.on_host.gather(data, received, root)).wait()
    if here:
        object_gather_list[:] = [pickle.loads(part.tobytes()) for part in received]


def broadcast_object_list(
    object_list: list, src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Replace the objects of a list by those of one rank."""
    if not isinstance(object_list, list):
        raise TypeError(f"object_list: expected a list, got {type(object_list).__name__}")
    pg = group_or_world(group)
    if pg is None:
        return
    root = root_of(pg, src, group_src, "src")
    data = _packed(object_list) if pg.rank() == root else np.empty(0, np.uint8)
    size = np.array([data.size], np.int64)
    pg.begin("broadcast_object_list", "(length)", lambda c: c.on_host.broadcast(size, root)).wait()
    data = data if pg.rank() == root else np.empty(int(size[0]), np.uint8)
    pg.begin("broadcast_object_list", "(objects)", lambda c: c.on_host.broadcast(data, root)).wait()
    if pg.rank() != root:
        sent = pickle.loads(data.tobytes())
        if len(sent) != len(object_list):
            raise ValueError(
                f"object_list: rank {pg.ranks[root]} sends {len(sent)} objects into a list of {len(object_list)}"
            )
        object_list[:] = sent


def scatter_object_list(
    scatter_object_output_list: list, scatter_object_input_list: list | None = None, src: int | None = None,
    group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """One rank's list of objects, one to each: it becomes the first item of the output list."""
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    pg = group_or_world(group)
    if pg is None:
        return
    root = root_of(pg, src, group_src, "src")
    given = list(scatter_object_input_list or []) if pg.rank() == root else None
    if given is not None and len(given) != pg.size():
        raise ValueError(
            f"scatter_object_input_list: expected {pg.size()} objects, one for each rank, got {len(given)}"
        )
    parts = None if given is None else [_packed(v) for v in given]
    size = np.empty(1, np.int64)
    sizes = None if parts is None else [np.array([p.size], np.int64) for p in parts]
    pg.begin("scatter_object_list", "(lengths)", lambda c: c.on_host.scatter(sizes, size, root)).wait()
    data = np.empty(int(size[0]), np.uint8)
    pg.begin("scatter_object_list", "(objects)", lambda c: c.on_host.scatter(parts, data, root)).wait()
    scatter_object_output_list[0] = pickle.loads(data.tobytes())


def send_object_list(
    object_list: list, dst: int | None = None, group: Any = None, device: Any = None, group_dst: int | None = None,
    use_batch: bool = False,
) -> None:  # fmt: skip
    """Send a list of objects to a rank."""
    pg = group_or_world(group)
    if pg is None:
        return
    peer, data = _peer(pg, dst, group_dst, "dst"), _packed(object_list)
    for part in (np.array([data.size], np.int64), data):
        pg.begin("send_object_list", "", lambda c, part=part: c.on_host.send(part, peer, TAG), collective=False).wait()


def recv_object_list(
    object_list: list, src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None,
    use_batch: bool = False,
) -> int:  # fmt: skip
    """Receive a list of objects; gives the sender's rank."""
    pg = group_or_world(group)
    if pg is None:
        return -1
    peer = None if src is None and group_src is None else _peer(pg, src, group_src, "src")
    size = np.empty(1, np.int64)
    work = pg.begin("recv_object_list", "", lambda c: c.on_host.recv(size, peer, TAG), collective=False)
    work.wait()
    peer = pg.channel.on_host.source_of(work.request) if peer is None else peer
    data = np.empty(int(size[0]), np.uint8)
    pg.begin("recv_object_list", "", lambda c: c.on_host.recv(data, peer, TAG), collective=False).wait()
    object_list[:] = pickle.loads(data.tobytes())
    return pg.ranks[peer]
