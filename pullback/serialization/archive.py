"""PyTorch's file format: a zip archive of uncompressed records under one folder.

A writer puts each record's data at a multiple of 64 bytes, so that files can be mapped into memory. A reader finds
records by name, checks their checksums where they have some, and says clearly when a file is damaged.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

ALIGNMENT = 64
_LOCAL_HEADER = 30  # bytes before the name in a zip entry
_ZIP64_EXTRA = 20
_MAX_VERSION = 10
_MAX_ALIGNMENT = 65536 - 64  # a field of a zip entry ends there
_CORRUPTED = (
    "If you are seeing this error, there is a high likelihood that your checkpoint file is corrupted. This can happen if "
    "the checkpoint was not saved properly, was transferred incorrectly, or the file was modified after saving."
)


def _damaged(what: str) -> RuntimeError:
    return RuntimeError(f"PytorchStreamReader failed {what}. {_CORRUPTED}")


class _Sink:
    """A file of which nothing is known but that it takes bytes."""

    def __init__(self, file: Any):
        self.write = file.write

    def flush(self) -> None:
        """Nothing is held back here."""


class ArchiveWriter:
    """Writes records into a binary file that need not be seekable."""

    def __init__(self, file: IO[bytes], folder: str, alignment: int = ALIGNMENT):
        if not 0 < alignment <= _MAX_ALIGNMENT:
            raise ValueError(f"storage_alignment must be between 1 and {_MAX_ALIGNMENT} bytes, but got {alignment}")
        self.alignment = alignment
        whole = all(hasattr(file, name) for name in ("tell", "seek", "flush"))
        self.zip = zipfile.ZipFile(file if whole else _Sink(file), "w", zipfile.ZIP_STORED)  # type: ignore[call-overload]
        # As PyTorch's files have it: sizes and checksum stand behind a record, not in front, whatever the file can do. Its readers may
        # count on where records are then.
        self.zip._seekable = False  # type: ignore[attr-defined]
        self.folder = folder

    def write(self, name: str, data: Any, checksum: bool = True) -> None:
        """One record from bytes or a contiguous array of bytes; without a checksum, its bytes may change later."""
        data = memoryview(data)
        entry = zipfile.ZipInfo(f"{self.folder}/{name}", (1980, 1, 1, 0, 0, 0))
        entry.file_size = data.nbytes
        entry.extra = self._padding(entry)
        with self.zip.open(entry, "w") as record:
            record.write(data)
            if not checksum:
                record._crc = 0  # type: ignore[attr-defined]  # what is written for none

    def _padding(self, entry: zipfile.ZipInfo) -> bytes:
        """A field without meaning that brings the data to a multiple of the alignment."""
        large = _ZIP64_EXTRA if entry.file_size * 1.05 > zipfile.ZIP64_LIMIT else 0
        start = self.zip.start_dir + _LOCAL_HEADER + len(entry.filename.encode()) + large + 4
        length = -start % self.alignment
        return struct.pack("<2sH", b"FB", length) + b"Z" * length

    def close(self) -> None:
        self.zip.close()


class ArchiveReader:
    """Reads records of a seekable binary file; with a path, maps them instead."""

    def __init__(self, file: IO[bytes], mapped: np.ndarray | None = None):
        self.file, self.mapped = file, mapped
        self.start = file.tell()
        try:
            self.zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, OSError, struct.error) as error:
            raise _damaged(f"reading zip archive: failed finding central directory ({error})") from error
        names = self.zip.namelist()
        if not names:
            raise _damaged("reading zip archive: there are no records")
        self.folder = names[0].partition("/")[0]
        self.entries = {entry.filename.partition("/")[2]: entry for entry in self.zip.infolist()}
        self._check_version()

    def _check_version(self) -> None:
        record = next((n for n in ("version", ".data/version") if n in self), None)
        if record is None:
            raise _damaged("locating file version: file not found")
        text = self.read(record).strip()
        if not text.isdigit():
            raise _damaged(f"reading the version: {text!r} is not a number")
        if int(text) > _MAX_VERSION:
            raise RuntimeError(
                f"Attempted to read a PyTorch file with version {int(text)}, but the maximum supported version for reading "
                f"is {_MAX_VERSION}. The version of your PyTorch installation may be too old, please upgrade PyTorch to "
                "latest version to mitigate this issue."
            )

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def size(self, name: str) -> int:
        return self._entry(name).file_size

    def _entry(self, name: str) -> zipfile.ZipInfo:
        entry = self.entries.get(name)
        if entry is None:
            raise _damaged(f"locating file {name}: file not found")
        return entry

    def read(self, name: str) -> bytes:
        """A record's bytes."""
        return self.read_array(name).tobytes()

    def read_array(self, name: str) -> np.ndarray:
        """A record's bytes in memory of their own."""
        entry = self._entry(name)
        if entry.compress_type != zipfile.ZIP_STORED:
            return self._inflate(entry)
        self.file.seek(self._data_offset(entry))
        data = _read_exactly(self.file, entry.file_size, name)
        if entry.CRC and zlib.crc32(data.data) != entry.CRC:  # 0: none was computed, or the data were filled in later
            raise _damaged(f"reading file {name}: crc32 check failed")
        return data

    def _inflate(self, entry: zipfile.ZipInfo) -> np.ndarray:
        try:
            return np.frombuffer(bytearray(self.zip.read(entry)), np.uint8)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise _damaged(f"reading file {entry.filename}: {error}") from error

    def map_array(self, name: str) -> np.ndarray:
        """A record's bytes in the mapped file."""
        entry = self._entry(name)
        if entry.compress_type != zipfile.ZIP_STORED:
            return self._inflate(entry)
        if self.mapped is None:
            raise RuntimeError(f"map_array({name!r}): the file of this archive is not mapped")
        start = self._data_offset(entry)
        part = self.mapped[start : start + entry.file_size]
        if part.size != entry.file_size:
            raise _damaged(f"reading file {name}: the file ends before it")
        return part if start % 16 == 0 else part.copy()  # kernels want aligned numbers

    def _data_offset(self, entry: zipfile.ZipInfo) -> int:
        """Where a record's data begin: names and padding stand before, in lengths of their own."""
        self.file.seek(entry.header_offset)
        header = self.file.read(_LOCAL_HEADER)
        if len(header) != _LOCAL_HEADER or header[:4] != b"PK\x03\x04":
            raise _damaged(f"reading file {entry.filename}: invalid header or archive is corrupted")
        name_length, extra_length = struct.unpack("<HH", header[26:30])
        return entry.header_offset + _LOCAL_HEADER + name_length + extra_length


