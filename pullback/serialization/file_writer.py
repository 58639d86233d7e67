"""PyTorch's files written record by record (`torch._C.PyTorchFileWriter`), for programs that make parts of them."""

from __future__ import annotations

import os
from typing import IO, Any

import numpy as np

from ..core.arrays import to_host
from ..core.storage import UntypedStorage
from ..ops.make.storages import TypedStorage
from .archive import ALIGNMENT, ArchiveWriter
from .options import saving

__all__ = ["PyTorchFileWriter"]


class PyTorchFileWriter:
    """A file that `torch.load` and `PyTorchFileReader` read: records by name, in the order in which they are written."""

    def __init__(
        self, file: str | os.PathLike | IO[bytes], compute_crc32: bool | None = None, storage_alignment: int = ALIGNMENT
    ):
        is_path = isinstance(file, (str, os.PathLike))
        self._name = os.path.splitext(os.path.basename(os.fspath(file)))[0] if is_path else "archive"  # type: ignore[arg-type]
        self._own: IO[bytes] | None = open(file, "wb") if is_path else None  # type: ignore[arg-type]  # noqa: SIM115 - closed at the end
        self._checked = saving.compute_crc32 if compute_crc32 is None else compute_crc32
        self._archive = ArchiveWriter(self._own or file, self._name or "archive", storage_alignment)  # type: ignore[arg-type]
        self._written: list[str] = []
        self._ended = False

    def archive_name(self) -> str:
        """The folder that holds all records."""
        return self._archive.folder

    def write_record(self, name: str, data: Any, size: int) -> None:
        """A record of the first `size` bytes of a text, of bytes, or of a storage."""
        self._write(name, memoryview(_bytes_of(data))[:size], self._checked)

    def write_record_metadata(self, name: str, size: int) -> None:
        """A record of `size` bytes that are filled in later: it has no checksum."""
        self._write(name, np.zeros(size, np.uint8), False)

    def _write(self, name: str, data: Any, checked: bool) -> None:
        if self._ended:
            raise RuntimeError(
                f"PytorchStreamWriter failed writing file {name}: the end of the file was written already"
            )
        if name in self._written:
            raise RuntimeError(f"Tried to serialize file twice: {name}")
        self._written.append(name)
        self._archive.write(name, data, checked)

    def get_all_written_records(self) -> list[str]:
        """The names of the records so far."""
        return list(self._written)

    def write_end_of_file(self) -> None:
        """The records that every file has, and the list of all."""
        if self._ended:
            return
        for name, data in (("version", b"3\n"), (".data/serialization_id", os.urandom(8).hex().encode())):
            if name not in self._written:
                self._write(name, data, self._checked)
        self._ended = True
        self._archive.close()
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> PyTorchFileWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.write_end_of_file()


def _bytes_of(data: Any) -> Any:
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, (UntypedStorage, TypedStorage)):
        face = data if isinstance(data, UntypedStorage) else data.untyped()
        return np.ascontiguousarray(to_host(face._storage.buffer[: face._storage.length]))
    return data
