"""A checkpoint on disk: a folder with a file of each rank's parts and one that says what is where.

`.metadata` (JSON) holds, by name: for a tensor its shape, dtype and chunks (file, key, offsets, sizes); for an object the
file that has it. It is written last, under another name first: a folder without it is no checkpoint.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ...serialization import load as load_file
from ...serialization import save as save_file
from .metadata import Metadata, described

METADATA = ".metadata"


class CheckpointException(RuntimeError):
    """A checkpoint that cannot be read or written."""


class StorageWriter:
    """The base of what writes checkpoints."""


class StorageReader:
    """The base of what reads checkpoints."""


class FileSystemWriter(StorageWriter):
    """Writes a checkpoint into a folder."""

    def __init__(self, path: str | os.PathLike, **options: Any):
        self.path = os.fspath(path)

    def write_parts(self, rank: int, parts: dict[str, Any]) -> str:
        """Write one rank's parts; gives the file's name."""
        os.makedirs(self.path, exist_ok=True)
        name = f"__{rank}_0.distcp"
        save_file(parts, os.path.join(self.path, name + ".part"))
        os.replace(os.path.join(self.path, name + ".part"), os.path.join(self.path, name))
        return name

    def write_metadata(self, entries: dict) -> None:
        path = os.path.join(self.path, METADATA)
        with open(path + ".part", "w") as file:
            json.dump({"version": 1, "entries": entries}, file)
        os.replace(path + ".part", path)


class FileSystemReader(StorageReader):
    """Reads a checkpoint from a folder. Files are opened when something of them is wanted, and once."""

    def __init__(self, path: str | os.PathLike, **options: Any):
        self.path = os.fspath(path)
        self._files: dict[str, dict] = {}

    def read_metadata(self) -> Metadata:
        return described(self.read_entries())

    def read_entries(self) -> dict[str, dict]:
        try:
            with open(os.path.join(self.path, METADATA)) as file:
                return json.load(file)["entries"]
        except FileNotFoundError as e:
            raise CheckpointException(f"{self.path!r} is no checkpoint: it has no {METADATA}") from e

    def read(self, file: str, key: str) -> Any:
        if file not in self._files:
            self._files[file] = load_file(os.path.join(self.path, file), weights_only=False)
        return self._files[file][key]
