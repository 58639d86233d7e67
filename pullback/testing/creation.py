"""`make_tensor`: random tensors of any dtype, with values in a range that suits it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from ..core import dtype as dtypes
from ..core.device import device as device_type
from ..core.device import memory_format as format_type
from ..core.dtype import dtype as dtype_type
from ..core.dtype import finfo, iinfo
from ..core.tensor import Tensor
from ..ops.system.operator import public

empty, randint, view_as_real = public("torch", "empty"), public("torch", "randint"), public("torch", "view_as_real")


def make_tensor(
    *shape: int | Sequence[int], dtype: dtype_type, device: str | device_type, low: float | None = None,
    high: float | None = None, requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False,
    memory_format: format_type | None = None,
) -> Tensor:  # fmt: skip
    """A tensor with numbers drawn evenly from [low, high), by default from -9 to 9."""
    sizes: tuple = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else tuple(shape)
    discrete = dtype.category < 2
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous!r} and memory_format={memory_format!r}"
        )
    if requires_grad and discrete:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype!r}"
        )
    apart = noncontiguous and math.prod(sizes) > 1
    result = _drawn((*sizes[:-1], 2 * sizes[-1]) if apart else sizes, dtype, device, low, high)
    if apart:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = 1 if discrete else finfo(dtype).tiny
    if dtype.is_floating_point and dtype.itemsize > 1 or dtype.is_complex:
        result.requires_grad = requires_grad
    return result


def _drawn(sizes: tuple, dtype: dtype_type, device, low: float | None, high: float | None) -> Tensor:
    if dtype is dtypes.bool:
        return randint(*_range(dtype, low, high, 0, 2, 0, 2), sizes, device=device, dtype=dtype)
    if dtype.category < 2:
        whole = iinfo(dtype)
        top = whole.max + (dtype is not dtypes.int64)
        return randint(*_range(dtype, low, high, whole.min, top, -9, 10), sizes, device=device, dtype=dtype)
    info = finfo(dtype)
    bounds = _range(dtype, low, high, info.min, info.max, -9, 9)
    if dtype.itemsize == 1:
        return _uniform(empty(sizes, device=device, dtype=dtypes.float32), *bounds).to(dtype)
    result = empty(sizes, device=device, dtype=dtype)
    _uniform(view_as_real(result) if dtype.is_complex else result, *bounds)
    return result


def _uniform(t: Tensor, low: float, high: float) -> Tensor:
    if high - low >= finfo(t.dtype).max:  # the width itself does not fit
        return t.uniform_(low / 2, high / 2).mul_(2)
    return t.uniform_(low, high)


def _range(dtype: dtype_type, low, high, lowest: float, end: float, default_low: float, default_high: float) -> tuple:
    """[low, high) within what the dtype can hold."""
    low, high = default_low if low is None else low, default_high if high is None else high
    if any(isinstance(v, float) and math.isnan(v) for v in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    if low == high and dtype.category >= 2:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 "
            "and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=4,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < lowest or low >= end:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{lowest}, {end})"
        )
    low, high = (min(max(v, lowest), end) for v in (low, high))
    return (math.ceil(low), math.ceil(high)) if dtype.category < 2 else (low, high)
