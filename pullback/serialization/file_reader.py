"""The records of PyTorch's files one by one (`torch.PyTorchFileReader`), for programs that load parts of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from ..core import device as devices
from ..core import dtype as dtypes
from ..core.storage import Storage, UntypedStorage
from ..core.tensor import Tensor
from ..ops.make.construct import on_storage
from .archive import ArchiveReader

__all__ = ["PyTorchFileReader", "open_file_like", "starts_archive"]


class PyTorchFileReader:
    """A file that `torch.save` wrote: its records by name, without the folder that holds them all.

    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save(torch.ones(2), file)
    >>> position = file.seek(0)
    >>> "data.pkl" in torch.PyTorchFileReader(file).get_all_records()
    True
    """

    def __init__(self, name_or_buffer: str | os.PathLike | IO[bytes]):
        is_path = isinstance(name_or_buffer, (str, os.PathLike))
        self._file: IO[bytes] = open(name_or_buffer, "rb") if is_path else name_or_buffer  # type: ignore[arg-type, assignment]  # noqa: SIM115 - the reader keeps it
        self._archive = ArchiveReader(self._file)

    def get_all_records(self) -> list[str]:
        return list(self._archive.entries)

    def has_record(self, name: str) -> bool:
        return name in self._archive

    def get_record(self, name: str) -> bytes:
        return self._archive.read(name)

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Tensor:
        """`numel` elements of a record as a tensor; a dtype that is none (`UntypedStorage`) stands for bytes."""
        kind = dtype if isinstance(dtype, dtypes.dtype) else dtypes.uint8
        data = self._archive.read_array(name)
        if data.size != numel * kind.itemsize:
            raise RuntimeError(
                f"get_storage_from_record: {name} has {data.size} bytes, but {numel} elements of {kind} were asked for"
            )
        memory = UntypedStorage.of(Storage(data, data.size, devices.cpu, True))
        return on_storage(memory._storage, kind)

    def get_record_offset(self, name: str) -> int:
        """Where the data of a record begin in the file."""
        return self._archive._data_offset(self._archive._entry(name))

    def __enter__(self) -> PyTorchFileReader:
        return self

    def __exit__(self, *exc) -> None:
        """The file stays open: whoever opened it closes it."""

    def serialization_id(self) -> str:
        name = ".data/serialization_id"
        return self._archive.read(name).decode() if name in self._archive else ""


@contextmanager
def open_file_like(name_or_buffer: str | os.PathLike | IO[bytes], mode: str) -> Iterator[IO[bytes]]:
    """A file by its name, closed in the end, or one that is open already, which stays so."""
    if isinstance(name_or_buffer, (str, os.PathLike)):
        with open(name_or_buffer, mode) as file:
            yield file
    else:
        yield name_or_buffer


def starts_archive(file: IO[bytes]) -> bool:
    """Whether an archive begins where a file is read next."""
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    return head == b"PK\x03\x04"
