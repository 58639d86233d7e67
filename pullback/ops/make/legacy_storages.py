"""`torch.FloatStorage`, ...: the names that typed storages of a dtype had. Calling one gives a `TypedStorage`."""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.storage import UntypedStorage
from .construct import TYPED, TypedStorage


class LegacyStorage(type):
    """`isinstance(storage, FloatStorage)` asks for the dtype."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, TypedStorage) and value.dtype is cls.dtype


def _legacy(d: dtypes.dtype) -> LegacyStorage:
    def __new__(cls, *args, wrap_storage: UntypedStorage | None = None, device=None):
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=d, device=device)

    def from_buffer(cls, buffer, offset: int = 0, count: int = -1):
        """A storage with a copy of the numbers in a buffer of bytes."""
        width = d.itemsize
        data = bytes(memoryview(buffer).cast("B"))[offset : None if count < 0 else offset + count * width]
        if len(data) % width:
            raise ValueError(f"_from_buffer: {len(data)} bytes are no whole number of elements of {d} ({width} bytes)")
        return TypedStorage(wrap_storage=UntypedStorage(data), dtype=d)

    names = {"__new__": __new__, "_from_buffer": classmethod(from_buffer), "dtype": d, "__module__": "torch"}
    return LegacyStorage(f"{d.scalar_name}Storage", (), names)


LEGACY_STORAGES = {f"{cls.dtype.scalar_name}Storage": _legacy(cls.dtype) for cls in TYPED.values()}
