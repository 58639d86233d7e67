"""The plain cases of matmul, bmm and linear, computed without the general path.

Each function takes the arguments of a public call and gives the result, or None where something listens, dtypes differ,
shapes do not fit or more would have to be recorded than it does: then the general path decides, and raises what there
is to raise.
"""

from __future__ import annotations

import numpy as np

from ...core import small
from ...core.modes import ambient
from ...core.tensor import Tensor, view_of, wrap
from ...runtime.products import multiply
from ..eager.functions import all_plain, bypassing
from ..eager.products import DIRECT
from ..eager.views import plain_view
from ..family.contraction import product
from ..shape.shapes import unsafe_view
from ..system.operator import registry

# What matmul is made of, by the ranks of its operands.
_WITHIN_MATMUL = tuple(
    [f"{name}.default" for name in ("dot", "mv", "mm", "bmm", "expand", "view", "_unsafe_view", "unsqueeze", "t")]
) + ("transpose.int", "squeeze.dim")


def _plain(*tensors) -> bool:
    return ambient.mode < 2 and all_plain(*tensors) and tensors[0].dtype in DIRECT


def _recorded(*tensors) -> bool:
    return bool(ambient.mode) and any(t._autograd is not None for t in tensors)


@bypassing(*_WITHIN_MATMUL)
def matmul(x, y) -> Tensor | None:
    """Products with batches, with a vector and of narrow floats, where nothing is recorded but a bmm or mv."""
    if not _plain(x, y):
        return _narrow_product(x, y)
    a, b = x._array, y._array
    if a.ndim == 3 and b.ndim == 3:
        return bmm(x, y)
    if a.ndim == 2 and b.ndim == 1 and _native_mv is not None and (t := _native_mv((x, y))) is not None:
        return registry["mv.default"].record(t, x, y) if _recorded(x, y) else t
    if _recorded(x, y):
        return None
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        return None
    if a.ndim > 2 and b.ndim == 2 and a.flags.c_contiguous and a.size:  # one large product instead of many
        return wrap(product(np, a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1]), x.dtype)
    try:
        result = np.asarray(product(np, a, b))
    except ValueError:
        return None
    return wrap(result if result.flags.c_contiguous else result.copy(), x.dtype)


_native_mm, _native_bmm, _native_mv = (small.table.get(f"{name}.default") for name in ("mm", "bmm", "mv"))


def _narrow_product(x, y) -> Tensor | None:
    """Of two matrices of bfloat16."""
    if _native_mm is None or ambient.mode >= 2 or not all_plain(x, y) or _recorded(x, y):
        return None
    return _native_mm((x, y)) if x._array.ndim == 2 else None


@bypassing("bmm.default")
def bmm(x, y) -> Tensor | None:
    """Products of two batches of matrices."""
    if not _plain(x, y):
        return None
    a, b = x._array, y._array
    if a.ndim != 3 or b.ndim != 3 or a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        return None
    t = None if _native_bmm is None else _native_bmm((x, y))
    if t is None:
        result = product(np, a, b)
        t = wrap(result if result.flags.c_contiguous else result.copy(), x.dtype)
    return registry["bmm.default"].record(t, x, y) if _recorded(x, y) else t


@bypassing("baddbmm.default")
def baddbmm(addend, x, y, beta=1, alpha=1) -> Tensor | None:
    """Products of two batches of matrices, added as they are to a batch of the same shape."""
    if beta.__class__ is not int or alpha.__class__ is not int or not beta == alpha == 1 or not _plain(addend, x, y):
        return None
    a, b, c = x._array, y._array, addend._array
    if a.ndim != 3 or b.ndim != 3 or a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        return None
    if c.shape != (*a.shape[:2], b.shape[2]):
        return None
    result = product(np, a, b)
    result = wrap(np.add(result, c, out=result if result.flags.c_contiguous else None, order="C"), x.dtype)
    return registry["baddbmm.default"].record(result, addend, x, y, 1, 1) if _recorded(addend, x, y) else result


@bypassing("t.default", "mm.default", "addmm.default", "view.default", "_unsafe_view.default")
def linear(x, weight, bias) -> Tensor | None:
    """x Wᵀ + b for a matrix x, or for one of more dimensions whose rows lie one after the other; recorded as what it is made of."""
    given = (x, weight) if bias is None else (x, weight, bias)
    if not _plain(*given):
        return None
    a, w = x._array, weight._array
    shape = a.shape
    if w.ndim != 2 or a.ndim < 2 or shape[-1] != w.shape[1] or bias is not None and bias._array.shape != w.shape[:1]:
        return None
    lead = None
    if a.ndim != 2:
        if not a.size or not a.flags.c_contiguous:
            return None  # whether it is a view or a copy is for `reshape` to say
        lead, a = shape[:-1], a.reshape(-1, shape[-1])
    turned = w.T
    result = multiply(a, turned, None if bias is None else bias._array)
    if not _recorded(*given):
        return _of_rows(result, lead, x.dtype, bias)
    if lead is not None:
        x = plain_view(x, a, x._offset, registry["view.default"], (x, a.shape))
    transposed = view_of(weight, turned, weight.dtype, weight._offset)
    if weight._autograd is not None:
        registry["t.default"].record(transposed, weight)
    return _of_rows(result, lead, x.dtype, bias, (x, transposed))


def _of_rows(result, lead, dtype, bias, factors: tuple = ()) -> Tensor:
    """The product of a layer, recorded where its factors are given, with its leading dimensions; of a biased one as a view."""
    t = wrap(result, dtype)
    if factors and bias is None:
        t = registry["mm.default"].record(t, *factors)
    elif factors:
        t = registry["addmm.default"].record(t, bias, *factors, 1, 1)
    if lead is None:
        return t
    size = (*lead, result.shape[1])
    if bias is not None:
        return plain_view(t, result.reshape(size), 0, registry["view.default"], (t, size))
    return unsafe_view(t, size)
