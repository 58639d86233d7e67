"""Saving: every rank writes its parts, the first what they have in common."""

from __future__ import annotations

import copy
import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ...core.tensor import Tensor
from ..collectives import barrier
from ..groups import get_rank, get_world_size, is_initialized
from ..objects import all_gather_object
from .entries import flattened, is_writer, part
from .metadata import Metadata, described
from .planner import DefaultSavePlanner, checked
from .storage import FileSystemWriter


def save(
    state_dict: dict, *, checkpoint_id: str | os.PathLike | None = None, storage_writer: FileSystemWriter | None = None,
    planner: Any = None, process_group: Any = None, no_dist: bool = False,
) -> Metadata:  # fmt: skip
    """Save nested state; tensors that are spread over ranks are written in their parts. Gives the metadata."""
    checked(planner, DefaultSavePlanner, "checkpoint.save")
    writer = _writer(checkpoint_id, storage_writer)
    together = is_initialized() and not no_dist
    rank = get_rank(process_group) if together else 0
    parts, entries = _own(state_dict, rank)
    name = writer.write_parts(rank, parts) if parts else ""
    for entry in entries.values():
        for chunk in entry.get("chunks", [entry]):
            chunk["file"] = name
    every: list = [entries]
    if together:
        every = [None] * get_world_size(process_group)
        all_gather_object(every, entries, process_group)
    whole = _merged(every)
    if rank == 0:
        writer.write_metadata(whole)
    if together:
        barrier(process_group)
    return described(whole)


def async_save(
    state_dict: dict, *, checkpoint_id: str | os.PathLike | None = None, storage_writer: FileSystemWriter | None = None,
    planner: Any = None, process_group: Any = None,
) -> Future:  # fmt: skip
    """Copy the state, and write the copies while the program goes on; the future has what `save` returns. With several
    ranks it is written at once: messages of a second thread would come between those of the program."""
    checked(planner, DefaultSavePlanner, "checkpoint.async_save")
    writer = _writer(checkpoint_id, storage_writer)
    if is_initialized() and get_world_size(process_group) > 1:
        result: Future = Future()
        result.set_result(save(state_dict, storage_writer=writer, planner=planner, process_group=process_group))
        return result
    copies = {name: _copied(value) for name, (value, _, _) in flattened(state_dict).items()}
    writing = ThreadPoolExecutor(1)
    result = writing.submit(save, copies, storage_writer=writer, no_dist=True)
    writing.shutdown(wait=False)
    return result


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else copy.deepcopy(value)


def _writer(path: Any, writer: FileSystemWriter | None) -> FileSystemWriter:
    if writer is not None and not isinstance(writer, FileSystemWriter):
        raise NotImplementedError(
            f"checkpoint.save: storage_writer must be a FileSystemWriter, got {type(writer).__name__}"
        )
    if writer is None and path is None:
        raise ValueError("checkpoint.save: give checkpoint_id, the folder, or a storage_writer")
    return writer or FileSystemWriter(path)


def _own(state: dict, rank: int) -> tuple[dict[str, Any], dict[str, dict]]:
    """(what this rank writes, what it says of it)."""
    parts: dict[str, Any] = {}
    entries: dict[str, dict] = {}
    for name, (value, _, _) in flattened(state).items():
        if isinstance(value, Tensor):
            local, begin, sizes = part(value)
            entries[name] = {"shape": list(value.shape), "dtype": str(value.dtype), "chunks": []}
            if is_writer(value, rank) and (local.numel() or not value.numel()):
                parts[name] = local.clone()
                entries[name]["chunks"].append({"key": name, "offsets": begin, "sizes": sizes})
        elif rank == 0:
            parts[name] = value
            entries[name] = {"object": True, "key": name}
    return parts, entries


def _merged(every: list[dict]) -> dict:
    """What all ranks said, by name: the chunks of a tensor from all of them."""
    whole: dict[str, dict] = {}
    for entries in every:
        for name, entry in entries.items():
            have = whole.setdefault(name, {**entry, "chunks": []} if "chunks" in entry else entry)
            if "chunks" in entry:
                if have["shape"] != entry["shape"]:
                    raise ValueError(f"{name}: ranks have it with shapes {have['shape']} and {entry['shape']}")
                have["chunks"] += entry["chunks"]
    return whole


save_state_dict = save
