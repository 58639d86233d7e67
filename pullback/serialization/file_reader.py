"""The records of PyTorch's files one by one (`torch.PyTorchFileReader`), for programs that load parts of them."""

from __future__ import annotations

import os
from typing import IO, Any

from ..core import device as devices
from ..core import dtype as dtypes
from ..core.storage import Storage, UntypedStorage
from ..core.tensor import Tensor
from ..ops.make.construct import on_storage
from .archive import ArchiveReader

__all__ = ["PyTorchFileReader"]


class PyTorchFileReader:
    """A file that `torch.save` wrote: its records by name, without the folder that holds them all."""

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

    def serialization_id(self) -> str:
        name = ".data/serialization_id"
        return self._archive.read(name).decode() if name in self._archive else ""
