"""Inputs that share memory, as views of one base.

In: tensors on one memory, one of which a function writes. Out: the tensor that shows all of it (`base_of`), and for
each input how it is made of that base (`Place`): so a write to one of them is a write to the base, and all others, and
their histories, follow. What always holds: `Place(t).of(base_of([..., t, ...]))` shows what `t` shows.
"""

from __future__ import annotations

from ..core import modes
from ..core.geometry import is_dense
from ..core.node import requires_grad
from ..core.storage import storage_of
from ..core.tensor import CONJ, NEG, Tensor, stride_of
from ..ops.shape.view_inverses import call
from .functionalize import geometry

OTHER_BASES = (
    "inputs that share memory, of which one is written and one requires grad, must be views of one base tensor"
)


def base_of(tensors: list[Tensor]) -> Tensor:
    """One tensor that shows all the memory that several inputs show."""
    bases = {id(b): b for t in tensors for b in [t._base if t._base is not None else t]}
    if len(bases) == 1:
        return next(iter(bases.values()))
    if any(requires_grad(t) for t in tensors):
        raise RuntimeError(OTHER_BASES)
    if len({(t.dtype, t._keys) for t in tensors}) > 1:
        raise NotImplementedError(
            "inputs of different dtypes that share memory, of which one is written, and that are no views of one base, are not implemented"
        )
    first = min(t._offset for t in tensors)
    end = max(t._offset + _span(t) for t in tensors)
    for t in tensors:
        storage_of(t)
    with modes.masked(modes.GRAD):
        return tensors[0].detach().as_strided((end - first,), (1,), first)


def _span(t: Tensor) -> int:
    if 0 in t._array.shape:
        return 0
    return 1 + sum((s - 1) * st for s, st in zip(t._array.shape, stride_of(t), strict=True))


class Place:
    """Where in its memory a tensor lies, and how it reads it."""

    def __init__(self, t: Tensor):
        self.geometry, self.dtype, self.bits = geometry(t), t.dtype, t._keys & (CONJ | NEG)

    def of(self, base: Tensor) -> Tensor:
        """The view of a base that lies here."""
        if base._keys & (CONJ | NEG):
            raise NotImplementedError(
                "inputs that share memory, of which one is written, with a conjugate base, are not implemented"
            )
        if base.dtype is not self.dtype:
            base = self._retyped(base)
        result = base.as_strided(*self.geometry)
        if self.bits & CONJ:
            result = call("_conj.default", result)
        return call("_neg_view.default", result) if self.bits & NEG else result

    def _retyped(self, base: Tensor) -> Tensor:
        """The base as pairs of its real numbers, or its pairs as complex numbers."""
        if base.dtype.is_complex and base.dtype.to_real() is self.dtype:
            return call("view_as_real.default", base)
        count = base.numel()
        if self.dtype.is_complex and self.dtype.to_real() is base.dtype and not (count % 2 or base._offset % 2):
            if is_dense(base._array.shape, stride_of(base)):
                return call("view_as_complex.default", base.as_strided((count // 2, 2), (2, 1), base._offset))
        raise NotImplementedError(
            f"inputs that share memory, of which one is written, of dtypes {base.dtype} and {self.dtype}, are not implemented"
        )
