"""`torch.distributed.autograd`: gradients through remote procedure calls, of which there are none: `is_available()` is False."""

from __future__ import annotations

from typing import Any, NoReturn


def is_available() -> bool:
    """Whether gradients can flow through remote calls: no."""
    return False


def _absent(name: str) -> NoReturn:
    raise RuntimeError(
        f"torch.distributed.autograd.{name}: remote procedure calls are not implemented, nor gradients of them"
    )


class context:
    """The record of a pass over several processes; there is none."""

    def __init__(self, *args: Any, **kwargs: Any):
        _absent("context")


def backward(context_id: int, roots: Any, retain_graph: bool = False) -> NoReturn:
    _absent("backward")


def get_gradients(context_id: int) -> NoReturn:
    _absent("get_gradients")
