"""Batches in locked memory, from which a device can copy while the CPU works on.

In: what a loader fetched. Out: the same, its tensors (and whatever has a `pin_memory` of its own) pinned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.tensor import Tensor


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
