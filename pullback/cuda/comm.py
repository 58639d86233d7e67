"""Tensors over several devices of one process: copies to all, parts to each, sums and joins of what they have.

Devices are numbers or `device`s. Everything is written in operators, so gradients go back the way the data came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.device import device as Device
from ..core.tensor import Tensor
from ..ops.system.operator import public


def _device(where: Any) -> Device:
    return Device("cuda", where) if isinstance(where, int) else Device(where)


def broadcast(tensor: Tensor, devices: Sequence | None = None, *, out: Sequence[Tensor] | None = None) -> tuple:
    """A copy on each device, the tensor itself where it lies; or copies into the tensors of `out`."""
    if (devices is None) == (out is None):
        raise RuntimeError(f"Exactly one of 'devices' and 'out' must be specified, but got {devices=} and {out=}")
    if out is not None:
        return tuple(t.copy_(tensor) for t in out)
    return tuple(tensor.to(_device(d)) for d in devices or ())


def broadcast_coalesced(tensors: Sequence[Tensor], devices: Sequence, buffer_size: int = 10485760) -> list[tuple]:
    """All tensors on each device, a tuple for a device."""
    return [tuple(t.to(_device(d)) for t in tensors) for d in devices]


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """The sum of tensors from several devices, on one: by default that of the first."""
    if not inputs:
        raise RuntimeError("reduce_add expects at least one tensor, but got none")
    if any(t.shape != inputs[0].shape for t in inputs):
        raise ValueError(f"reduce_add expects tensors of one shape, but got {[tuple(t.shape) for t in inputs]}")
    where = inputs[0].device if destination is None else _device(destination)
    total = inputs[0].to(where)
    for t in inputs[1:]:
        total = total + t.to(where)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> tuple:
    """`reduce_add` of the first tensors of all devices, of the second ones, and so on."""
    return tuple(reduce_add(group, destination) for group in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor, devices: Sequence | None = None, chunk_sizes: Sequence[int] | None = None, dim: int = 0,
    streams: Any = None, *, out: Sequence[Tensor] | None = None,
) -> tuple:  # fmt: skip
    """A part of a tensor for each device, in their order: equal parts, or of the sizes that are asked for."""
    if out is not None:
        parts = tensor.split([t.size(dim) for t in out], dim)
        return tuple(t.copy_(part) for t, part in zip(out, parts, strict=True))
    devices = list(devices or ())
    parts = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple(part.to(_device(d)) for part, d in zip(parts, devices, strict=False))


def gather(tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Tensors from several devices joined on one: by default that of the first."""
    where = tensors[0].device if destination is None else _device(destination)
    joined = public("torch", "cat")([t.to(where) for t in tensors], dim)
    return joined if out is None else out.copy_(joined)


__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]
