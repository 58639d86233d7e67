"""Collectives of a program that is being traced: written with functional collectives, so that the graph holds them.

In: tensors without data. Out: what the call on real tensors would give; results are copied into the tensors that were
given, at once, since a graph keeps no work that is not waited for. Those who want overlap call functional collectives.
"""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from . import operators as ops
from .process_group import ProcessGroup
from .reduce_op import ReduceOp


class DoneWork:
    """The work of a call in a graph: waiting for it is a node that was traced already."""

    def __init__(self, outputs: list):
        self.outputs = outputs

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def result(self) -> list:
        return self.outputs


def _into(targets: list[Tensor], values: list[Tensor], async_op: bool) -> DoneWork | None:
    for target, value in zip(targets, values, strict=True):
        target.copy_(value.reshape(target.shape))
    return DoneWork(targets) if async_op else None


def _name(op: ReduceOp) -> str:
    if op.factor is not None:
        raise NotImplementedError("ReduceOp.PREMUL_SUM in a graph: multiply the tensor and use ReduceOp.SUM")
    return op.name.lower()


def all_reduce(tensor: Tensor, op: ReduceOp, pg: ProcessGroup, async_op: bool) -> DoneWork | None:
    return _into([tensor], [ops.wait_tensor(ops.all_reduce(tensor, _name(op), pg.group_name))], async_op)


def broadcast(tensor: Tensor, root: int, pg: ProcessGroup, async_op: bool) -> DoneWork | None:
    return _into([tensor], [ops.wait_tensor(ops.broadcast(tensor, root, pg.group_name))], async_op)


def all_gather_into_tensor(output: Tensor, input: Tensor, pg: ProcessGroup, async_op: bool) -> DoneWork | None:
    given = input if input.ndim else input.reshape(1)
    return _into([output], [ops.wait_tensor(ops.all_gather_into_tensor(given, pg.size(), pg.group_name))], async_op)


def all_gather(outputs: list[Tensor], tensor: Tensor, pg: ProcessGroup, async_op: bool) -> DoneWork | None:
    given = tensor if tensor.ndim else tensor.reshape(1)
    whole = ops.wait_tensor(ops.all_gather_into_tensor(given, pg.size(), pg.group_name))
    return _into(outputs, list(whole.chunk(pg.size())), async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp, pg: ProcessGroup, async_op: bool
) -> DoneWork | None:
    result = ops.reduce_scatter_tensor(input.reshape(pg.size(), -1), _name(op), pg.size(), pg.group_name)
    return _into([output], [ops.wait_tensor(result)], async_op)


def all_to_all_single(
    output: Tensor, input: Tensor, outgoing: list | None, incoming: list | None, pg: ProcessGroup, async_op: bool
) -> DoneWork | None:
    even = lambda t: [t.shape[0] // pg.size()] * pg.size()
    result = ops.all_to_all_single(input, outgoing or even(output), incoming or even(input), pg.group_name)
    return _into([output], [ops.wait_tensor(result)], async_op)
