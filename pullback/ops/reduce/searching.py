"""Where values belong, which are among others, and which are distinct: searchsorted, bucketize, isin, unique.

The shapes of `unique`'s results depend on the data: they have no shape rule.
"""

from __future__ import annotations

import math
import warnings

from ...core import dtype as dtypes
from ...core.geometry import wrap_dim
from ...core.tensor import META, Tensor, wrap_dim_of_scalar
from ..family.base import composite, operator
from ..system.calls import front
from ..system.operator import NONDIFFERENTIABLE, DataDependent, Spec, missing
from ..system.overloads import overloaded, publish, resolve
from ..system.precision import rounded, wide
from ..system.scalars import exact_out
from . import sort_kernels as kernels
from .reductions import HIDDEN, not_implemented


# ---- searchsorted
def _check_search(sequence, values, out_int32, right, side, sorter):
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if not sequence._array.ndim:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if not values._array.ndim and sequence._array.ndim != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we "
            "got boundaries tensor "
            f"dim({sequence._array.ndim}) and input value's dim({values._array.ndim}) numel({values._array.size})"
        )
    if sequence._array.ndim != 1 and sequence._array.shape[:-1] != values._array.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            "tensor and input value "
            f"tensor must match, but we got boundaries tensor {list(sequence._array.shape)} and input value tensor "
            f"{list(values._array.shape)}"
        )
    _check_sorter(sequence, sorter)
    if sequence.dtype.is_complex or values.dtype.is_complex:
        raise not_implemented("searchsorted_out_cpu", sequence.dtype)
    if out_int32 and sequence._array.shape[-1] >= 1 << 31:
        raise RuntimeError(
            "torch.searchsorted(): the size of boundaries' last dimension should be less than 2147483647"
        )
    if not (sequence._keys | values._keys) & META:
        _warn_of_copies(sequence, values)


def _check_sorter(sequence, sorter) -> None:
    if sorter is None:
        return
    if sorter._array.shape != sequence._array.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{list(sequence._array.shape)}and got sorter tensor {list(sorter._array.shape)}"
        )
    if sorter.dtype is not dtypes.int64:
        raise RuntimeError(
            f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter.dtype.scalar_name}"
        )


def _warn_of_copies(sequence: Tensor, values: Tensor) -> None:
    """Rows that do not lie in one piece are copied first, in PyTorch and here."""
    for t, what in ((values, "input value"), (sequence, "boundary")):
        if not t.is_contiguous():
            warnings.warn(
                f"torch.searchsorted(): {what} tensor is non-contiguous, this will lower the performance due to extra "
                "data copy when converting non-contiguous tensor to contiguous, please use contiguous input value tensor "
                "if possible.",
                stacklevel=4,
            )


def _search(xp, sequence, values, out_int32, right, side, sorter):
    sequence, values = wide(xp, sequence), wide(xp, values)
    if sorter is not None:
        if sorter.size and (sorter.min() < 0 or sorter.max() >= sequence.shape[-1]):
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
        sequence = xp.take_along_axis(sequence, sorter, -1)
    found = kernels.search(xp, sequence, values, right or side == "right")
    return xp.asarray(found).astype(xp.int32 if out_int32 else xp.int64)


_SIDES = "*, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None"

searchsorted_tensor = operator(
    f"searchsorted.Tensor(Tensor sorted_sequence, Tensor self, {_SIDES}) -> Tensor",
    kernel=_search,
    check=_check_search,
    check_out=exact_out,
    meta=lambda sequence, self, out_int32, *rest: Spec(self._array.shape, dtypes.int32 if out_int32 else dtypes.int64),
    vjp=NONDIFFERENTIABLE,
    warns_of_order=True,
    **HIDDEN,
    cost="compute",
)


@composite(f"searchsorted.Scalar(Tensor sorted_sequence, Scalar self, {_SIDES}) -> Tensor", **HIDDEN)
def searchsorted_scalar(sorted_sequence, self, out_int32, right, side, sorter):
    value = _number_like(self, sorted_sequence)
    return searchsorted_tensor(sorted_sequence, value, out_int32=out_int32, right=right, side=side, sorter=sorter)


def _number_like(value, t: Tensor) -> Tensor:
    """A number as a tensor that compares with `t` exactly: floats against integers stay floats."""
    as_float = isinstance(value, float) and t.dtype.category < 2
    return t.new_full((), value, dtype=dtypes.float64 if as_float else t.dtype)


def searchsorted(*args, **kwargs):
    """Where each value must be inserted so that the sorted rows stay sorted."""
    out = kwargs.get("out")
    if isinstance(out, Tensor) and out.dtype is not (dtypes.int32 if kwargs.get("out_int32") else dtypes.int64):
        raise RuntimeError(
            "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) "
            "depending on "
            f"whether out_int32 flag is True, but we got output tensor's dtype {out.dtype.scalar_name} and out_int32 "
            "flag "
            f"is {bool(kwargs.get('out_int32'))}"
        )
    return resolve(searchsorted, (searchsorted_tensor, searchsorted_scalar), args, kwargs)


publish(searchsorted, "searchsorted", homes=("torch",))


def _check_boundaries(boundaries: Tensor) -> None:
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")


@composite(
    "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    warns_of_order=True,
    check_out=exact_out,
    **HIDDEN,
)
def bucketize_tensor(self, boundaries, out_int32, right):
    _check_boundaries(boundaries)
    return searchsorted_tensor(boundaries, self, out_int32=out_int32, right=right)


