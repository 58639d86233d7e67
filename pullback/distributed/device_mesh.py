"""`DeviceMesh`: ranks in an array of one or more dimensions, with a group along each.

In: a shape, or an array of ranks. Out: for each dimension, the group of ranks that differ only there. All ranks make the
same meshes in the same order. A mesh of one rank needs no MPI.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from ..ops.system.operator import public
from .groups import get_rank, get_world_size, init_process_group, is_initialized, new_group, state
from .process_group import ProcessGroup


class DeviceMesh:
    """An array of ranks."""

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: tuple[str, ...] | None = None, _groups: list | None = None,
        _init_backend: bool = True,
    ):  # fmt: skip
        self.device_type = device_type
        self.array = np.asarray(mesh.tolist() if isinstance(mesh, Tensor) else mesh, dtype=np.int64)
        if self.array.ndim == 0:
            self.array = self.array.reshape(1)
        self.mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        if self.mesh_dim_names is not None and len(self.mesh_dim_names) != self.array.ndim:
            raise RuntimeError(
                f"mesh_dim_names {self.mesh_dim_names} must be as many as the mesh has dimensions, {self.array.ndim}"
            )
        if not is_initialized():
            _init_alone()
        _check(self.array)
        self.groups: list[ProcessGroup] = _groups if _groups is not None else _make_groups(self.array)

    # ---- facts
    @property
    def mesh(self) -> Tensor:
        return public("torch", "tensor")(self.array.tolist())

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        return int(self.array.size) if mesh_dim is None else self.array.shape[mesh_dim]

    def __len__(self) -> int:
        return self.size()

    def get_rank(self) -> int:
        return get_rank()

    def get_coordinate(self) -> list[int] | None:
        """Where this rank is in the mesh; None where it is not."""
        found = np.argwhere(self.array == get_rank())
        return found[0].tolist() if len(found) else None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This rank's place along a dimension."""
        where = self.get_coordinate()
        if where is None:
            raise RuntimeError(f"rank {get_rank()} is not in the mesh {self}")
        return where[self._index(mesh_dim)]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The ranks along a dimension, through this one."""
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(f"the mesh has {self.ndim} dimensions: say of which the group is wanted")
        return self.groups[self._index(mesh_dim)]

    def get_all_groups(self) -> list[ProcessGroup]:
        return list(self.groups)

    def _index(self, mesh_dim: int | str | None) -> int:
        if isinstance(mesh_dim, str):
            if self.mesh_dim_names is None or mesh_dim not in self.mesh_dim_names:
                raise KeyError(f"Invalid mesh_dim_name {mesh_dim!r}: the mesh has {self.mesh_dim_names}")
            return self.mesh_dim_names.index(mesh_dim)
        return 0 if mesh_dim is None else mesh_dim

    # ---- parts
    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh along some dimensions, through this rank."""
        names = (names,) if isinstance(names, str) else tuple(names)
        kept = [self._index(name) for name in names]
        where = self.get_coordinate()
        at = tuple(slice(None) if i in kept else where[i] for i in range(self.ndim))
        part = self.array[at]
        order = sorted(kept)
        part = part.transpose([order.index(i) for i in kept])
        return DeviceMesh(self.device_type, part, mesh_dim_names=names, _groups=[self.groups[i] for i in kept])

    @classmethod
    def from_group(cls, group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: Any = None) -> DeviceMesh:
        """A mesh of a group, or of groups, one for each dimension."""
        groups = group if isinstance(group, (list, tuple)) else [group]
        if mesh is None:
            if len(groups) > 1:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            mesh = groups[0].ranks
        return cls(device_type, mesh, mesh_dim_names=mesh_dim_names, _groups=list(groups))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and (
            self.device_type == other.device_type and self.array.tolist() == other.array.tolist()
        )

    def __hash__(self) -> int:
        return hash((self.device_type, self.array.tobytes(), self.array.shape))

    def __repr__(self) -> str:
        names = f", mesh_dim_names={self.mesh_dim_names}" if self.mesh_dim_names else ""
        return f"DeviceMesh('{self.device_type}', {self.array.tolist()}{names})"


def _init_alone() -> None:
    if "RANK" in os.environ or "OMPI_COMM_WORLD_SIZE" in os.environ:
        init_process_group()
    else:
        init_process_group("gloo", rank=0, world_size=1)


def _check(ranks: np.ndarray) -> None:
    if ranks.size > get_world_size():
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {get_world_size()}, but found {ranks.size} ranks!"
        )
    if len(set(ranks.reshape(-1).tolist())) != ranks.size:
        raise RuntimeError(f"a rank is in the mesh twice: {ranks.tolist()}")


def _make_groups(ranks: np.ndarray) -> list:
    """A group along each dimension. All ranks make all groups of the mesh, in one order."""
    world = state.world
    if ranks.ndim == 1 and ranks.tolist() == world.ranks:
        return [world]
    mine = []
    for dim in range(ranks.ndim):
        lines = np.moveaxis(ranks, dim, -1).reshape(-1, ranks.shape[dim])
        result = [new_group(line.tolist()) for line in lines]
        mine.append(next((g for g in result if isinstance(g, ProcessGroup)), None))
    return mine


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """A mesh of all ranks in an array of a shape."""
    if mesh_dim_names is not None and len(set(mesh_dim_names)) != len(mesh_dim_names):
        raise RuntimeError(f"Each mesh_dim_name must be unique, got {mesh_dim_names}")
    if device_type and not device_type.isalpha():
        raise RuntimeError(f"Device type with index is not supported but got {device_type}.")
    if not is_initialized():
        _init_alone()
    if math.prod(mesh_shape) != get_world_size():
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {get_world_size()}, and use all ranks: {mesh_shape}"
        )
    return DeviceMesh(device_type, np.arange(math.prod(mesh_shape)).reshape(mesh_shape), mesh_dim_names=mesh_dim_names)
