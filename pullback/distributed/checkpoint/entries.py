"""Nested state as flat entries, and the part of each tensor that a rank has."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ..tensor.dtensor import DTensor
from ..tensor.placements import Partial


def flattened(state: Any, prefix: str = "") -> dict[str, tuple[Any, Any, Any]]:
    """{name: (value, the container that holds it, under which key)} of nested dicts and lists."""
    items = state.items() if isinstance(state, dict) else enumerate(state)
    result: dict[str, tuple[Any, Any, Any]] = {}
    for key, value in items:
        name = f"{prefix}{key}"
        nested = (
            isinstance(value, dict)
            and value
            or isinstance(value, list)
            and any(isinstance(v, (Tensor, dict, list)) for v in value)
        )
        if nested:
            result |= flattened(value, name + ".")
        elif hasattr(value, "state_dict") and not isinstance(value, Tensor):
            result |= flattened(value.state_dict(), name + ".")
        else:
            result[name] = value, state, key
    return result


def part(t: Tensor) -> tuple[Tensor, list[int], list[int]]:
    """(what this rank has of a tensor, where it begins, its sizes)."""
    if isinstance(t, DTensor):
        if any(isinstance(p, Partial) for p in t.placements):
            raise ValueError(f"a checkpoint holds no partial values, got placements {t.placements}")
        places = t._spec.local_part()
        return t._local_tensor.detach(), [b for b, _ in places], [n for _, n in places]
    return t.detach(), [0] * t.dim(), list(t.shape)


def is_writer(t: Tensor, rank: int) -> bool:
    """Whether this rank writes its part: of those that have the same one, the first does."""
    if isinstance(t, DTensor):
        where = t.device_mesh.get_coordinate()
        return all(c == 0 or p.is_shard() for c, p in zip(where, t.placements, strict=True))
    return rank == 0