def _read_exactly(file: IO[bytes], length: int, name: str) -> np.ndarray:
    """That many bytes, read in pieces so that a false length cannot ask for memory that no file backs."""
    if hasattr(file, "readinto") and length <= _remaining(file):
        data = np.empty(length, np.uint8)
        view, done = data.data, 0
        while done < length:
            n = file.readinto(view[done:])
            if not n:
                break
            done += n
    else:
        data = np.frombuffer(bytearray(file.read(min(length, _remaining(file)))), np.uint8)
        done = data.size
    if done != length:
        raise _damaged(f"reading file {name}: {length} bytes are wanted, {done} are there")
    return data


def _remaining(file: IO[bytes]) -> int:
    here = file.tell()
    end = file.seek(0, io.SEEK_END)
    end = file.tell() if end is None else end
    file.seek(here)
    return end - here


def map_file(path: str | os.PathLike, shared: bool) -> np.ndarray:
    """A file's bytes in memory; writes go to the file only where it is shared."""
    return np.memmap(path, np.uint8, "r+" if shared else "c").view(np.ndarray)


def is_archive(file: IO[bytes]) -> bool:
    """Whether a zip archive begins here."""
    here = file.tell()
    start = file.read(4)
    file.seek(here)
    return start == b"PK\x03\x04"


@contextmanager
def atomic_write(path: str | os.PathLike) -> Iterator[IO[bytes]]:
    """A file to write, which takes the place of `path` when all is written: a crash leaves the old file whole."""
    target = os.path.realpath(os.fspath(path))
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(os.fspath(path)) or '.'} does not exist.")
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as file:  # a device or a pipe cannot be replaced
            yield file
        return
    beside = os.path.join(folder, f".{os.path.basename(target)[:180]}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            os.chmod(beside, os.stat(target).st_mode & 0o7777)
        os.replace(beside, target)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise
