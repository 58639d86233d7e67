"""Batches in front of window operators: what turns a rule for (N, C, spatial...) into one for fewer or more axes.

Comes in: operators whose kernels treat every axis before the spatial ones alike. Goes out: kernels that take unbatched
input, and vmap rules that fold the mapped axis into the batch. Always holds: nothing here computes; arrays and tensors
are only reshaped.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from ...core.tensor import Tensor
from ..system.operator import Operator

Array = Any
VmapRule = Callable[[tuple, tuple, int], tuple]


def as_images(array: Array, spatial: int) -> Array:
    """The array as (N, C, spatial...): leading axes that are not two become one image's channels."""
    lead = array.shape[: array.ndim - spatial]
    if len(lead) == 2:
        return array
    return array.reshape((1, prod(lead), *array.shape[len(lead) :]))


def like_lead(out: Array, array: Array, spatial: int) -> Array:
    """`out`, computed from `as_images(array)`, with the leading axes that `array` had."""
    lead = array.shape[: array.ndim - spatial]
    return out if len(lead) == 2 else out.reshape((*lead, *out.shape[2:]))


def fold_batch(find: Callable[[], Operator], spatial: int) -> VmapRule:
    """A vmap rule that folds the mapped axis into the leading axes, which all tensors and results share.

    `find` gives the operator: it does not exist yet where its rule is written.
    """

    def rule(args: tuple, dims: tuple, size: int) -> tuple:
        op = find()
        first = next(i for i, a in enumerate(args) if isinstance(a, Tensor))
        rank = args[first].ndim - (dims[first] is not None)
        lead = rank - spatial
        folded, shapes = [], []
        for a, d in zip(args, dims, strict=True):
            if isinstance(a, Tensor):
                a = in_front(a, d, size)
                shapes.append(tuple(a.shape[1 : 1 + lead]))
                a = a if lead == 1 else a.reshape(size * prod(shapes[-1][:-1]), *a.shape[lead:])
            folded.append(a)
        out = op(*folded)
        if lead == 1:
            return _answer(out, lambda t: t)
        return _answer(out, lambda t: t.reshape(size, *shapes[0][:-1], *t.shape[1:]))

    return rule


def in_front(t: Tensor, dim: int | None, size: int) -> Tensor:
    """`t` with the mapped axis first; a tensor that is not mapped is repeated without a copy."""
    return t.expand(size, *t.shape) if dim is None else t.movedim(dim, 0)


def _answer(out: Any, shape: Callable[[Tensor], Tensor]) -> tuple:
    if isinstance(out, Tensor):
        return shape(out), 0
    return tuple(None if t is None else shape(t) for t in out), tuple(None if t is None else 0 for t in out)
