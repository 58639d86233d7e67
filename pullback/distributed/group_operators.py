"""Collectives as `torch.distributed` of PyTorch calls them: `ops.c10d.broadcast_(tensors, group, root, ...)`.

They write their tensors and give them back with a `Work`. Programs name them in tables of operators that their tensors handle,
and may call them; graphs hold the functional ones (`operators`). `async_op` says whether the work may be unfinished.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.tensor import Tensor
from ..ops.system.packet import ops
from . import collectives
from .work import Work


class GroupOperator:
    """An operator of the library `c10d` with one overload, which is itself."""

    namespace = "c10d"

    def __init__(self, function: Callable[..., tuple[list[Tensor], Work]]) -> None:
        self.function, self._name, self.__doc__ = function, function.__name__, function.__doc__
        self.default = self.overloadpacket = self
        setattr(ops.c10d, self._name, self)

    def name(self) -> str:
        return f"c10d::{self._name}"

    def overloads(self) -> list[str]:
        return ["default"]

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[list[Tensor], Work]:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverload(op='c10d.{self._name}', overload='default')>"


def _finished(work: Any, async_op: bool) -> Any:
    if not async_op:
        work.wait()
    return work


@GroupOperator
def broadcast_(tensors, process_group, root_rank: int, root_tensor: int = 0, async_op: bool = True, timeout: int = -1):
    """The tensor of one rank in those of all."""
    work = collectives.broadcast(tensors[root_tensor], group=process_group, group_src=root_rank, async_op=True)
    return tensors, _finished(work, async_op)


@GroupOperator
def allreduce_(tensors, process_group, reduce_op, sparse_indices=None, async_op: bool = True, timeout: int = -1):
    """The sum of the tensors of all ranks, or what `reduce_op` says, in each."""
    work = collectives.all_reduce(tensors[0], op=reduce_op, group=process_group, async_op=True)
    return tensors, _finished(work, async_op)


@GroupOperator
def scatter_(output_tensors, input_tensors, process_group, root_rank: int, async_op: bool = True, timeout: int = -1):
    """A tensor of the root's list for each rank."""
    inputs = input_tensors[0] if input_tensors else None
    work = collectives.scatter(
        output_tensors[0], inputs, group=process_group, group_src=root_rank, async_op=True
    )  # fmt: skip
    return output_tensors, _finished(work, async_op)
