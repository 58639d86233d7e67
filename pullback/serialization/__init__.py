"""Files: `save` and `load` in PyTorch's format, and what belongs to them; `serialization.safetensors` beside them."""

from __future__ import annotations

import tempfile
from typing import Any

from .allowed import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from .files import DEFAULT_PROTOCOL, FILE_LIKE, FileLike, get_unsafe_globals_in_checkpoint, load, save
from .legacy import MAGIC_NUMBER, PROTOCOL_VERSION
from .options import (
    MAP_PRIVATE,
    MAP_SHARED,
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from .storage_types import StorageType
from .storages import (
    default_restore_location,
    location_tag,
    normalize_storage_type,
    register_package,
    storage_to_tensor_type,
    validate_cuda_device,
    validate_hpu_device,
)

mkdtemp = tempfile.TemporaryDirectory


class SourceChangeWarning(Warning):
    """The class of a loaded object has changed since it was saved."""


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple, error_if_malformed: bool = True
) -> bool:
    """Whether a module's version is at least the one asked for."""
    try:
        found = tuple(
            type(req)(part) for req, part in zip(req_version_tuple, module.__version__.split("."), strict=False)
        )
    except ValueError as error:
        if error_if_malformed:
            raise RuntimeError(
                f"'{module.__name__}' module version string is malformed '{module.__version__}'"
            ) from error
        return True
    return found >= req_version_tuple


__all__ = [
    "DEFAULT_PROTOCOL", "FILE_LIKE", "FileLike", "LoadEndianness", "MAGIC_NUMBER", "MAP_PRIVATE", "MAP_SHARED",
    "PROTOCOL_VERSION", "SourceChangeWarning", "StorageType", "add_safe_globals", "check_module_version_greater_or_equal",
    "clear_safe_globals", "default_restore_location", "get_crc32_options", "get_default_load_endianness",
    "get_default_mmap_options", "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load", "location_tag", "mkdtemp",
    "normalize_storage_type", "register_package", "safe_globals", "save", "set_crc32_options",
    "set_default_load_endianness", "set_default_mmap_options", "skip_data", "storage_to_tensor_type",
    "validate_cuda_device", "validate_hpu_device",
]  # fmt: skip
