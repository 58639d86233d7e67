"""The formats before zip archives: one stream of pickles with raw storages after it, and the older tar.

The stream: a magic number, a protocol number, facts about the machine, the value, the keys of its storages, and for each
a count of elements and their bytes. The tar has the storages, the tensors and the value as three files.
"""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from ..core import device as devices
from ..core import dtype as dtypes
from ..core.storage import Storage, UntypedStorage
from ..core.tensor import Tensor
from ..ops.make.storages import TypedStorage
from .pickling import StorageTable, dump, load_trusted
from .storage_types import dtype_of
from .storages import read_entry, restorer
from .tensors import rebuild_tensor
from .weights_only import load_safe

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
_SYS_INFO = {
    "protocol_version": PROTOCOL_VERSION,
    "little_endian": True,
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


def _truncated(what: str) -> RuntimeError:
    return RuntimeError(f"unexpected EOF, expected {what}. The file might be corrupted.")


def _text(key: Any) -> str:
    return key.decode("ascii", "replace") if isinstance(key, bytes) else str(key)


# ---- the stream
def save_stream(value: Any, file: IO[bytes], pickle_module: Any, protocol: int) -> None:
    """Write the old stream."""
    table = StorageTable()
    for head in (MAGIC_NUMBER, PROTOCOL_VERSION, _SYS_INFO):
        pickle_module.dump(head, file, protocol=protocol)
    dump(value, file, lambda storage: (*table.entry(storage), None), pickle_module, protocol)
    pickle_module.dump(list(table.keys.values()), file, protocol=protocol)
    for memory in table.keys:
        file.write(struct.pack("<q", memory.length // table.dtypes[memory].itemsize))
        file.write(memory.buffer.tobytes() if memory.buffer is not None else b"")


class _Stream:
    """The storages of a stream: made empty when the value mentions them, filled from what follows it."""

    def __init__(self, restore: Callable[[Any, str], Any]):
        self.restore = restore
        self.storages: dict[str, tuple[UntypedStorage, dtypes.dtype, str]] = {}
        self.placed: dict[str, Any] = {}
        self.views: dict[str, Any] = {}

    def persistent(self, entry: Any) -> Any:
        kind, key, location, count = read_entry(entry)
        dtype = dtype_of(kind) or dtypes.uint8
        if key not in self.storages:
            self.storages[key] = self._empty(dtype, count), dtype, location
            self.placed[key] = self.restore(self.storages[key][0], location)
        view = entry[5] if len(entry) > 5 else None  # storages inside others, in files before 0.4
        face = self.placed[key] if view is None else self._part(key, view, dtype)
        return face if kind is UntypedStorage else TypedStorage(wrap_storage=face, dtype=dtype)

    def _empty(self, dtype: dtypes.dtype, count: int) -> UntypedStorage:
        """Memory is reserved, not touched: what the file does not back is never read."""
        nbytes = count * dtype.itemsize
        return UntypedStorage.of(Storage(np.zeros(nbytes, np.uint8), nbytes, devices.cpu))

    def _part(self, key: str, view: tuple, dtype: dtypes.dtype) -> UntypedStorage:
        name, offset, count = view
        if name not in self.views:
            memory = self.placed[key]._storage
            size = dtype.itemsize
            part = memory.buffer[offset * size : (offset + count) * size]
            self.views[name] = UntypedStorage.of(Storage(part, part.size, memory.device))
        return self.views[name]

    def fill(self, file: IO[bytes], keys: list) -> None:
        for key in map(_text, keys):
            if key not in self.storages:
                raise RuntimeError(f"the file has data for a storage {key!r} that nothing in it mentions")
            face, dtype, _ = self.storages[key]
            head = file.read(8)
            if len(head) != 8:
                raise _truncated(f"the size of storage {key}")
            count = struct.unpack("<q", head)[0]
            if count * dtype.itemsize != face.nbytes():
                raise RuntimeError(
                    f"storage {key} has wrong byte size: expected {face.nbytes()} got {count * dtype.itemsize}"
                )
            done = _read_into(file, face._storage.buffer)
            if done != face.nbytes():
                raise _truncated(f"{face.nbytes() - done} more bytes of storage {key}")


def _read_into(file: IO[bytes], buffer: Any) -> int:
    """Fill memory from a file, without a copy where the file can; how many bytes there were."""
    if not hasattr(file, "readinto") or not isinstance(buffer, np.ndarray):
        data = file.read(buffer.size)
        buffer[: len(data)] = np.frombuffer(data, np.uint8)
        return len(data)
    view, done = buffer.data, 0
    while done < buffer.size and (n := file.readinto(view[done:])):
        done += n
    return done


def load_stream(file: IO[bytes], restore: Callable, pickle_module: Any, weights_only: bool, options: dict) -> Any:
    """Read the old stream."""
    stream = _Stream(restore)

    def part(persistent: Callable[[Any], Any]) -> Any:
        if weights_only:
            return load_safe(file, persistent, options.get("encoding", "bytes"))
        try:
            return load_trusted(file, persistent, pickle_module, **options)
        except EOFError as error:
            raise _truncated("a pickle") from error

    nothing = stream.persistent
    if part(nothing) != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = part(nothing)
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    part(nothing)
    value = part(stream.persistent)
    keys = part(nothing)
    if not isinstance(keys, list):
        raise RuntimeError("the file's list of storages is damaged")
    stream.fill(file, keys)
    return value


# ---- the tar
def is_tar(file: IO[bytes]) -> bool:
    """Whether the oldest format begins here."""
    here = file.tell()
    head = file.read(512)
    file.seek(here)
    return head[257:262] == b"ustar"


def load_tar(file: IO[bytes], restore: Callable, pickle_module: Any, options: dict) -> Any:
    """Read the oldest format: its pickles are trusted."""
    with tarfile.open(fileobj=file, mode="r:", format=tarfile.PAX_FORMAT) as tar:
        part = lambda name: io.BytesIO(_member(tar, name))
        objects = _tar_storages(part("storages"), restore, pickle_module)
        objects.update(_tar_tensors(part("tensors"), objects, pickle_module))
        persistent = lambda entry: entry[0] if isinstance(entry, tuple) else objects[int(entry)]
        return load_trusted(part("pickle"), persistent, pickle_module, **options)


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    for known in (name, f"./{name}"):
        if known in tar.getnames():
            member = tar.extractfile(known)
            if member is not None:
                return member.read()
    raise RuntimeError(f"the tar file has no member {name!r}; corrupt file?")


def _unreferred(entry: Any) -> Any:
    raise RuntimeError(f"unexpected reference {entry!r} in the file")


def _tar_storages(file: IO[bytes], restore: Callable, pickle_module: Any) -> dict[int, Any]:
    """Storages by key; a view of a storage is given by root, offset and size."""
    objects: dict[int, Any] = {}
    for _ in range(load_trusted(file, _unreferred, pickle_module)):
        key, location, kind = load_trusted(file, _unreferred, pickle_module)
        dtype = dtype_of(kind) or dtypes.uint8
        count = struct.unpack("<q", file.read(8))[0]
        data = np.frombuffer(bytearray(file.read(count * dtype.itemsize)), np.uint8)
        if data.size != count * dtype.itemsize:
            raise _truncated(f"{count} elements of a storage")
        face = restore(UntypedStorage.of(Storage(data, data.size, devices.cpu)), location)
        objects[key] = TypedStorage(wrap_storage=face, dtype=dtype)
    for target, root, offset, count in load_trusted(file, _unreferred, pickle_module):
        whole = objects[root]
        size = whole.dtype.itemsize
        part = whole.untyped()._storage.buffer[offset * size : (offset + count) * size]
        face = UntypedStorage.of(Storage(part, part.size, whole.device))
        objects[target] = TypedStorage(wrap_storage=face, dtype=whole.dtype)
    return objects


def _tar_tensors(file: IO[bytes], objects: dict[int, Any], pickle_module: Any) -> dict[int, Tensor]:
    """Tensors by key: dimensions, sizes, strides and offset over a storage."""
    result: dict[int, Tensor] = {}
    for _ in range(load_trusted(file, _unreferred, pickle_module)):
        key, storage, _ = load_trusted(file, _unreferred, pickle_module)
        dims = struct.unpack("<i", file.read(4))[0]
        file.read(4)
        size = struct.unpack(f"<{dims}q", file.read(8 * dims))
        stride = struct.unpack(f"<{dims}q", file.read(8 * dims))
        offset = struct.unpack("<q", file.read(8))[0]
        result[key] = rebuild_tensor(objects[storage], offset, size, stride)
    return result


def load_from_bytes(data: bytes) -> Any:
    """A storage inside a plain pickle of PyTorch: a file of the old format."""
    return load_stream(io.BytesIO(data), restorer(None), pickle, True, {})
