"""Counting by bins: histc, histogram, histogramdd, bincount.

Bins are half open, the last one closed; elements outside the outer edges, and NaN, are not counted.
"""

from __future__ import annotations

import builtins
import math

from ...core import dtype as dtypes
from ...core.symbolic import holds
from ...core.tensor import Tensor
from ..family.base import composite, operator
from ..system.calls import front
from ..system.operator import NONDIFFERENTIABLE, NOT_IMPLEMENTED, DataDependent, Spec
from ..system.overloads import overloaded
from ..system.precision import rounded, wide
from ..system.return_types import result_type_named
from ..system.scalars import c_name
from .reductions import HIDDEN, not_implemented


def _check_bins(bins: int, dim: int = 0) -> None:
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}")


# ---- histc
def _check_histc(self, bins, min, max):
    _check_bins(bins)
    if min > max:
        raise RuntimeError("torch.histc: max must be larger than min")
    if self.dtype is dtypes.bool:
        raise not_implemented("linspace_cpu", self.dtype)
    if not self.dtype.is_floating_point:
        raise not_implemented("histogram_cpu", self.dtype)


def _histc(xp, a, bins, min, max):
    x = wide(xp, a).reshape(-1)
    low, high = float(min), float(max)
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low == high:
        low, high = low - 1, high + 1
    inside = x[(x >= low) & (x <= high)]
    place = ((inside - x.dtype.type(low)) * bins / x.dtype.type(high - low)).astype(xp.int64)
    return rounded(xp.bincount(xp.minimum(place, bins - 1), minlength=bins), a.dtype)


def _same_dtype(what: str, where: str = ""):
    """`check_out` of histograms: counts and edges have the dtype of the input."""

    def check(result, out) -> None:
        if out.dtype is not result.dtype:
            raise RuntimeError(
                f"torch.histogram: input tensor and {what} tensor should have the same dtype, but got input "
                f"{c_name(result.dtype)} and {what} {c_name(out.dtype)}{where}"
            )

    return check


_OUT = (_same_dtype("hist"), _same_dtype("bin_edges", " for dimension 0"))


histc = operator(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    kernel=_histc,
    check=_check_histc,
    check_out=_OUT[0],
    meta=lambda self, bins, min, max: Spec((bins,), self.dtype),
    vjp=NONDIFFERENTIABLE,
)


# ---- histogramdd: points in rows, one list of edges for each coordinate
def _check_points(self, bins, weight) -> None:
    if self._array.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    n = self._array.shape[-1]
    if len(bins) != n:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
            if not bins or not isinstance(bins[0], Tensor)
            else f"torch.histogramdd: expected {n} sequences of bin edges for a {n}-dimensional histogram but got "
            f"{len(bins)}"
        )
    if self.dtype not in (dtypes.float32, dtypes.float64):
        raise not_implemented("histogramdd", self.dtype)
    if weight is not None:
        _check_weight(self, weight)


def _check_weight(self, weight) -> None:
    if weight.dtype is not self.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            "dtype, but got input(float), "
            f"and weight({weight.dtype.name})"
        )
    if weight._array.shape != self._array.shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
            "excluding its innermost "
            f"dimension, but got input with shape {list(self._array.shape)} and weight with shape "
            f"{list(weight._array.shape)}"
        )


_CPP_NAMES = {"float32": "float", "float64": "double", "int64": "long int", "int32": "int"}


def _check_edges(self, bins, weight, density):
    _check_points(self, bins, weight)
    for d, edges in enumerate(bins):
        if edges.dtype is not self.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{_CPP_NAMES.get(self.dtype.name, self.dtype.name)} and bins for dimension {d} with dtype "
                f"{_CPP_NAMES.get(edges.dtype.name, edges.dtype.name)}"
            )
        if edges._array.ndim != 1:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have one dimension, but got {edges._array.ndim} dimensions in "
                f"the bins tensor for dimension {d}"
            )
        if not edges._array.size:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have at least 1 element, but got {edges._array.size} elements "
                f"in the bins tensor for dimension {d}"
            )


def _count(xp, points, bins, weight, density):
    """How many points (or how much weight) fall into each cell."""
    shape = tuple(len(e) - 1 for e in bins)
    x = points.reshape(math.prod(points.shape[:-1]), points.shape[-1])
    if not bins:  # no coordinate, no cell
        return xp.asarray(math.nan if density else 0, points.dtype)
    inside = xp.ones(x.shape[0], bool)
    cell = xp.zeros(x.shape[0], xp.int64)
    for d, edges in enumerate(bins):
        column = x[:, d]
        inside &= (column >= edges[0]) & (column <= edges[-1])
        cell = cell * shape[d] + xp.minimum(xp.searchsorted(edges, column, side="right") - 1, shape[d] - 1)
    w = None if weight is None else weight.reshape(-1)[inside].astype(xp.float64)
    hist = xp.bincount(cell[inside], weights=w, minlength=math.prod(shape)).reshape(shape).astype(xp.float64)
    if density:
        hist = hist / hist.sum()
        for d, edges in enumerate(bins):
            hist = hist / xp.diff(edges).reshape([-1 if i == d else 1 for i in range(len(bins))])
    return hist.astype(points.dtype)


histogramdd_counts = operator(
    "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor",
    kernel=_count,
    check=_check_edges,
    meta=lambda self, bins, weight, density: Spec(
        [len(e._array.shape) and e._array.shape[0] - 1 for e in bins], self.dtype
    ),
    vjp={"self": NOT_IMPLEMENTED, "weight": NOT_IMPLEMENTED},
    method=False,
    cost="compute",
)


