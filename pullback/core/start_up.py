"""What makes importing, and the first call of a compiled function, quick."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """No search for garbage inside, nor right after: declarations are made to stay, and looking through them again and again is
    a tenth of the time that importing them takes."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            _count_as_old()
            gc.enable()


@contextlib.contextmanager
def searched_later() -> Iterator[None]:
    """No search for garbage inside, one after it: what a compiler makes is in use until it is done, and looking through it again and
    again is a quarter of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _count_as_old() -> None:
    """Put what there is among the objects that are looked at last, without looking at it now."""
    if not gc.get_freeze_count():  # else the program has frozen objects of its own, and they stay so
        gc.freeze()
        gc.unfreeze()
