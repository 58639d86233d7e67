"""The bottom of a call: an operator computed where its data is.

In: an operator, canonical arguments without history, and the keys of its tensors. Out: its result, nothing recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import device as devices
from ...core import dtype as dtypes
from ...core import modes
from ...core.arrays import library
from ...core.errors import no_memory
from ...core.layers import above
from ...core.modes import ambient
from ...core.tensor import CONJ, CUDA, FAKE, INFERENCE_TENSOR, LAYOUTS, META, NEG, STORED, TRANSFORMED, Tensor, wrap
from .placement import execute_on_device
from .stored import execute_stored

if TYPE_CHECKING:
    from .operator import Operator


def execute(op: Operator, args: tuple, keys: int = 0):
    """Compute: the kernel on arrays, the meta rule where there are none, the sparse rule where the layout is sparse."""
    if keys & (CONJ | NEG) and not op.declared.lazy_bits:
        args = tuple(_resolve(a) for a in args)
    if keys & (LAYOUTS | TRANSFORMED):
        return above.execute_layout(op, args, keys)
    if keys & META:
        if keys & FAKE:
            return above.execute_fake(op, args)
        _check_all_meta(op, args)
        out = op.family.run_meta(op, args)
    elif keys & CUDA:
        out = execute_on_device(op, args)
    else:
        try:
            out = execute_stored(op, args) if keys & STORED and not op.is_view else op.family.execute(op, args)
        except MemoryError as error:
            raise no_memory(error) from None
    if ambient.mode & modes.INFERENCE and not (
        (op.is_view or op.schema.returns_views) and not keys & INFERENCE_TENSOR
    ):  # a view is what its base is, `detach()` too
        mark_inference(out, args)
    return out


def _check_all_meta(op: Operator, args: tuple) -> None:
    """Raise where a tensor with data meets one without: only numbers (tensors without dimensions) and indices may."""
    if op.declared.cross_device or op.declared.indices_anywhere:
        return
    where = None
    for t in op.tensors(args):
        if t.device is devices.cpu and (not t._array.shape or t.dtype in (dtypes.int64, dtypes.int32)):
            continue
        if where is None:
            where = t.device
        elif t.device is not where:
            raise RuntimeError(f"Tensor on device {t.device} is not on the expected device {where}!")


def mark_inference(out, args: tuple) -> None:
    """Say of new tensors that they were made in inference mode."""
    for t in out if isinstance(out, (tuple, list)) else (out,):
        if isinstance(t, Tensor) and not any(t is a for a in args):
            t._keys |= INFERENCE_TENSOR


def _resolve(a):
    if isinstance(a, Tensor):
        return resolve_bits(a) if a._keys & (CONJ | NEG) else a
    if isinstance(a, tuple) and a and isinstance(a[0], Tensor):
        return tuple(_resolve(x) for x in a)
    return a


def resolve_bits(t: Tensor) -> Tensor:
    """A tensor whose array holds the numbers the tensor means: conjugation and negation carried out."""
    array = t._array
    if t._keys & META:
        return t.shallow()
    xp = library(t.device)
    if t._keys & CONJ:
        array = xp.conjugate(array, out=...)
    if t._keys & NEG:
        if t.dtype is dtypes.bool:
            raise NotImplementedError("\"neg_cpu\" not implemented for 'Bool'")
        array = xp.negative(array, out=...)
    return wrap(array, t.dtype, t.device, t._keys & ~(CONJ | NEG))
