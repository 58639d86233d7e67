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
    return public("torch", "where")(input_mask(input, mask=mask), input, input.new_full((), value))


def neutral(name: str, input: Tensor, mask: Tensor | None, *args) -> Tensor:
    """`input`, with what does not change the results of a reduction where the mask is False."""
    if mask is None:
        return input
    return public("torch", "where")(input_mask(input, mask=mask), input, identity(name, input, *args))


def input_mask(input: Tensor, *args, mask: Tensor | None = None, **kwargs) -> Tensor:
    """The mask with the shape and layout of the input, in bool."""
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input): "
            f"{mask.ndim} dimensions for an input of {input.ndim}"
        )
    mask = mask.bool()
    if mask.shape != input.shape:
        mask = mask.expand(input.shape) if mask.layout is devices.strided else mask.to_dense().expand(input.shape)
    if mask.layout is input.layout:
        return mask.coalesce() if mask.layout is devices.sparse_coo else mask
    if input.layout is devices.strided:
        return mask.to_dense()
    return mask.to_sparse_csr() if input.layout is devices.sparse_csr else _as_coo(mask, input).coalesce()


def _as_coo(mask: Tensor, input: Tensor) -> Tensor:
    return mask.to_sparse(input.sparse_dim()) if mask.layout is devices.strided else mask.to_sparse()


_FULL = ("sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "norm", "var", "std", "logsumexp")
_ELEMENTWISE = ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod")


def output_mask(
    op: Callable, input: Tensor, *args, mask: Tensor | None = None, keepdim: bool = False, **kwargs
) -> Tensor:
    """True where a result of a function of this package comes from an element that takes part."""
    name = getattr(op, "__name__", type(op).__name__)
    if name in _ELEMENTWISE:
        return input_mask(input, mask=mask)
    if name not in _FULL:
        raise ValueError(f"_output_mask expected masked operation (got {name})")
    places = args[1:] if name == "norm" else args
    result = input_mask(input, mask=mask)
    for d in sorted(every(places[0] if places else kwargs.get("dim"), input.ndim), reverse=True):
        result = result.any(d, keepdim)
    return result


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
    """The dimensions that are reduced; None and the empty tuple (not the empty list) mean all."""
    if dim is None or dim == ():
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


def identity(name: str, input: Tensor, *args) -> Tensor | None:
    """What leaves a reduction as it is, as a scalar of the input's dtype; None where there is no such number."""
    name, d = name.rsplit(".", 1)[-1], input.dtype
    if name in ("mean", "var", "std"):
        return None
    if name == "median":
        return input.new_full((), float("nan"), dtype=d if d.is_floating_point else dtypes.float32)
    if name in ("sum", "cumsum", "prod", "cumprod"):
        return input.new_full((), int(name.endswith("prod")))
    if name == "norm":
        return input.new_full((), float("inf") if (args[0] if args else 2) == float("-inf") else 0)
    if name == "logsumexp" and d.is_complex:
        return input.new_full((), complex("-inf"))
    if name not in ("amax", "argmax", "logaddexp", "logsumexp", "amin", "argmin") or d.is_complex:
        raise NotImplementedError(f"identity of {name} on {d} input")
    return input.new_full((), (highest if name in ("amin", "argmin") else lowest)(d))


def cast(input: Tensor, dtype: dtype_type | None) -> Tensor:
    return input if dtype is None else input.to(dtype)


def inexact(function: Callable, input: Tensor, dtype: dtype_type | None) -> Tensor:
    """The input in a dtype with fractions; raises where it is not said which."""
    given = input.dtype if dtype is None else dtype
    if not (given.is_floating_point or given.is_complex):
        raise ValueError(
            f"{function.__name__}(): Could not infer output dtype. {'Input' if dtype is None else 'Optional'} dtype must be "
            f"either a floating point or complex dtype. Got: {given}"
        )
    return cast(input, dtype)


def count(input: Tensor, mask: Tensor | None, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """How many elements take part in each result."""
    taking = input.new_ones((), dtype=dtypes.bool).expand(input.shape) if mask is None else input_mask(input, mask=mask)
    return taking.sum(dims, keepdim)
