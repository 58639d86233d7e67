"""Batches in locked memory, from which a device can copy while the CPU works on.

In: what a loader fetched. Out: the same, its tensors (and whatever has a `pin_memory` of its own) pinned.
"""

from __future__ import annotations

import queue
from collections.abc import Mapping
from typing import Any

from ...core.tensor import Tensor

WAIT_SECONDS = 5.0  # before a thread that waits for a queue looks whether it is still wanted


def pinned(data: Any, device: Any = None) -> Any:
    """A batch whose tensors are in locked memory; containers are made again."""
    if isinstance(data, Tensor):
        return data.pin_memory()
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return type(data)({k: pinned(v) for k, v in data.items()})  # type: ignore[call-arg]
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*[pinned(v) for v in data])
    return type(data)([pinned(v) for v in data]) if isinstance(data, (tuple, list)) else data


def pin_all(arriving: Any, leaving: Any, device_id: int, done: Any, device: str | None = None) -> None:
    """The life of a thread that pins: `(number, batch)` pairs from one queue to the other until `done`; errors travel too."""
    from .worker import Failure

    while not done.is_set():
        try:
            number, data = arriving.get(timeout=WAIT_SECONDS)
        except queue.Empty:
            continue
        if not isinstance(data, Failure):
            try:
                data = pinned(data, device)
            except Exception:  # noqa: BLE001 - sent to the loader, whatever it is
                data = Failure(where=f"in pin memory thread for device {device_id}")
        _put(leaving, (number, data), done)


def _put(leaving: Any, pair: tuple, done: Any) -> None:
    while not done.is_set():
        try:
            leaving.put(pair, timeout=WAIT_SECONDS)
        except queue.Full:
            continue
        return
