"""The types of storages in files: a name such as `FloatStorage` stands for a dtype; newer dtypes have untyped storages."""

from __future__ import annotations

from typing import Any

from ..core import dtype as dtypes
from ..core.storage import UntypedStorage


class StorageType:
    """The name of a typed storage (`FloatStorage`), which stands for a dtype in files."""

    def __init__(self, name: str):
        self.dtype: dtypes.dtype = _BY_NAME[name]
        self.__name__ = self.__qualname__ = name
        self.__module__ = "torch"

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


_UNTYPED = ("UInt16", "UInt32", "UInt64", "Float8", "ComplexHalf")
_BY_NAME = {f"{d.scalar_name}Storage": d for d in dtypes.ALL if not d.scalar_name.startswith(_UNTYPED)}
STORAGE_TYPES = {name: StorageType(name) for name in _BY_NAME}
_TYPE_OF = {kind.dtype: kind for kind in STORAGE_TYPES.values()}


def storage_type(dtype: dtypes.dtype) -> StorageType | None:
    """The typed storage of a dtype; None for the newer dtypes, whose storages have no type."""
    return _TYPE_OF.get(dtype)


def dtype_of(kind: Any) -> dtypes.dtype | None:
    """The dtype for a storage's type in a file; None for an untyped one."""
    if kind is UntypedStorage:
        return None
    found = getattr(kind, "dtype", None)
    if not isinstance(found, dtypes.dtype):
        raise RuntimeError(f"expected a storage type in the file, but got {kind!r}")
    return found
