"""Whether new memory is filled while deterministic algorithms are asked for: the variable `fill_uninitialized_memory`."""

from __future__ import annotations

import sys
import types

from ..core.modes import process


class _Settings(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        return process.fill_uninitialized_memory

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"fill_uninitialized_memory must be a bool, but got {type(value).__name__}")
        process.fill_uninitialized_memory = value


sys.modules[__name__].__class__ = _Settings
