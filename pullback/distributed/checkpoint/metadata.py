"""What a checkpoint says of itself: `torch.distributed.checkpoint.metadata`.

In: the entries of `.metadata` (see `storage`). Out: `Metadata`, by name: the size, dtype and chunks of tensors, and which
names are objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...core import dtype as dtypes
from ...core.size import Size


@dataclass
class TensorProperties:
    """What of a tensor is no shape."""

    dtype: Any = None


@dataclass(frozen=True)
class ChunkStorageMetadata:
    """A part of a tensor: where it begins and how large it is."""

    offsets: Size
    sizes: Size


@dataclass
class TensorStorageMetadata:
    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An object that is no tensor."""


@dataclass
class Metadata:
    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = None


def described(entries: dict[str, dict]) -> Metadata:
    """The entries of a checkpoint as `Metadata`; `storage_data` has the entries themselves."""
    return Metadata({name: _entry(entry) for name, entry in entries.items()}, storage_data=entries)


def _entry(entry: dict) -> TensorStorageMetadata | BytesStorageMetadata:
    if "chunks" not in entry:
        return BytesStorageMetadata()
    dtype = getattr(dtypes, entry["dtype"].removeprefix("torch."))
    chunks = [ChunkStorageMetadata(Size(chunk["offsets"]), Size(chunk["sizes"])) for chunk in entry["chunks"]]
    return TensorStorageMetadata(TensorProperties(dtype), Size(entry["shape"]), chunks)


__all__ = ["BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "TensorProperties", "TensorStorageMetadata"]
