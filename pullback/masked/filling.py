"""Elements that are left out, replaced by what does not change a result; dimensions as reductions take them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core import device as devices
from ..core import dtype as dtypes
from ..core.dtype import dtype as dtype_type
from ..core.geometry import wrap_dims
from ..core.tensor import Tensor
from ..ops.system.operator import public

Dims = int | tuple[int, ...] | list[int] | None


def filled(input: Tensor, mask: Tensor | None, value) -> Tensor:
    """`input`, with `value` where the mask is False."""
    if mask is None:
        return input
    if mask.dtype is not dtypes.bool:
        mask = mask.bool()
    if mask.ndim > input.ndim:
        raise IndexError(
            f"mask has {mask.ndim} dimensions, but must have no more than the input, which has {input.ndim}"
        )
    return public("torch", "where")(mask, input, input.new_full((), value))


def where(mask: Tensor, input: Tensor, fill_value: Tensor) -> Tensor:
    """`input` where the mask is True, `fill_value` elsewhere. Sparse tensors, all of one layout, have no elements elsewhere:
    a result is specified where the mask is True, and filled in dense dimensions alone."""
    if mask.layout is not input.layout:
        raise ValueError(f"_where: expected mask and input of one layout, but got {mask.layout} and {input.layout}")
    if mask.layout is devices.strided:
        return public("torch", "where")(mask, input, fill_value)
    if mask.layout is devices.sparse_coo:
        return _coo_where(mask.coalesce(), input.coalesce(), fill_value)
    if mask.layout is devices.sparse_csr:
        return _coo_where(mask.to_sparse(), input.to_sparse(), fill_value).to_sparse_csr()
    raise ValueError(f"_where: expected strided, sparse COO or sparse CSR tensors, but got {mask.layout}")


def _coo_where(mask: Tensor, input: Tensor, fill_value: Tensor) -> Tensor:
    chosen = mask.values()
    taking = chosen.flatten(1).any(1) if chosen.ndim > 1 else chosen
    build = public("torch", "sparse_coo_tensor")
    indices = mask.indices()[:, taking]
    values = input.sparse_mask(build(indices, chosen[taking], mask.shape, is_coalesced=True)).values()
    if chosen.ndim > 1:
        values = public("torch", "where")(chosen[taking], values, fill_value)
    return build(indices, values, input.shape, is_coalesced=True)


def every(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The dimensions that are reduced; None and () mean all."""
    if dim is None or not isinstance(dim, int) and not len(dim):
        return tuple(range(ndim))
    return wrap_dims(dim, ndim)


def lowest(d: dtype_type):
    """What is never a maximum among others."""
    if d.is_floating_point:
        return float("-inf")
    return 0 if d is dtypes.bool else int(np.iinfo(d.numpy).min)


def highest(d: dtype_type):
    """What is never a minimum among others."""
    if d.is_floating_point:
        return float("inf")
    return 1 if d is dtypes.bool else int(np.iinfo(d.numpy).max)


def cast(input: Tensor, dtype: dtype_type | None) -> Tensor:
    return input if dtype is None else input.to(dtype)


def inexact(function: Callable, input: Tensor, dtype: dtype_type | None) -> Tensor:
    """The input in a dtype with fractions; raises where it is not said which."""
    input = cast(input, dtype)
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise ValueError(
            f"{function.__name__}(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {input.dtype}"
        )
    return input


def count(input: Tensor, mask: Tensor | None, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """How many elements take part in each result."""
    ones = input.new_ones((), dtype=dtypes.bool if mask is None else mask.dtype)
    taking = (ones if mask is None else mask.bool()).expand(input.shape)
    return taking.sum(dims, keepdim) if dims else taking.to(dtypes.int64)
