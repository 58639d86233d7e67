"""`save` and `load`: values with tensors, to and from files that PyTorch reads and writes.

    save(model.state_dict(), "model.pt")
    model.load_state_dict(load("model.pt"))

A file given by its path is replaced only when the new one is whole. `load` makes tensors and plain containers only,
unless `weights_only=False` says that the file is trusted to run code.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, TypeGuard

import numpy as np

from ..core import device as devices
from ..core import dtype as dtypes
from ..core.arrays import to_host
from ..core.storage import Storage, UntypedStorage
from ..core.tensor import Tensor
from ..ops.make.storages import TypedStorage
from . import legacy
from .allowed import by_default, by_user
from .archive import ArchiveReader, ArchiveWriter, atomic_write, is_archive, map_file
from .legacy import load_from_bytes  # noqa: F401 - plain pickles name it as part of this module
from .options import MAP_SHARED, LoadEndianness, loading, options, saving
from .pickling import StorageTable, dump, load_trusted
from .safetensors import load_file
from .storage_types import dtype_of
from .storages import goes_to_meta, read_entry, restorer
from .tensors import active_fake_mode
from .weights_only import globals_in, load_safe

DEFAULT_PROTOCOL = 2
FileLike = str | os.PathLike | IO[bytes]
FILE_LIKE = FileLike


def _is_path(f: Any) -> TypeGuard[str | os.PathLike]:
    return isinstance(f, (str, os.PathLike))


# ---- save
def save(
    obj: object,
    f: FileLike,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write a value to a path or a binary file.

    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.ones(2)}, file)
    >>> position = file.seek(0)
    >>> torch.load(file)
    {'w': tensor([1., 1.])}
    """
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    with _opened_to_write(f) as file:
        if _use_new_zipfile_serialization:
            folder = os.path.splitext(os.path.basename(os.fspath(f)))[0] if _is_path(f) else "archive"
            _save_archive(obj, file, folder or "archive", pickle_module, pickle_protocol, _disable_byteorder_record)
        else:
            legacy.save_stream(obj, file, pickle_module, pickle_protocol)


@contextmanager
def _opened_to_write(f: Any) -> Iterator[IO[bytes]]:
    if not _is_path(f):
        yield f
        if hasattr(f, "flush"):
            f.flush()
        return
    with atomic_write(f) as file:
        yield file


def _save_archive(value: Any, file: Any, folder: str, pickle_module: Any, protocol: int, no_byteorder: bool) -> None:
    """The pickle first: a value that cannot be pickled leaves nothing behind it."""
    table, text = StorageTable(), io.BytesIO()
    dump(value, text, table.entry, pickle_module, protocol)
    checked = saving.compute_crc32
    archive = ArchiveWriter(file, folder, saving.storage_alignment)
    archive.write("data.pkl", text.getbuffer(), checked)
    archive.write(".format_version", b"1", checked)
    archive.write(".storage_alignment", str(archive.alignment).encode(), checked)
    if not no_byteorder:
        archive.write("byteorder", sys.byteorder.encode(), checked)
    for memory, key in table.keys.items():
        archive.write(f"data/{key}", _bytes_of(memory), checked and not options.skip_data)
    archive.write("version", b"3\n", checked)
    archive.write(".data/serialization_id", os.urandom(8).hex().encode(), checked)
    archive.close()


def _bytes_of(memory: Storage) -> Any:
    if options.skip_data:
        return np.zeros(memory.length, np.uint8)
    if memory.buffer is None:
        return b""
    return np.ascontiguousarray(to_host(memory.buffer[: memory.length]))


