"""Collectives with gradients, under the names of `torch.distributed.nn.functional`."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...ops.system.operator import public
from .. import _functional_collectives as functional
from ..groups import get_group_rank
from ..reduce_op import ReduceOp


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    return functional.all_reduce(tensor, op, group)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    return functional.broadcast(tensor, get_group_rank(functional.group_of(group), src), group)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks."""
    size = functional.group_of(group).size()
    return tuple(functional.all_gather_tensor(tensor.unsqueeze(0), 0, group).reshape(size, *tensor.shape).unbind(0))


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Of the reduced tensors, this rank's."""
    return functional.reduce_scatter_tensor(public("torch", "stack")(list(input_list)), op, 0, group).squeeze(0)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None
) -> Tensor:
    return functional.all_to_all_single(input, output_split_sizes, input_split_sizes, group)
