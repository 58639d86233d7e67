"""Settings of saving and loading (`torch.utils.serialization.config`): byte order, checksums, alignment, memory maps.

They hold for the process. That data are left out (`skip_data`) belongs to the thread that says so.
"""

from __future__ import annotations

import mmap
import threading
from contextlib import contextmanager
from enum import Enum
from typing import Any

from ..core.settings import Settings


class LoadEndianness(Enum):
    """The byte order to assume for files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


MAP_PRIVATE = mmap.MAP_PRIVATE
MAP_SHARED = mmap.MAP_SHARED


saving = Settings(
    "torch.utils.serialization.config.save",
    compute_crc32=True,  # False: records have no checksums, and programs for zip files complain; `load` does not
    storage_alignment=64,  # the data of each storage begin at a multiple of that many bytes
    inert=dict(use_pinned_memory_for_d2h=False),
)
loading = Settings(
    "torch.utils.serialization.config.load",
    mmap=False,  # whether files are mapped where a call of `load` does not say
    endianness=None,
    mmap_flags=MAP_PRIVATE,
    calculate_storage_offsets=False,  # where storages are is always read from the file: both values do the same
)
config = Settings("torch.utils.serialization.config")
config.__dict__.update(save=saving, load=loading)


class _Options(threading.local):
    skip_data: bool = False
    materialize_fake_tensors: bool = False


options = _Options()


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order assumed for files that do not say theirs; None means little."""
    return loading.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Choose that byte order."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    loading.endianness = endianness


def get_crc32_options() -> bool:
    """Whether checksums are asked for."""
    return saving.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Write files with checksums or not. Without, programs for zip files take them for damaged; `load` reads them."""
    saving.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int:
    """How `load(mmap=True)` maps files: MAP_PRIVATE (changes stay in memory) or MAP_SHARED (changes go to the file)."""
    return loading.mmap_flags


class _Restored:
    """A setting that was made at once and can also be used as a block, after which the old value is back."""

    def __init__(self, name: str, value: Any):
        self.name, self.before = name, getattr(loading, name)
        setattr(loading, name, value)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        setattr(loading, self.name, self.before)


def set_default_mmap_options(flags: int) -> _Restored:
    """Choose how files are mapped, from here on or inside a block."""
    if flags not in (MAP_PRIVATE, MAP_SHARED):
        raise ValueError(
            f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
        )
    return _Restored("mmap_flags", flags)


@contextmanager
def skip_data(materialize_fake_tensors: bool = False):
    """Inside, `save` leaves the places of storages in a file empty, to be filled later (`PyTorchFileReader.get_record_offset` says where
    they are), and `load` leaves their contents undefined. Fake tensors are written as real ones where that is asked for."""
    before = options.skip_data, options.materialize_fake_tensors
    options.skip_data, options.materialize_fake_tensors = True, materialize_fake_tensors
    try:
        yield
    finally:
        options.skip_data, options.materialize_fake_tensors = before
