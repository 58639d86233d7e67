"""What is known of a distributed tensor besides its elements: mesh, placements, shape and dtype of the whole."""

from __future__ import annotations

from dataclasses import dataclass

from ..device_mesh import DeviceMesh
from .placements import Partial, Placement, Replicate, Shard, part_of


@dataclass(frozen=True)
class Spec:
    """How a tensor of a shape lies on a mesh."""

    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    shape: tuple[int, ...]

    def local_part(self, coordinate: list[int] | None = None) -> list[tuple[int, int]]:
        """(beginning, length) in each dimension of what a rank has; by default, this one."""
        where = self.mesh.get_coordinate() if coordinate is None else coordinate
        parts = [(0, n) for n in self.shape]
        for i, p in enumerate(self.placements):
            if isinstance(p, Shard):
                start, length = parts[p.dim]
                offset, own = part_of(length, self.mesh.size(i), where[i])
                parts[p.dim] = start + offset, own
        return parts

    def size_at(self, mesh_dim: int, dim: int) -> int:
        """The size of a dimension before a mesh dimension cuts it: those before have."""
        where, n = self.mesh.get_coordinate(), self.shape[dim]
        for i in range(mesh_dim):
            if self.placements[i].is_shard(dim):
                n = part_of(n, self.mesh.size(i), where[i])[1]
        return n

    def with_placements(self, placements: tuple[Placement, ...]) -> Spec:
        return Spec(self.mesh, placements, self.shape)


def normal_placements(mesh: DeviceMesh, placements, ndim: int) -> tuple[Placement, ...]:
    """Placements, one for each dimension of the mesh, with dimensions of tensors counted from the front."""
    given = tuple(placements) if placements is not None else (Replicate(),) * mesh.ndim
    if len(given) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found {len(given)} and {mesh.ndim}"
        )
    result: list[Placement] = []
    for p in given:
        if not isinstance(p, (Shard, Replicate, Partial)):
            raise TypeError(f"placements: expected Shard, Replicate or Partial, got {p!r}")
        if isinstance(p, Shard):
            dim = p.dim + ndim if p.dim < 0 else p.dim
            if not 0 <= dim < max(ndim, 1):
                raise ValueError(f"{p!r} is no dimension of a tensor with {ndim}")
            p = Shard(dim)
        result.append(p)
    return tuple(result)
