"""What programs and tests import of PyTorch's private modules around `compile`, and that has no other home here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import cuda
from ..capture.front.config import config
from ..core import modes
from ..core.device import device as Device
from ..core.modes import ambient

range_iterator: Any = type(iter(range(0)))


def istype(value: Any, kinds: type | tuple[type, ...]) -> bool:
    """Whether a value is of exactly one of these types."""
    return type(value) in (kinds if isinstance(kinds, (tuple, list, set)) else (kinds,))


def ifdynstaticdefault(static: Any, dynamic: Any) -> Any:
    """The first where sizes are numbers until they change, the second where they are symbols from the start."""
    return static if config.assume_static_by_default else dynamic


def innermost_fn(fn: Callable) -> Callable:
    """The function that a compiled or decorated one was made of."""
    while hasattr(fn, "_torchdynamo_orig_callable"):
        fn = fn._torchdynamo_orig_callable
    return fn


def is_any_autocast_enabled() -> bool:
    """Whether autocast is on for some device."""
    return bool(ambient.mode & modes.AUTOCAST)


def get_interface_for_device(device: str | Device) -> Any:
    """What can be asked of devices of a type, by the names of `torch.cuda`: that module."""
    if Device(device).type == "cuda":
        return cuda
    raise NotImplementedError(f"No interface for device {device}")


@contextmanager
def disable_cache_limit() -> Iterator[None]:
    """A block in which a function is compiled again as often as its arguments ask for."""
    with config.patch(recompile_limit=sys.maxsize, accumulated_recompile_limit=sys.maxsize):
        yield
