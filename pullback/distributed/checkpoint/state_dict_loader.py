"""Loading: every rank reads what overlaps with its parts, however many ranks saved it."""

from __future__ import annotations

import os
from typing import Any

from ...core.modes import no_grad
from ...core.tensor import Tensor
from ..collectives import barrier
from ..groups import is_initialized
from .entries import flattened, part
from .planner import DefaultLoadPlanner, checked
from .stateful import Stateful
from .storage import CheckpointException, FileSystemReader


def load(
    state_dict: dict, *, checkpoint_id: str | os.PathLike | None = None, storage_reader: FileSystemReader | None = None,
    planner: Any = None, process_group: Any = None, no_dist: bool = False,
) -> None:  # fmt: skip
    """Fill nested state, in place, from a checkpoint: tensors keep their shape and how they lie on ranks. Objects with a
    `state_dict`, such as modules and optimizers, are told by `load_state_dict`."""
    partial = getattr(checked(planner, DefaultLoadPlanner, "checkpoint.load"), "allow_partial_load", False)
    reader = _reader(checkpoint_id, storage_reader)
    objects = {name: value for name, value in state_dict.items() if isinstance(value, Stateful)}
    state = {**state_dict, **{name: value.state_dict() for name, value in objects.items()}}
    _fill_all(flattened(state), reader, partial)
    for name, value in objects.items():
        value.load_state_dict(state.pop(name))
    state_dict.update({name: value for name, value in state.items() if name not in objects})
    if is_initialized() and not no_dist:
        barrier(process_group)


def _reader(path: Any, reader: Any) -> FileSystemReader:
    if reader is None and path is None:
        raise ValueError("checkpoint.load: give checkpoint_id, the folder, or a storage_reader")
    if reader is not None and not isinstance(reader, FileSystemReader):
        raise NotImplementedError(
            f"checkpoint.load: storage_reader must be a FileSystemReader, got {type(reader).__name__}"
        )
    return reader or FileSystemReader(path)


def _fill_all(wanted: dict, reader: FileSystemReader, partial: bool) -> None:
    entries = reader.read_entries()
    missing = sorted(set(wanted) - set(entries))
    if missing and not partial:
        raise CheckpointException(f"Missing key in checkpoint state_dict: {', '.join(missing)}.")
    for name, (value, container, key) in wanted.items():
        if name not in entries:
            continue
        if isinstance(value, Tensor):
            _fill(name, value, entries[name], reader)
        else:
            container[key] = reader.read(entries[name]["file"], name)


def _fill(name: str, target: Tensor, entry: dict, reader: FileSystemReader) -> None:
    """Copy what chunks have of this rank's part."""
    if "chunks" not in entry:
        raise CheckpointException(f"{name}: the checkpoint has an object there, not a tensor")
    if entry["shape"] != list(target.shape):
        raise CheckpointException(
            f"Size mismatch between saved {entry['shape']} and current: {list(target.shape)} for {name}"
        )
    mine, begin, sizes = part(target)
    filled = 0
    with no_grad():
        for chunk in entry["chunks"]:
            found = _overlap(begin, sizes, chunk["offsets"], chunk["sizes"])
            if found is None:
                continue
            to, source = found
            data = reader.read(chunk["file"], chunk["key"])
            mine[to].copy_(data[source]) if mine.dim() else mine.copy_(data)
            filled += mine[to].numel() if mine.dim() else 1
    if filled != mine.numel():
        raise CheckpointException(f"{name}: the checkpoint has {filled} of {mine.numel()} elements of this rank's part")


def _overlap(begin: list[int], sizes: list[int], other: list[int], others: list[int]) -> tuple[tuple, tuple] | None:
    """Slices of two parts of a tensor that are the same elements; None where there are none."""
    to, source = [], []
    for a, n, b, m in zip(begin, sizes, other, others, strict=True):
        first, last = max(a, b), min(a + n, b + m)
        if first >= last:
            return None
        to.append(slice(first - a, last - a))
        source.append(slice(first - b, last - b))
    return tuple(to), tuple(source)


load_state_dict = load
