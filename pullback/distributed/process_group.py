"""`ProcessGroup`: some ranks, the channel that joins them, and the count of calls they have made together.

In: calls of collectives as functions of a channel. Out: `Work`. Every call has a number in its group, the same on all
ranks of a correct program; the board says where each rank is, and in the mode DETAIL the calls are compared first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .channel import LOCK, Channel
from .consistency import check_alike, debug_level
from .standing import Board
from .work import DistBackendError, Work, progress


class Backend(str):
    """The name of a backend, in lower case; unknown names are an error."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"
    backend_list = [UNDEFINED, GLOO, NCCL, MPI]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, got {type(name).__name__}")
        value = name.lower()
        if value not in cls.backend_list:
            raise ValueError(f"Unknown c10d backend type {name!r}: expected one of {', '.join(cls.backend_list[1:])}")
        return super().__new__(cls, value)


class ProcessGroup:
    """Some ranks that communicate. `ranks` are their numbers in the world, in the group's order."""

    BackendType = Backend

    def __init__(
        self, name: str, ranks: list[int], channel: Channel, backend: str, timeout: float, board: Board,
        description: str | None = None, checker: Channel | None = None, store: Any = None,
    ):  # fmt: skip
        self.group_name, self.ranks, self.channel, self.backend = name, ranks, channel, backend
        self.timeout, self.board, self.store = timeout, board, store
        self.group_desc = description or ("default_pg" if name == "0" else "undefined")
        self.checker = checker  # the channel on which calls are compared, in the mode DETAIL
        self.cell = board.counter(name)  # how many calls have begun: native code counts here too
        self.log: list[Work] | None = None  # works as they end, where somebody measures
        self.bound_device_id = None

    @property
    def number(self) -> int:
        """Of the call that was begun last."""
        return int(self.cell[0])

    # ---- what programs ask
    def rank(self) -> int:
        return self.channel.rank

    def size(self) -> int:
        return self.channel.size

    def name(self) -> str:
        return self.backend

    def _get_backend_name(self) -> str:
        return self.backend

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name} ({self.backend}): rank {self.rank()} of {self.size()}>"

    def __reduce__(self):
        raise TypeError("a ProcessGroup joins running processes: it cannot be pickled")

    def __deepcopy__(self, memo: dict) -> ProcessGroup:
        return self

    # ---- calls
    def begin(
        self, name: str, facts: str, start: Callable[[Channel], Any], finish: Callable[[], None] | None = None,
        outputs: list | None = None, *, collective: bool = True, watched: bool = False, nbytes: int = 0,
    ) -> Work:  # fmt: skip
        """Start a call. `watched`: the program goes on computing, and the thread `progress` keeps the call going;
        `nbytes`: the size of the whole that is reduced, gathered or scattered, for those who measure."""
        if collective:
            self.cell[0] += 1
            self.board.began(self.group_name, name, self.number)
            if self.checker is not None:
                self._compare(f"{name} #{self.number} of group {self.group_name}{facts}")
        started = time.perf_counter()
        with LOCK:
            request = start(self.channel)
        work = Work(self, name, self.number, request, finish, outputs or [], self.timeout, started)
        work.nbytes = nbytes
        if watched and self.size() > 1:
            progress.watch(work)
        return work

    def _compare(self, facts: str) -> None:
        def exchange(mine: np.ndarray) -> np.ndarray:
            gathered = np.empty(mine.size * self.size(), np.uint8)
            with LOCK:
                request = self.checker.allgather(mine, list(gathered.reshape(self.size(), -1)))
            Work(self, "the comparison of calls", self.number, request, None, [], self.timeout).wait()
            return gathered

        check_alike(exchange, facts, self.ranks)

    def over(self, work: Work) -> None:
        """A call has ended."""
        if work.number == self.number:
            self.board.ended()
        if self.log is not None:
            self.log.append(work)

    def late(self, work: Work, limit: float) -> Exception:
        """The error of a call that did not end in time: who is missing, and where each rank stands."""
        missing, places = self.board.report(self.group_name, self.ranks, work.number)
        who = ", ".join(f"rank {r}" for r in missing) or "no rank"
        return DistBackendError(
            f"{work.name} #{work.number} of group {self.group_name} timed out after {limit * 1000:.0f} ms on rank "
            f"{self.ranks[self.rank()]}: {who} has not come to it.\n{places}"
        )


def make_checker(channel: Channel) -> Channel | None:
    """The channel for comparing calls, where they are compared."""
    return channel.copy() if debug_level() == "DETAIL" and channel.size > 1 else None


def _world() -> ProcessGroup | None:
    from .groups import state

    return state.world


class _GroupMeta(type):
    """Makes `WORLD` an attribute of the class that is read when asked for."""

    @property
    def WORLD(cls) -> ProcessGroup | None:
        return _world()

    @WORLD.setter
    def WORLD(cls, group: ProcessGroup | None) -> None:
        from .groups import state

        state.world = group


class group(metaclass=_GroupMeta):
    """`dist.group.WORLD`: the group of all ranks."""


class GroupMember(metaclass=_GroupMeta):
    """`GroupMember.WORLD`, and what stands for a group that this rank is not in."""

    NON_GROUP_MEMBER = -100
