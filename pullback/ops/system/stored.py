"""Tensors whose memory is not what kernels compute with: complex32, and truths on the bytes of other numbers.

In: an operator and arguments of which a tensor is of that kind, on the CPU. Out: its result, in the dtypes that its meta rule gives.
Operators compute in complex64 and round once; `x.view(torch.bool)` is true where a byte is not 0, and kernels get 0 and 1.
Such tensors carry the key `STORED`, so nothing that is made for plain tensors meets their arrays by chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtype as dtypes
from ...core.tensor import STORED, Tensor, wrap

if TYPE_CHECKING:
    from .operator import Operator

COMPUTED_IN = {dtypes.complex32: dtypes.complex64}
KEPT_IN = {dtypes.complex64: dtypes.complex32, dtypes.float32: dtypes.float16}


def on_foreign(t: Tensor) -> Tensor:
    """A tensor on memory that another wrote: where truths are bytes other than 0 and 1, it says so."""
    if t.dtype is dtypes.bool and not t._keys and (t._array.view(np.uint8) > 1).any():
        t._keys |= STORED
    return t


def widened(value: Any) -> Any:
    """An argument to compute with: tensors, and dtypes that are asked for, in the wider dtype."""
    if isinstance(value, Tensor) and value._keys & STORED:
        if value.dtype is dtypes.bool:
            return _truths(value)
        wide = COMPUTED_IN[value.dtype]
        return wrap(value._array.astype(wide.numpy), wide, value.device, value._keys & ~STORED)
    if isinstance(value, dtypes.dtype):
        return COMPUTED_IN.get(value, value)
    if isinstance(value, (tuple, list)) and any(isinstance(v, Tensor) for v in value):
        return type(value)(widened(v) for v in value)
    return value


def _truths(value: Any) -> Any:
    """An argument to compute with, where no number is complex32: truths as 0 and 1."""
    if isinstance(value, Tensor) and value._keys & STORED:
        array = np.asarray(value._array.view(np.uint8) != 0)
        return wrap(array, value.dtype, value.device, value._keys & ~STORED)
    if isinstance(value, (tuple, list)) and any(isinstance(v, Tensor) for v in value):
        return type(value)(_truths(v) for v in value)
    return value


def execute_stored(op: Operator, args: tuple) -> Any:
    """Compute in the wider dtype, and round the results to what they are kept in."""
    if not any(t.dtype in COMPUTED_IN for t in op.tensors(args)):
        return op.family.execute(op, tuple(_truths(a) for a in args))
    out = op.family.execute(op, tuple(widened(a) for a in args))
    try:
        specs: Any = op.family.meta(op, args)
    except NotImplementedError:  # sizes are data: such operators promote nothing
        specs = None
    if isinstance(out, Tensor):
        return _kept(out, specs)
    if not isinstance(out, (tuple, list)):
        return out
    each = specs if isinstance(specs, (tuple, list)) else [None] * len(out)
    kept = [_kept(t, s) for t, s in zip(out, each, strict=True)]
    return getattr(type(out), "_make", type(out))(kept)  # named tuples of the array library take fields one by one


def _kept(t: Any, spec: Any) -> Any:
    if not isinstance(t, Tensor):
        return t
    dtype = KEPT_IN.get(t.dtype, t.dtype) if spec is None else spec.dtype
    if t.dtype is dtype:
        return t
    if t._keys:  # without data, or of another layout
        return t.to(dtype)
    return wrap(t._array.astype(dtype.numpy), dtype, t.device)
