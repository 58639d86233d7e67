"""Arrays that calls which operators started still write: who waits for one finds its call here."""

from __future__ import annotations

from typing import Any

from .work import Work

pending: dict[int, tuple[Any, Work]] = {}  # by the identity of the array that a call writes


def under_way(array: Any, work: Work) -> Any:
    """Note that an array is written by a call that was started."""
    pending[id(array)] = array, work
    return array


def owner(array: Any) -> Any:
    """The array whose memory a view is of."""
    while array.base is not None and hasattr(array.base, "base"):
        array = array.base
    return array


def finish_pending(*arrays: Any) -> bool:
    """Wait for what operators started into some arrays; False where nothing was."""
    found = False
    for array in arrays if pending else ():
        if (entry := pending.pop(id(owner(array)), None)) is not None:
            entry[1].wait()
            found = True
    return found
