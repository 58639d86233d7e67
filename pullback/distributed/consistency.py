"""The check of `TORCH_DISTRIBUTED_DEBUG=DETAIL`: all ranks of a group make the same call, with the same shapes and dtypes.

In: the facts of a call that is about to start. Out: nothing, or an error on every rank that names two ranks which differ
and what each called. The facts travel over a communicator of their own, so they meet even where the calls would not.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from .work import DistBackendError

RECORD = 512


def debug_level() -> str:
    """OFF, INFO or DETAIL."""
    level = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if level not in ("OFF", "INFO", "DETAIL"):
        raise ValueError(f"TORCH_DISTRIBUTED_DEBUG: expected OFF, INFO or DETAIL, got {level!r}")
    return level


def check_alike(exchange: Callable[[np.ndarray], np.ndarray], facts: str, ranks: list[int]) -> None:
    """Raise unless `facts` are the same on all ranks. `exchange` gathers the records of all."""
    text = facts.encode()[: RECORD - 1]
    mine = np.zeros(RECORD, np.uint8)
    mine[: len(text)] = np.frombuffer(text, np.uint8)
    rows = exchange(mine).reshape(len(ranks), RECORD)
    said = [row.tobytes().partition(b"\0")[0].decode() for row in rows]
    for rank, other in zip(ranks, said, strict=True):
        if other != said[0]:
            raise DistBackendError(
                "Detected mismatch between collectives on ranks. "
                f"Rank {ranks[0]} is running collective: {said[0]}, but rank {rank} is running collective: {other}."
            )
