"""Where each rank stands: a page of memory per rank that the others can read.

In: the calls that this rank begins and ends. Out: for a call that does not end, who has not come to it and what each rank
did last. The pages are windows of MPI's one-sided memory: a rank that hangs outside of MPI can still be read. A page is a text
(what the rank did last), then a table of groups: a name, and how many calls were begun on it. Native code writes both too.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from .channel import LOCK

TEXT, NAME, GROUPS = 640, 24, 40  # bytes of the text, of a group's name; groups in the table
PAGE = TEXT + GROUPS * (NAME + 8)
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Board:
    """The pages of all ranks of a communicator. `pages` is None where there are none: one rank, or no such memory."""

    TEXT = TEXT

    def __init__(self, channel: Any = None):
        self.window = self.page = None
        self.groups: list[str] = []  # those in the table
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

    def counter(self, group: str) -> np.ndarray:
        """The number of calls begun on a group, as one element that others can read where there is room for it."""
        if self.page is None or len(self.groups) == GROUPS:
            return np.zeros(1, np.int64)
        at = TEXT + len(self.groups) * (NAME + 8)
        self.groups.append(group)
        name = _short(group)
        self.page[at : at + len(name)] = np.frombuffer(name, np.uint8)
        return self.page[at + NAME : at + NAME + 8].view(np.int64)

    def text_address(self) -> int:
        """Where native code writes what this rank does; 0 where nobody reads it."""
        return 0 if self.page is None else self.page.ctypes.data

    def began(self, group: str, name: str, number: int) -> None:
        if self.page is not None:
            self.last = f"in {name} #{number} of group {group} at {caller()}"
            self._publish()

    def ended(self) -> None:
        """The call that was begun last is over."""
        if self.page is not None and self.last.startswith("in "):
            self.last = self.last.replace("in ", "after ", 1)
            self._publish()

    def _publish(self) -> None:
        text = self.last.encode()[1 - TEXT :]
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
        last = page[:TEXT].tobytes().partition(b"\0")[0].decode(errors="replace")
        calls = {}
        for row in page[TEXT:].reshape(GROUPS, NAME + 8):
            name = row[:NAME].tobytes().partition(b"\0")[0].decode(errors="replace")
            calls[name] = int(row[NAME:].view(np.int64)[0])
        return last, calls

    def report(self, group: str, ranks: list[int], number: int) -> tuple[list[int], str]:
        """(the ranks that have not come to a call, where each rank of the group stands)."""
        pages = {rank: self.read(rank) for rank in ranks}
        name = _short(group).decode(errors="replace")
        missing = [r for r, (_, calls) in pages.items() if calls.get(name, 0) < number]
        return missing, "\n".join(f"  rank {r}: {last}" for r, (last, _) in pages.items())


def _short(group: str) -> bytes:
    """A group's name as the table holds it."""
    return group.encode()[-NAME + 1 :]


def caller() -> str:
    """The line of the program that called into this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
