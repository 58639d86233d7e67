"""vmap over library operators: the rule that was registered, or a loop over examples.

A rule is called as `rule(info, in_dims, *args, **kwargs)` with whole batches and returns (results, their batch
dimensions). The loop needs results that can be stacked: operators that write, or return numbers, need a rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..batching.batched import BatchLevel, loop_rule
from ..core.tree import tree_flatten
from ..func.custom import VmapInfo

if TYPE_CHECKING:
    from .operator import LibraryOperator

_MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


def process(op: LibraryOperator, values: tuple, dims: tuple, level: BatchLevel):
    """(results, batch dimensions) of a call under one vmap."""
    if op.vmap_rule is None:
        return _loop(op, values, dims, level)
    positional, keywords = op.form(values)
    in_dims = tuple([list(d) if isinstance(d, tuple) else d for d in dims[: len(positional)]])
    result = op.vmap_rule(VmapInfo(level.size, level.randomness), in_dims, *positional, **keywords)
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with the output. "
            f"Got a {type(result)} instead"
        )
    out, out_dims = result
    if isinstance(out_dims, (tuple, list)) and (
        not isinstance(out, (tuple, list)) or len(tree_flatten(out)[0]) != len(tree_flatten(out_dims)[0])
    ):
        raise RuntimeError(
            f"The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected out_dims={out_dims} to be "
            f"compatible with the structure of `output`. out_dims has structure {tree_flatten(out_dims)[1]} but output has structure "
            f"{tree_flatten(out)[1]}. {_MORE}"
        )
    return out, out_dims


def _loop(op: LibraryOperator, values: tuple, dims: tuple, level: BatchLevel):
    kinds = [kind for kind, _ in op.schema.returns]
    if op.written or op.schema.returns_views:
        raise RuntimeError(
            f"Batching rule not implemented for {op.qualified_name}; the fallback path doesn't work on out= or view ops."
        )
    if not kinds or any(not kind.startswith("Tensor") for kind in kinds):
        raise RuntimeError(f"Batching rule not implemented for {op.qualified_name}. We could not generate a fallback.")
    return loop_rule(op, values, dims, level.size)
