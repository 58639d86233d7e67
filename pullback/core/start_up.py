"""What makes importing, and the first call of a compiled function, quick."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def searched_later() -> Iterator[bool]:
    """No search for garbage inside, one after it: what a compiler makes is in use until it is done, and looking through it again and
    again is a quarter of its time. Gives whether there will be searches."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield was_enabled
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """No search for garbage inside, nor right after: declarations are made to stay, and looking through them again and again is
    a tenth of the time that importing them takes."""
    with searched_later() as searched:
        try:
            yield
        finally:
            if searched:
                _count_as_old()


def _count_as_old() -> None:
    """Put what there is among the objects that are looked at last, without looking at it now."""
    if not gc.get_freeze_count():  # else the program has frozen objects of its own, and they stay so
        gc.freeze()
        gc.unfreeze()