# ---- load
def load(
    f: FileLike,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read a value from a path or a seekable binary file.

    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.ones(2)}, file)
    >>> position = file.seek(0)
    >>> torch.load(file)
    {'w': tensor([1., 1.])}
    """
    weights_only = _is_safe(weights_only, pickle_module)
    mmap = loading.mmap and _is_path(f) if mmap is None else mmap
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if mmap and not _is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    pickle_module = pickle_module or pickle
    if not weights_only:
        pickle_load_args.setdefault("encoding", "utf-8")
    if _is_path(f) and os.fspath(f).endswith(".safetensors"):
        return _load_safetensors(f, map_location)
    with _opened_to_read(f) as file:
        if is_archive(file):
            mapped = map_file(f, loading.mmap_flags == MAP_SHARED) if mmap else None  # type: ignore[arg-type]
            return _load_archive(
                ArchiveReader(file, mapped), map_location, pickle_module, weights_only, pickle_load_args
            )
        if mmap:
            raise RuntimeError(
                f"mmap can only be used with files saved with `torch.save({f}, _use_new_zipfile_serialization=True), please "
                "torch.save your checkpoint with this option in order to use mmap."
            )
        return _load_older(file, map_location, pickle_module, weights_only, pickle_load_args)


def _load_safetensors(f: str | os.PathLike, map_location: Any) -> dict[str, Tensor]:
    """The tensors of a file in the format of `safetensors`, on the device asked for."""
    for kind, told in (("dict", isinstance(map_location, dict)), ("callable", callable(map_location))):
        if told:
            raise RuntimeError(
                f"Loading safetensors file with {kind} map_location is not supported. Use a device string or torch.device instead."
            )
    return load_file(f, "cpu" if map_location is None else map_location)


def _is_safe(weights_only: bool | None, pickle_module: Any) -> bool:
    """Whether to read safely: what the call says, then what the environment says, then yes."""
    forced = {name: os.environ.get(name, "0").lower() in ("1", "y", "yes", "true") for name in _ENVIRONMENT}
    if all(forced.values()):
        raise RuntimeError(
            f"Only one of {' or '.join(f'`{name}`' for name in _ENVIRONMENT)} should be set, but both were set."
        )
    if forced[_ENVIRONMENT[0]]:
        return True
    if weights_only is None:
        if forced[_ENVIRONMENT[1]]:
            warnings.warn(
                f"Environment variable {_ENVIRONMENT[1]} detected, since the`weights_only` argument was not explicitly passed to `torch.load`, "
                "forcing weights_only=False.",
                UserWarning,
                stacklevel=3,
            )
            return False
        return pickle_module is None
    return bool(weights_only)


_ENVIRONMENT = ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")


@contextmanager
def _opened_to_read(f: Any) -> Iterator[IO[bytes]]:
    if _is_path(f):
        with open(f, "rb") as file:
            yield file
        return
    for need in ("seek", "tell", "read"):
        if not hasattr(f, need):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{need}'. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )
    yield f


def _load_archive(
    archive: ArchiveReader, map_location: Any, pickle_module: Any, weights_only: bool, given: dict
) -> Any:
    if "constants.pkl" in archive:
        raise RuntimeError("the file is a TorchScript archive: it is code, not weights, and cannot be loaded")
    storages = _ArchiveStorages(archive, map_location)
    text = io.BytesIO(archive.read("data.pkl"))
    if weights_only:
        return load_safe(text, storages.persistent, given.get("encoding", "bytes"))
    return load_trusted(text, storages.persistent, pickle_module, **given)


class _ArchiveStorages:
    """The storages of an archive, read when the pickle mentions them, once each."""

    def __init__(self, archive: ArchiveReader, map_location: Any):
        self.archive, self.restore = archive, restorer(map_location)
        self.no_data = goes_to_meta(map_location) or options.skip_data or active_fake_mode() is not None
        self.swapped = _byte_order(archive) != sys.byteorder
        self.storages: dict[str, Any] = {}

    def persistent(self, entry: Any) -> Any:
        kind, key, location, count = read_entry(entry)
        dtype = dtype_of(kind) or dtypes.uint8
        if key not in self.storages:
            self.storages[key] = self._make(key, dtype, location, count)
        face = self.storages[key]
        return face if kind is UntypedStorage else TypedStorage(wrap_storage=face, dtype=dtype)

    def _make(self, key: str, dtype: dtypes.dtype, location: str, count: int) -> Any:
        if location == "meta":
            return UntypedStorage.of(Storage(None, count * dtype.itemsize, devices.meta))
        name, expected = f"data/{key}", count * dtype.itemsize
        size = self.archive.size(name)
        if size != expected:
            raise RuntimeError(
                f"record size ({size} bytes) does not match expected size ({expected} bytes = {count} elements * "
                f"{dtype.itemsize} bytes/element) for dtype {dtype.scalar_name}"
            )
        data = self._data(name, size)
        if self.swapped and dtype.itemsize > 1:
            word = dtype.to_real().itemsize  # a complex number is two words
            data = data.view(f"u{word}").byteswap().view(np.uint8)
        result = self.restore(
            UntypedStorage.of(Storage(data, size, devices.cpu, self.archive.mapped is None)), location
        )
        if self.no_data:  # where in the file its bytes are, for who reads them later
            result._checkpoint_offset = self.archive._data_offset(self.archive._entry(name))
        return result

    def _data(self, name: str, size: int) -> np.ndarray:
        if self.no_data:
            return np.empty(size, np.uint8)
        return self.archive.read_array(name) if self.archive.mapped is None else self.archive.map_array(name)


def _byte_order(archive: ArchiveReader) -> str:
    if "byteorder" in archive:
        said = archive.read("byteorder").decode()
        if said not in ("little", "big"):
            raise ValueError(f"Unknown endianness type: {said}")
        return said
    assumed = loading.endianness or LoadEndianness.LITTLE
    return sys.byteorder if assumed is LoadEndianness.NATIVE else assumed.name.lower()


def _load_older(file: IO[bytes], map_location: Any, pickle_module: Any, weights_only: bool, given: dict) -> Any:
    here = file.tell()
    if not file.read(1):
        raise EOFError("Ran out of input")
    file.seek(here)
    restore: Callable[[Any, str], Any] = restorer(map_location)
    if legacy.is_tar(file):
        if weights_only:
            raise RuntimeError(
                "Cannot use ``weights_only=True`` with files saved in the legacy .tar format. In PyTorch 2.6, we changed the "
                "default value of the `weights_only` argument in `torch.load` from `False` to `True`. Re-running "
                "`torch.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code "
                "execution. Do it only if you got the file from a trusted source."
            )
        return legacy.load_tar(file, restore, pickle_module, given)
    return legacy.load_stream(file, restore, pickle_module, weights_only, given)


def get_unsafe_globals_in_checkpoint(f: FileLike) -> list[str]:
    """Names in a file that the safe loader does not allow now; nothing of the file is run."""
    with _opened_to_read(f) as file:
        if not is_archive(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        found = globals_in(ArchiveReader(file).read("data.pkl"))
    return sorted(found - by_default().keys() - by_user().keys())
