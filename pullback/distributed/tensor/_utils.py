"""Where a rank's part of a distributed tensor lies, as programs ask for it."""

from __future__ import annotations

from collections.abc import Sequence

from ..device_mesh import DeviceMesh
from .placements import Placement
from .spec import Spec, normal_placements


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement], skip_offset: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this rank's part and where it begins in the whole; with `skip_offset`, no beginnings."""
    spec = Spec(mesh, normal_placements(mesh, placements, len(global_shape)), tuple(global_shape))
    parts = spec.local_part()
    return tuple(n for _, n in parts), () if skip_offset else tuple(begin for begin, _ in parts)


def compute_global_tensor_shape(
    shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[int, ...]:
    """The shape of the whole where every rank has a part of the same shape."""
    whole = list(shape)
    for i, placement in enumerate(normal_placements(mesh, placements, len(whole))):
        if placement.is_shard():
            whole[placement.dim] *= mesh.size(i)  # type: ignore[attr-defined]
    return tuple(whole)
