"""`get_debug_level` and `set_debug_level`: how closely calls are watched (`TORCH_DISTRIBUTED_DEBUG`)."""

from __future__ import annotations

import enum
import os

from .consistency import debug_level


class DebugLevel(enum.IntEnum):
    """How closely calls are watched."""

    OFF = 0
    INFO = 1
    DETAIL = 2


def get_debug_level() -> DebugLevel:
    return DebugLevel[debug_level()]


def set_debug_level(level: DebugLevel) -> None:
    """For groups that are made from now on."""
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = DebugLevel(level).name
