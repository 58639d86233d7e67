"""`torch.distributed.tensor.experimental`: `implicit_replication`, inside which plain tensors count as replicated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .. import rules

__all__ = ["implicit_replication"]


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Inside the block a plain tensor that meets a distributed one is taken to be the same on every rank."""
    before, rules.plain_is_replicated = rules.plain_is_replicated, True
    try:
        yield
    finally:
        rules.plain_is_replicated = before
