"""`torch.multiprocessing`: Python's multiprocessing, with tensors that are sent by sharing their memory.

A tensor that goes through a queue or a pipe is moved to shared memory, and the receiver maps the same pages: what one
process writes, the others see. `spawn` starts functions in new processes and raises here what goes wrong there.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from .reductions import init_reductions
from .spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

_STRATEGIES = frozenset({"file_descriptor"})


def get_all_sharing_strategies() -> set[str]:
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Memory is shared by file descriptors here, which live exactly as long as they are used; `file_system` is not needed."""
    if new_strategy == "file_system":
        import warnings

        warnings.warn(
            "set_sharing_strategy('file_system') has no effect: memory is shared by file descriptors", stacklevel=2
        )
    elif new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {sorted(_STRATEGIES)}")


__all__ = [
    *multiprocessing.__all__, "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes",
]  # fmt: skip
init_reductions()