def _outer_edges(xp, points, bins, range):
    """[(low, high)] of each coordinate: the range given, or that of the data, widened where it is a point."""
    n = points.shape[-1]
    if range is not None:
        if len(range) != 2 * n:
            raise RuntimeError(
                f"torch.histogramdd: for a {n}-dimensional histogram range should have {2 * n} elements, but got "
                f"{len(range)}"
            )
        pairs = [(float(range[2 * d]), float(range[2 * d + 1])) for d in builtins.range(n)]
    elif points.size:
        flat = points.reshape(-1, n)
        pairs = list(zip(flat.min(axis=0).tolist(), flat.max(axis=0).tolist(), strict=True))
    else:
        pairs = [(0.0, 1.0)] * n
    for d, (low, high) in enumerate(pairs):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.histogramdd: dimension {d}'s range [{low:g}, {high:g}] is not finite")
        if low > high:
            raise RuntimeError(
                f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {d}"
            )
        _check_bins(bins[d], d)
    return [(low, high) if low < high else (low - 0.5, high + 0.5) for low, high in pairs]


def _edges(xp, points, bins, range, weight, density):
    return [
        _even_edges(xp, low, high, k, points.dtype)
        for (low, high), k in zip(_outer_edges(xp, points, bins, range), bins, strict=True)
    ]


def _even_edges(xp, low: float, high: float, bins: int, dtype):
    """Edges at equal distances, counted from the nearer end so that both ends are exact."""
    step = (dtype.type(high) - dtype.type(low)) / dtype.type(bins)
    at = xp.arange(bins + 1).astype(dtype)
    return xp.where(at < (bins + 1) // 2, dtype.type(low) + step * at, dtype.type(high) - step * (bins - at)).astype(
        dtype
    )


histogramdd_edges = operator(
    "_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool "
    "density=False) -> Tensor[]",
    kernel=_edges,
    check=lambda self, bins, range, weight, density: _check_points(self, bins, weight),
    meta=lambda self, bins, *rest: tuple(Spec((k + 1,), self.dtype) for k in bins),
    vjp={"self": NOT_IMPLEMENTED, "weight": NOT_IMPLEMENTED},
    method=False,
    cost="compute",
)


@composite(
    "_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool "
    "density=False) -> Tensor",
    method=False,
)
def histogramdd_from_counts(self, bins, range, weight, density):
    edges = histogramdd_edges(self, bins, range=range, weight=weight, density=density)
    return histogramdd_counts(self, edges, weight=weight, density=density)


def _histogramdd(points: Tensor, bins, range, weight, density):
    tensors = isinstance(bins, (tuple, list)) and bins and isinstance(bins[0], Tensor)
    if tensors:
        return histogramdd_counts(points, bins, weight=weight, density=density), tuple(b.clone() for b in bins)
    if isinstance(bins, int):
        bins = (bins,) * (points.shape[-1] if points.ndim else 1)
    edges = histogramdd_edges(points, bins, range=range, weight=weight, density=density)
    return histogramdd_counts(points, edges, weight=weight, density=density), tuple(edges)


@front("torch.histogramdd")
def histogramdd(input, bins, range=None, weight=None, density=False):
    """A histogram of points: counts in cells of a grid, and the grid's edges."""
    result = _histogramdd(input, bins, range, weight, density)
    return result_type_named("histogramdd", ("hist", "bin_edges"))(result)


def _histogram(self: Tensor, bins, range, weight, density):
    points = self.reshape(-1, 1)
    weight = None if weight is None else weight.reshape(-1)
    hist, edges = _histogramdd(points, bins, range, weight, density)
    return hist, edges[0]


histogram_edges = composite(
    "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, "
    "Tensor bin_edges)",
    check_out=_OUT,
    **HIDDEN,
)(lambda self, bins, weight, density: _named(_histogram(self, (bins,), None, weight, density)))

histogram_count = composite(
    "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) "
    "-> (Tensor hist, Tensor bin_edges)",
    check_out=_OUT,
    **HIDDEN,
)(lambda self, bins, range, weight, density: _named(_histogram(self, (bins,), range, weight, density)))


def _named(result: tuple):
    return result_type_named("histogram", ("hist", "bin_edges"))(result)


overloaded("histogram", histogram_edges, histogram_count)


# ---- bincount
def _check_bincount(self, weights, minlength):
    if not holds(minlength >= 0):
        raise RuntimeError("minlength should be >= 0")
    if self.dtype.category != 1:
        raise not_implemented("bincount_cpu", self.dtype)
    if self._array.ndim != 1:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights._array.shape != self._array.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")


def _bincount(xp, a, weights, minlength):
    if a.size and a.min() < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return xp.bincount(a.astype(xp.int64), minlength=minlength).astype(xp.int64)
    result = xp.bincount(a.astype(xp.int64), weights=wide(xp, weights), minlength=minlength)
    return result.astype(xp.float32 if weights.dtype == xp.float32 else xp.float64)


def _bincount_meta(self, weights, minlength):
    raise DataDependent("bincount", "the length of the result")


bincount = operator(
    "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
    kernel=_bincount,
    check=_check_bincount,
    meta=_bincount_meta,
    vjp={"weights": NOT_IMPLEMENTED},
)
