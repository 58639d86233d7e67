"""Functional collectives under their older name, `ops.c10d_functional`: groups are lists of ranks there.

Each is the operator of `operators` for the group that has these ranks; a list that no group has is an error.
"""

from __future__ import annotations

from ..ops.family.base import composite
from . import operators
from .groups import get_process_group_ranks, state

_LIBRARY = {"library": "c10d_functional", "function": False, "method": False}


def _group_name(ranks: tuple[int, ...]) -> str:
    for name, group in state.groups.items():
        if get_process_group_ranks(group) == list(ranks):
            return name
    raise ValueError(f"ranks: no process group has the ranks {list(ranks)}")


@composite("wait_tensor(Tensor self) -> Tensor", **_LIBRARY)
def wait_tensor(self):
    return operators.wait_tensor(self)


@composite("all_reduce(Tensor self, str reduceOp, str tag, int[] ranks, int group_size) -> Tensor", **_LIBRARY)
def all_reduce(self, reduceOp, tag, ranks, group_size):
    return operators.all_reduce(self, reduceOp, _group_name(ranks))


@composite("broadcast(Tensor self, int src, str tag, int[] ranks, int group_size) -> Tensor", **_LIBRARY)
def broadcast(self, src, tag, ranks, group_size):
    return operators.broadcast(self, src, _group_name(ranks))


@composite("all_gather_into_tensor(Tensor shard, str tag, int[] ranks, int group_size) -> Tensor", **_LIBRARY)
def all_gather_into_tensor(shard, tag, ranks, group_size):
    return operators.all_gather_into_tensor(shard, group_size, _group_name(ranks))


@composite(
    "reduce_scatter_tensor(Tensor input, str reduceOp, str tag, int[] ranks, int group_size) -> Tensor", **_LIBRARY
)
def reduce_scatter_tensor(input, reduceOp, tag, ranks, group_size):
    return operators.reduce_scatter_tensor(input, reduceOp, group_size, _group_name(ranks))


@composite("_wrap_tensor_autograd(Tensor input) -> Tensor", library="_c10d_functional", function=False, method=False)
def wrap_tensor_autograd(input):
    """A collective's result as one that has arrived when it is used: here that is the tensor after its wait."""
    return operators.wait_tensor(input)
