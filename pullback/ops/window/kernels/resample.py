"""Resampling to another size: nearest, linear and cubic interpolation, and antialiased filters.

Comes in: x (N, C, spatial...), the wanted size, and for each axis the scale the user asked for (None: the ratio of
sizes). Goes out: x resampled, or what meets x. Always holds: every method is a product of one sparse map per axis, so
forward and backward are `apply_all` of the maps or of their transposes. Source coordinates are computed in float32
unless x is float64, as users of the reference expect: nearest would else pick other pixels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from .axis_map import AxisMap, Tap, apply_all, may_keep, selection, transposed
from .geometry import Array, Ints, narrow_to, widen

Scales = Sequence[float | None]


def resample(xp: Any, x: Array, out: Ints, scales: Scales, method: str, align_corners: bool = False) -> Array:
    """x at spatial size `out`. Methods: nearest, nearest-exact, linear, cubic, linear-aa, cubic-aa, lanczos-aa."""
    maps = axis_maps(xp, x.shape[2:], out, scales, method, align_corners, _coordinate_dtype(x))
    if method.startswith("nearest"):
        return apply_all(xp, x, maps)
    if x.dtype.name == "uint8":
        return _resample_bytes(xp, x, maps)
    return narrow_to(apply_all(xp, widen(x), maps), x.dtype)


def _resample_bytes(xp: Any, x: Array, maps: list[AxisMap | None]) -> Array:
    """Bytes as image libraries resample them: width first, in fixed point, rounded to bytes after each axis."""
    for axis in range(x.ndim - 1, 1, -1):
        m = maps[axis - 2]
        if m is None or m.taps[0].weight is None:
            continue
        bits = _fixed_point_bits(max(float(xp.abs(tap.weight).max()) for tap in m.taps))
        taps = tuple(Tap(t.read, _rounded(xp, t.weight * (1 << bits)), t.select) for t in m.taps)
        wide = AxisMap(m.inputs, m.outputs, taps).apply(xp, x.astype("int32"), axis)
        x = xp.clip((wide + (1 << bits - 1)) >> bits, 0, 255).astype("uint8")
    return x


def _rounded(xp: Any, a: Array) -> Array:
    """The nearest integer, halves away from zero."""
    return (a + xp.copysign(0.5, a)).astype("int32")


def _fixed_point_bits(largest: float) -> int:
    """Bits after the point with which the largest weight still fits 16 bits, sign included."""
    bits = 0
    while bits < 22 and int(0.5 + largest * (1 << bits + 1)) < 1 << 15:
        bits += 1
    return bits


def resample_backward(xp: Any, g: Array, size: Ints, scales: Scales, method: str, align_corners: bool = False) -> Array:
    """What meets x, of spatial `size`."""
    dtype = _coordinate_dtype(g)
    if may_keep(xp, size, g.shape[2:]):
        given = zip(size, g.shape[2:], scales)
        maps = [_kept_transpose(method, n, o, scale, align_corners, dtype) for n, o, scale in given]
    else:
        maps = transposed(xp, axis_maps(xp, size, g.shape[2:], scales, method, align_corners, dtype))
    return narrow_to(apply_all(xp, widen(g), maps), g.dtype)


def axis_maps(
    xp: Any, size: Ints, out: Ints, scales: Scales, method: str, align_corners: bool, dtype: Any
) -> list[AxisMap | None]:
    """One map per axis; those of the CPU are kept, where axes are not long."""
    if may_keep(xp, size, out):
        return _all_kept(method, tuple(size), tuple(out), tuple(scales), align_corners, dtype)
    build = _METHODS[method]
    return [build(xp, n, o, scale, align_corners, dtype) for n, o, scale in zip(size, out, scales)]


@functools.lru_cache(256)
def _all_kept(method: str, size: Ints, out: Ints, scales: tuple, align_corners: bool, dtype: Any) -> list:
    return [_kept(method, n, o, scale, align_corners, dtype) for n, o, scale in zip(size, out, scales)]


@functools.lru_cache(256)
def _kept(method: str, n: int, o: int, scale: float | None, align_corners: bool, dtype: Any) -> AxisMap | None:
    found = _METHODS[method](numpy, n, o, scale, align_corners, dtype)
    return None if found is None else found.kept()


@functools.lru_cache(256)
def _kept_transpose(method: str, n: int, o: int, scale: float | None, align: bool, dtype: Any) -> AxisMap | None:
    found = _kept(method, n, o, scale, align, dtype)
    return None if found is None else found.transpose(numpy).kept()


def _coordinate_dtype(x: Array) -> str:
    return "float64" if x.dtype.name in ("float64", "uint8") else "float32"


def _nearest(xp: Any, n: int, o: int, scale: float | None, align_corners: bool, dtype: Any) -> AxisMap:
    """The entry at or before the source coordinate. Always float32, whatever x is."""
    if o == n:
        index = xp.arange(o)
    elif o == 2 * n:
        index = xp.arange(o) // 2
    else:
        index = _floor_index(xp, xp.arange(o).astype("float32") * _ratio(xp, n, o, scale, "float32"), n)
    return AxisMap(n, o, (Tap(index),))


def _nearest_exact(xp: Any, n: int, o: int, scale: float | None, align_corners: bool, dtype: Any) -> AxisMap:
    """The entry whose centre is nearest to the centre of the output entry."""
    half = xp.float32(0.5)
    at = (xp.arange(o).astype("float32") + half) * _ratio(xp, n, o, scale, "float32")
    return AxisMap(n, o, (Tap(_floor_index(xp, at, n)),))


def _linear(xp: Any, n: int, o: int, scale: float | None, align_corners: bool, dtype: Any) -> AxisMap:
    """Two neighbours, weighted by distance; before the first centre, the first entry alone."""
    if o == n:
        return AxisMap(n, o, (Tap(xp.arange(o)),))
    at = xp.maximum(_source(xp, n, o, scale, align_corners, dtype), 0)
    left = _floor_index(xp, at, n)
    t = xp.clip(at - left.astype(dtype), 0, 1)
    right = xp.minimum(left + 1, n - 1)
    return AxisMap(n, o, (Tap(left, 1 - t), Tap(right, t)))


def _cubic(xp: Any, n: int, o: int, scale: float | None, align_corners: bool, dtype: Any) -> AxisMap:
    """Four neighbours weighted by the cubic convolution kernel with a = -0.75; beyond an edge, the edge."""
    at = _source(xp, n, o, scale, align_corners, dtype)
    left = xp.floor(at)
    t = at - left
    taps = []
    for step, weight in zip((-1, 0, 1, 2), cubic_weights(t)):
        taps.append(Tap(xp.clip(left.astype("int64") + step, 0, n - 1), weight))
    return AxisMap(n, o, tuple(taps))


def cubic_weights(t: Array, a: float = -0.75) -> tuple[Array, Array, Array, Array]:
    """Weights of the entries at distance 1 + t, t, 1 - t and 2 - t."""
    s = 1 - t
    return _cubic_far(1 + t, a), _cubic_near(t, a), _cubic_near(s, a), _cubic_far(1 + s, a)


def _cubic_near(d: Array, a: float) -> Array:
    return ((a + 2) * d - (a + 3)) * d * d + 1


def _cubic_far(d: Array, a: float) -> Array:
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


def _antialiased(filter_: Callable[[Any, Array], Array], support: float) -> Callable[..., AxisMap]:
    """A builder of maps that average a neighbourhood as wide as the filter is, stretched when the axis shrinks."""

    def build(xp: Any, n: int, o: int, scale: float | None, align_corners: bool, dtype: Any) -> AxisMap:
        ratio = _aligned_ratio(xp, n, o, scale, align_corners, dtype)
        stretch = max(float(ratio), 1.0)
        reach = xp.asarray(support * stretch, dtype)
        centre = ratio * (xp.arange(o).astype(dtype) + xp.asarray(0.5, dtype))
        half = xp.asarray(0.5, dtype)
        first = xp.maximum((centre - reach + half).astype("int64"), 0)
        stop = xp.minimum((centre + reach + half).astype("int64"), n)
        at = first[:, None] + xp.arange(int((stop - first).max()))
        inside = at < stop[:, None]
        distance = (at.astype(dtype) - centre[:, None] + half) / xp.asarray(stretch, dtype)
        weight = xp.where(inside, filter_(xp, distance), 0)
        weight = weight / weight.sum(axis=1, keepdims=True)
        taps = []
        for j in range(at.shape[1]):
            rows = xp.flatnonzero(inside[:, j])
            taps.append(Tap(at[rows, j], weight[rows, j], selection(rows, o)))
        return AxisMap(n, o, tuple(taps))

    return build


def _triangle(xp: Any, d: Array) -> Array:
    return xp.maximum(1 - xp.abs(d), 0)


def _cubic_filter(xp: Any, d: Array) -> Array:
    d = xp.abs(d)
    return xp.where(d < 1, _cubic_near(d, -0.5), xp.where(d < 2, _cubic_far(d, -0.5), 0))


def _lanczos_filter(xp: Any, d: Array) -> Array:
    return xp.where(xp.abs(d) < 3, xp.sinc(d) * xp.sinc(d / 3), 0)


def _floor_index(xp: Any, at: Array, n: int) -> Array:
    return xp.minimum(xp.floor(at).astype("int64"), n - 1)


def _ratio(xp: Any, n: int, o: int, scale: float | None, dtype: Any) -> Array:
    """Source entries per output entry: from the scale the user asked for, else from the sizes."""
    if scale is not None and scale > 0:
        return xp.asarray(1.0 / scale, dtype)
    return xp.asarray(n, dtype) / xp.asarray(o, dtype)


def _aligned_ratio(xp: Any, n: int, o: int, scale: float | None, align_corners: bool, dtype: Any) -> Array:
    if not align_corners:
        return _ratio(xp, n, o, scale, dtype)
    return xp.asarray(n - 1, dtype) / xp.asarray(o - 1, dtype) if o > 1 else xp.asarray(0, dtype)


def _source(xp: Any, n: int, o: int, scale: float | None, align_corners: bool, dtype: Any) -> Array:
    """Source coordinate of each output entry, not clipped."""
    ratio, at = _aligned_ratio(xp, n, o, scale, align_corners, dtype), xp.arange(o).astype(dtype)
    if align_corners:
        return at * ratio
    half = xp.asarray(0.5, dtype)
    return (at + half) * ratio - half


_METHODS: dict[str, Callable[..., AxisMap]] = {
    "nearest": _nearest,
    "nearest-exact": _nearest_exact,
    "linear": _linear,
    "cubic": _cubic,
    "linear-aa": _antialiased(_triangle, 1.0),
    "cubic-aa": _antialiased(_cubic_filter, 2.0),
    "lanczos-aa": _antialiased(_lanczos_filter, 3.0),
}
