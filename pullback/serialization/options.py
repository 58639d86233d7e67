"""Settings of saving and loading: byte order, checksums, memory maps, and leaving the data out.

They belong to the thread that sets them.
"""

from __future__ import annotations

import mmap
import threading
from contextlib import contextmanager
from enum import Enum
from typing import Any


class LoadEndianness(Enum):
    """The byte order to assume for files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


MAP_PRIVATE = mmap.MAP_PRIVATE
MAP_SHARED = mmap.MAP_SHARED


class _Options(threading.local):
    endianness: LoadEndianness | None = None
    compute_crc32: bool = True
    mmap_flags: int = MAP_PRIVATE
    skip_data: bool = False
    materialize_fake_tensors: bool = False


options = _Options()


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order assumed for files that do not say theirs; None means little."""
    return options.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Choose that byte order."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    options.endianness = endianness


def get_crc32_options() -> bool:
    """Whether checksums are asked for."""
    return options.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Ask for checksums or not. Files are written with them either way: a reader may rely on them."""
    options.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int:
    """How `load(mmap=True)` maps files: MAP_PRIVATE (changes stay in memory) or MAP_SHARED (changes go to the file)."""
    return options.mmap_flags


class _Restored:
    """A setting that was made at once and can also be used as a block, after which the old value is back."""

    def __init__(self, name: str, value: Any):
        self.name, self.before = name, getattr(options, name)
        setattr(options, name, value)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        setattr(options, self.name, self.before)


def set_default_mmap_options(flags: int) -> _Restored:
    """Choose how files are mapped, from here on or inside a block."""
    if flags not in (MAP_PRIVATE, MAP_SHARED):
        raise ValueError(
            f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
        )
    return _Restored("mmap_flags", flags)


@contextmanager
def skip_data(materialize_fake_tensors: bool = False):
    """Inside, `save` writes storages as zeros and `load` leaves their contents undefined: only shapes matter."""
    before = options.skip_data, options.materialize_fake_tensors
    options.skip_data, options.materialize_fake_tensors = True, materialize_fake_tensors
    try:
        yield
    finally:
        options.skip_data, options.materialize_fake_tensors = before
