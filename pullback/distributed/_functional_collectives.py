"""`torch.distributed._functional_collectives`: collectives that return new tensors.

In: a tensor, and a group: a `ProcessGroup`, the name of one, a `DeviceMesh` of one dimension, or (mesh, dimension). Out: a
new tensor, there when it is returned; in a graph, a start and a wait, which may stand apart.
"""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops.system.operator import public
from . import legacy_operators as _legacy_operators  # noqa: F401 - declares the operators of `c10d_functional`
from . import operators
from .device_mesh import DeviceMesh
from .groups import group_by_name, world_or_raise
from .process_group import ProcessGroup
from .reduce_op import as_reduce_op


def group_of(group: Any) -> ProcessGroup:
    """The group that is meant."""
    if group is None:
        return world_or_raise()
    if isinstance(group, ProcessGroup):
        return group
    if isinstance(group, str):
        return group_by_name(group)
    if isinstance(group, DeviceMesh):
        return group.get_group()
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1])
    raise ValueError(
        f"Invalid type for group, must be one of ProcessGroup, str, DeviceMesh or (DeviceMesh, int): {group!r}"
    )


def wait_tensor(tensor: Tensor) -> Tensor:
    """A tensor that a collective gives, when it is there."""
    return operators.wait_tensor(tensor)


def all_reduce(self: Tensor, reduceOp: Any, group: Any, tag: str = "") -> Tensor:
    """The reduction over all ranks."""
    return wait_tensor(
        operators.all_reduce(self.contiguous(), as_reduce_op(reduceOp).name.lower(), group_of(group).group_name)
    )


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of one rank of the group."""
    return wait_tensor(operators.broadcast(self.contiguous(), src, group_of(group).group_name))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all ranks, joined along a dimension."""
    pg = group_of(group)
    whole = wait_tensor(operators.all_gather_into_tensor(self.contiguous(), pg.size(), pg.group_name))
    return whole if gather_dim == 0 else public("torch", "cat")(whole.chunk(pg.size()), gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: Any, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """The reduction over all ranks, of which each gets its part of a dimension."""
    pg = group_of(group)
    if self.shape[scatter_dim] % pg.size():
        raise ValueError(
            f"input dimension {scatter_dim} ({self.shape[scatter_dim]}) must be a multiple of group_size {pg.size()}"
        )
    given = self if scatter_dim == 0 else public("torch", "cat")(self.chunk(pg.size(), scatter_dim))
    name = as_reduce_op(reduceOp).name.lower()
    return wait_tensor(operators.reduce_scatter_tensor(given.contiguous(), name, pg.size(), pg.group_name))


def all_to_all_single(
    self: Tensor, output_split_sizes: Any, input_split_sizes: Any, group: Any, tag: str = ""
) -> Tensor:
    """Rows of each rank for each other."""
    pg = group_of(group)
    even = [self.shape[0] // pg.size()] * pg.size()
    sizes = output_split_sizes or even, input_split_sizes or even
    return wait_tensor(operators.all_to_all_single(self.contiguous(), *sizes, pg.group_name))


all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_tensor_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single


def permute_tensor(self: Tensor, src_dst: list[int], group: Any, tag: str = "") -> Tensor:
    """Each rank's tensor moved to the rank that `src_dst` names for it."""
    pg = group_of(group)
    if sorted(src_dst) != list(range(pg.size())):
        raise ValueError(f"src_dst: expected every rank of {pg.size()} once, got {list(src_dst)}")
    flat = self.contiguous().reshape(-1)
    sent, received = [0] * pg.size(), [0] * pg.size()
    sent[src_dst[pg.rank()]] = received[list(src_dst).index(pg.rank())] = flat.numel()
    moved = wait_tensor(operators.all_to_all_single(flat, received, sent, pg.group_name))
    return moved.reshape(self.shape)


def all_gather_into_tensor_coalesced(self: list[Tensor], group: Any, tag: str = "") -> list[Tensor]:
    """The gathers of several tensors, under way together."""
    pg = group_of(group)
    return [wait_tensor(t) for t in operators.all_gather_into_tensor_coalesced(list(self), pg.size(), pg.group_name)]


def reduce_scatter_tensor_coalesced(
    inputs: list[Tensor], reduceOp: Any, scatter_dim: list[int], group: Any, tag: str = ""
) -> list[Tensor]:
    """The scattered sums of several tensors, under way together, each cut along its own dimension."""
    name, pg = as_reduce_op(reduceOp).name.lower(), group_of(group)
    ready = [t.movedim(d, 0).contiguous() for t, d in zip(inputs, scatter_dim, strict=True)]
    parts = operators.reduce_scatter_tensor_coalesced(ready, name, pg.size(), pg.group_name)
    return [wait_tensor(t).movedim(0, d) for t, d in zip(parts, scatter_dim, strict=True)]


def all_reduce_coalesced(self: list[Tensor], reduceOp: Any, group: Any, tag: str = "") -> list[Tensor]:
    """The reductions of several tensors, under way together."""
    name, pg = as_reduce_op(reduceOp).name.lower(), group_of(group)
    return [wait_tensor(t) for t in operators.all_reduce_coalesced(list(self), name, pg.group_name)]
