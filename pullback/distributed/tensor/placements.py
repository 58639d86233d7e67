"""Placements: how a tensor lies on the ranks along one dimension of a mesh.

`Shard(dim)`: each rank has a part of a dimension (as `chunk` cuts it, so the last may be shorter or empty). `Replicate()`:
each has all of it. `Partial(op)`: the tensor is the reduction of what ranks have.
"""

from __future__ import annotations

from dataclasses import dataclass


class Placement:
    """How a tensor lies along one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a part of a dimension."""

    dim: int

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has the whole."""

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """The whole is the reduction of what ranks have."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


class _StridedShard(Shard):
    """A dimension that two axes of a mesh cut one after the other, the inner one first. It is not built."""

    def __new__(cls, *args, **kwargs):
        raise NotImplementedError("_StridedShard: one dimension sharded over two axes of a mesh is not implemented")


def part_of(size: int, parts: int, index: int) -> tuple[int, int]:
    """(beginning, length) of a rank's part of a dimension, as `chunk` cuts it."""
    step = -(-size // parts)
    begin = min(index * step, size)
    return begin, min(step, size - begin)
