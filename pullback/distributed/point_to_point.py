"""Messages from one rank to another: `send`, `recv`, `isend`, `irecv`, and several at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from .collectives import check_tensor, written
from .groups import get_global_rank, get_group_rank, group_or_world
from .process_group import ProcessGroup
from .work import DistBackendError, Work, seconds


def _peer(pg: ProcessGroup, rank: int | None, group_rank: int | None, name: str) -> int:
    if group_rank is None and rank is None:
        raise ValueError(f"Must specify {name} or group_{name}")
    peer = group_rank if group_rank is not None else get_group_rank(pg, rank)
    if not 0 <= peer < pg.size():
        raise ValueError(f"{name}: expected a rank below {pg.size()}, got {peer}")
    return peer


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Begin to send a tensor; it must not change until the work is done."""
    check_tensor(tensor, "tensor")
    pg = group_or_world(group)
    if pg is None:
        return None
    peer = _peer(pg, dst, group_dst, "dst")
    array = pg.channel.buffer(tensor)
    name = f"send to rank {pg.ranks[peer]}"
    return pg.begin(name, "", lambda c: c.send(array, peer, tag), None, [tensor], collective=False, watched=True)


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Begin to receive into a tensor; from anybody, where no rank is given."""
    check_tensor(tensor, "tensor")
    pg = group_or_world(group)
    if pg is None:
        return None
    peer = None if src is None and group_src is None else _peer(pg, src, group_src, "src")
    array = pg.channel.buffer(tensor)

    def finish() -> None:
        pg.channel.write(tensor, array)

    written(tensor)
    name = "recv from anybody" if peer is None else f"recv from rank {pg.ranks[peer]}"
    return pg.begin(name, "", lambda c: c.recv(array, peer, tag), finish, [tensor], collective=False, watched=True)


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor to a rank."""
    pg = group_or_world(group)
    if pg is not None and pg.size() > 1 and _peer(pg, dst, group_dst, "dst") == pg.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive a tensor from a rank, or from anybody; gives the sender's rank in the world."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    if src is None and group_src is None:
        return work.source_rank()
    return src if src is not None else get_global_rank(work.group, group_src)


class P2POp:
    """A message that `batch_isend_irecv` will begin."""

    def __init__(
        self, op: Callable, tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0,
        group_peer: int | None = None,
    ):  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = (
            op,
            tensor,
            peer,
            group,
            tag,
            group_peer,
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin several messages."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(p, P2POp) for p in p2p_op_list) or not p2p_op_list:
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type ``torch.distributed.P2POp``.")
    result = []
    for p in p2p_op_list:
        name = "group_dst" if p.op is isend else "group_src"
        result.append(
            p.op(p.tensor, p.peer, p.group, p.tag, **({name: p.group_peer} if p.group_peer is not None else {}))
        )
    return [w for w in result if w is not None]


MONITOR = 32_000  # the tag of these messages, below the largest that MPI promises


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """A barrier that names the ranks which do not come in time: rank 0 asks each in turn."""
    pg = group_or_world(group)
    if pg is None or pg.size() == 1:
        return
    limit = pg.timeout if timeout is None else seconds(timeout)
    one = np.zeros(1, np.uint8)
    begin = lambda name, start: pg.begin(name, "", start, collective=False)
    if pg.rank() != 0:
        pg.board.began(pg.group_name, "monitored_barrier", pg.number)
        begin("monitored_barrier", lambda c: c.send(one, 0, MONITOR)).wait(limit)
        begin("monitored_barrier", lambda c: c.recv(one, 0, MONITOR + 1)).wait(2 * limit)
        return
    works = {
        r: begin("monitored_barrier", lambda c, r=r: c.recv(np.zeros(1, np.uint8), r, MONITOR))
        for r in range(1, pg.size())
    }
    late = _late(works, limit, wait_all_ranks)
    if late:
        ranks = ", ".join(str(pg.ranks[r]) for r in late)
        _, places = pg.board.report(pg.group_name, pg.ranks, pg.number)
        raise DistBackendError(
            f"[Rank 0]: Ranks {ranks} failed to pass monitoredBarrier in {limit * 1000:.0f} ms\n{places}"
        )
    for r in works:
        begin("monitored_barrier", lambda c, r=r: c.send(one, r, MONITOR + 1)).wait(limit)


def _late(works: dict[int, Work], limit: float, all_of_them: bool) -> list[int]:
    """The ranks that did not come; unless all are asked for, the first."""

    end, late = time.monotonic() + limit, []
    for rank, work in works.items():
        try:
            work.wait(max(0.001, end - time.monotonic()))
        except DistBackendError:
            late.append(rank)
            if not all_of_them:
                break
    return late
