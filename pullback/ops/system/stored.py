"""complex32 is storage: operators compute in complex64 and round once.

In: an operator and arguments of which a tensor is complex32, on the CPU. Out: its result, in the dtypes that its meta rule gives.
Tensors of such a dtype carry the key `STORED`, so nothing that is made for plain tensors meets their arrays by chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core import dtype as dtypes
from ...core.tensor import STORED, Tensor, wrap

if TYPE_CHECKING:
    from .operator import Operator

COMPUTED_IN = {dtypes.complex32: dtypes.complex64}
KEPT_IN = {dtypes.complex64: dtypes.complex32, dtypes.float32: dtypes.float16}


def widened(value: Any) -> Any:
    """An argument to compute with: tensors, and dtypes that are asked for, in the wider dtype."""
    if isinstance(value, Tensor) and value._keys & STORED:
        wide = COMPUTED_IN[value.dtype]
        return wrap(value._array.astype(wide.numpy), wide, value.device, value._keys & ~STORED)
    if isinstance(value, dtypes.dtype):
        return COMPUTED_IN.get(value, value)
    if isinstance(value, (tuple, list)) and any(isinstance(v, Tensor) for v in value):
        return type(value)(widened(v) for v in value)
    return value


def execute_stored(op: Operator, args: tuple) -> Any:
    """Compute in the wider dtype, and round the results to what they are kept in."""
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
