"""Arenas between calls: where programs keep what lives no longer than a call of them.

`Rooms(owner, size)` hands out memory of so many bytes, (array, address), and takes it back. A small arena stays with its program. Large ones are
everybody's: programs that run one after the other (forward and backward, the first step and the others) work in one memory, as large as the largest
of them needs. It is let go when the last program that needs so much is gone.
"""

from __future__ import annotations

import weakref
from collections import Counter

import numpy as np

from .cpu import arena

LARGE = 1 << 20  # bytes
Room = tuple[np.ndarray, int]

_free: list[Room] = []  # large ones that no call is using
_wanted: Counter[int] = Counter()  # sizes of large ones, of programs that are alive


class Rooms:
    """See the module's docstring. The memory is not cleared."""

    def __init__(self, owner: object, size: int):
        self.size = size
        self.free: list[Room] = _free if size >= LARGE else []
        if size >= LARGE:
            _wanted[size] += 1
            weakref.finalize(owner, _gone, size).atexit = False

    def take(self) -> Room:
        while self.free:  # one that is too small is let go: the one that is made now serves for it too
            room = self.free.pop()
            if len(room[0]) >= self.size:
                return room
        memory = arena(self.size)
        return memory, memory.ctypes.data

    def give(self, room: Room) -> None:
        if self.size < LARGE or len(room[0]) <= max(_wanted, default=0):
            self.free.append(room)


def _gone(size: int) -> None:
    """A program that needed a large arena is not there any more."""
    _wanted[size] -= 1
    if not _wanted[size]:
        del _wanted[size]
    most = max(_wanted, default=0)
    _free[:] = [room for room in _free if len(room[0]) <= most]
