"""Where each rank stands: a page of memory per rank that the others can read.

In: the calls that this rank begins and ends. Out: for a call that does not end, who has not come to it and what each rank
did last. The pages are windows of MPI's one-sided memory: a rank that hangs outside of MPI can still be read.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np

from .channel import LOCK

PAGE = 1024
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Board:
    """The pages of all ranks of a communicator. `pages` is None where there are none: one rank, or no such memory."""

    def __init__(self, channel: Any = None):
        self.window = self.page = None
        self.calls: dict[str, int] = {}  # calls begun on each group
        self.last = "before its first call"
        if channel is not None and channel.size > 1:
            self._open(channel)

    def _open(self, channel: Any) -> None:
        mpi = channel.mpi
        try:
            self.window = mpi.Win.Allocate(PAGE, 1, comm=channel.comm)
        except mpi.Exception:  # a library without one-sided memory: errors say less
            return
        self.page = np.frombuffer(self.window.tomemory(), np.uint8)
        self.page[:] = 0
        self.window.Lock_all()
        self._publish()
        channel.comm.Barrier()

    def began(self, group: str, name: str, number: int) -> None:
        self.calls[group] = number
        if self.page is not None:
            self.last = f"in {name} #{number} of group {group} at {caller()}"
            self._publish()

    def ended(self, group: str, name: str, number: int) -> None:
        if self.page is not None and self.calls.get(group) == number:
            self.last = self.last.replace("in ", "after ", 1) if self.last.startswith("in ") else self.last
            self._publish()

    def _publish(self) -> None:
        text = json.dumps([self.last[-600:], dict(list(self.calls.items())[-12:])]).encode()[: PAGE - 1]
        self.page[: len(text)] = np.frombuffer(text, np.uint8)
        self.page[len(text)] = 0
        with LOCK:
            self.window.Sync()

    def read(self, rank: int) -> tuple[str, dict[str, int]]:
        """(what a rank did last, how many calls it has begun on each group)."""
        if self.window is None:
            return "unknown", {}
        page = np.zeros(PAGE, np.uint8)
        with LOCK:
            self.window.Get(page, rank)
            self.window.Flush(rank)
        text = page.tobytes().partition(b"\0")[0].decode(errors="replace")
        try:
            last, calls = json.loads(text)
        except ValueError:  # read while it was written
            return text or "unknown", {}
        return last, calls

    def report(self, group: str, ranks: list[int], number: int) -> tuple[list[int], str]:
        """(the ranks that have not come to a call, where each rank of the group stands)."""
        pages = {rank: self.read(rank) for rank in ranks}
        missing = [r for r, (_, calls) in pages.items() if calls.get(group, 0) < number]
        return missing, "\n".join(f"  rank {r}: {last}" for r, (last, _) in pages.items())


def caller() -> str:
    """The line of the program that called into this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