@composite(
    "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    check_out=exact_out,
    **HIDDEN,
)
def bucketize_scalar(self, boundaries, out_int32, right):
    _check_boundaries(boundaries)
    return searchsorted_scalar(boundaries, self, out_int32=out_int32, right=right)


overloaded("bucketize", bucketize_tensor, bucketize_scalar, homes=("torch",))


# ---- membership
def _check_isin(elements, test_elements, *rest):
    for t in (elements, test_elements):
        if t.dtype.is_complex or t.dtype is dtypes.bool:
            raise RuntimeError(f"Unsupported input type encountered for isin(): {t.dtype.scalar_name}")


isin_tensors = operator(
    "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
    "Tensor",
    kernel=lambda xp, a, b, unique, invert: xp.isin(wide(xp, a), wide(xp, b), assume_unique=False, invert=invert),
    check=_check_isin,
    meta=lambda elements, *rest: Spec(elements._array.shape, dtypes.bool),
    vjp=NONDIFFERENTIABLE,
    **HIDDEN,
)


@composite(
    "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> "
    "Tensor",
    **HIDDEN,
)
def isin_in_number(elements, test_element, assume_unique, invert):
    return elements.ne(test_element) if invert else elements.eq(test_element)


@composite(
    "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
    "Tensor",
    **HIDDEN,
)
def isin_number(element, test_elements, assume_unique, invert):
    return isin_tensors(_number_like(element, test_elements), test_elements, assume_unique=assume_unique, invert=invert)


overloaded("isin", isin_tensors, isin_in_number, isin_number, homes=("torch",))


# ---- distinct elements
def _no_shape(*args):
    raise DataDependent("unique", "the number of distinct elements")


def _check_unique(self, *rest):
    if self.dtype.is_complex:
        raise not_implemented("unique", self.dtype)


def _distinct(xp, a, inverse: bool, counts: bool):
    values, where, number = kernels.distinct(xp, wide(xp, a), inverse, counts)
    return rounded(values, a.dtype), where, number


unique2 = operator(
    "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, "
    "Tensor, Tensor)",
    kernel=lambda xp, a, sorted, inverse, counts: _distinct(xp, a, inverse, counts),
    check=_check_unique,
    meta=_no_shape,
    method=False,
    vjp=missing("_unique2"),
    cost="compute",
)

unique1 = operator(
    "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
    kernel=lambda xp, a, sorted, inverse: _distinct(xp, a, inverse, False)[:2],
    check=_check_unique,
    meta=_no_shape,
    method=False,
    vjp=missing("_unique"),
    cost="compute",
)


def _check_unique_dim(self, dim, *rest):
    if not self._array.ndim:
        wrap_dim_of_scalar(dim)
    dim = wrap_dim(dim, self._array.ndim)
    if not self._array.size and any(s == 0 for d, s in enumerate(self._array.shape) if d != dim):
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    _check_unique(self)


def _distinct_slices(xp, a, dim: int, ordered: bool):
    front = xp.moveaxis(a, dim, 0)
    rows = wide(xp, front.reshape(front.shape[0], math.prod(front.shape[1:])))
    at, inverse, counts = kernels.distinct_rows(xp, rows, ordered)
    return xp.ascontiguousarray(xp.take(a, at, axis=dim)), inverse, counts


unique_dim = operator(
    "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
    "(Tensor, Tensor, Tensor)",
    kernel=lambda xp, a, dim, sorted, inverse, counts: _distinct_slices(xp, a, dim, True),
    check=_check_unique_dim,
    meta=_no_shape,
    vjp=missing("unique_dim"),
    **HIDDEN,
    cost="compute",
)

unique_dim_consecutive = operator(
    "unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, "
    "Tensor, Tensor)",
    kernel=lambda xp, a, dim, inverse, counts: _distinct_slices(xp, a, dim, False),
    check=_check_unique_dim,
    meta=_no_shape,
    vjp=missing("unique_dim_consecutive"),
    **HIDDEN,
    cost="compute",
)


def _runs(xp, a, return_inverse, return_counts, dim):
    if dim is not None:
        return _distinct_slices(xp, a, dim, False)
    values, inverse, counts = _distinct_slices(xp, a.reshape(-1), 0, False)
    none = xp.empty(0, xp.int64)
    return values, inverse.reshape(a.shape) if return_inverse else none, counts if return_counts else none


unique_runs = operator(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> "
    "(Tensor, Tensor, Tensor)",
    kernel=_runs,
    check=lambda self, inverse, counts, dim: _check_unique(self) if dim is None else _check_unique_dim(self, dim),
    meta=_no_shape,
    vjp=missing("unique_consecutive"),
    **HIDDEN,
    cost="compute",
)


def _chosen(result, inverse: bool, counts: bool):
    """The results that were asked for: one tensor, or a tuple."""
    picked = [result[0], *([result[1]] if inverse else []), *([result[2]] if counts else [])]
    return picked[0] if len(picked) == 1 else tuple(picked)


@front("torch.unique", "Tensor.unique")
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements (or slices along `dim`), in ascending order."""
    if dim is None:
        result = unique2(input, sorted, return_inverse, return_counts)
    else:
        result = unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _chosen(result, return_inverse, return_counts)


@front("torch.unique_consecutive", "Tensor.unique_consecutive")
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first of each run of equal elements (or slices along `dim`)."""
    return _chosen(unique_runs(input, return_inverse, return_counts, dim), return_inverse, return_counts)
