"""Kernels of scans: running sums, products, extremes and log-sums along one axis of an array."""

from __future__ import annotations

from ...core import native


def running_sum(xp, a, axis: int):
    """Sums of all prefixes. float32 runs in float64, so that long prefixes keep their digits."""
    if (result := native.cumsum(a, axis)) is not None:
        return result
    if a.dtype.char in "fF" and a.shape[axis] > 1024:
        return xp.cumsum(a, axis=axis, dtype=xp.float64 if a.dtype.char == "f" else xp.complex128).astype(a.dtype)
    return xp.cumsum(a, axis=axis, dtype=a.dtype)


def running_product(xp, a, axis: int):
    """Products of all prefixes."""
    return xp.cumprod(a, axis=axis, dtype=a.dtype)


def running_max(xp, a, axis: int):
    """The largest element so far, and its last place; a NaN stays."""
    return _running(xp, a, axis, xp.maximum)


def running_min(xp, a, axis: int):
    """The smallest element so far, and its last place; a NaN stays."""
    return _running(xp, a, axis, xp.minimum)


def _running(xp, a, axis: int, extreme):
    if not a.size:
        return a.copy(), xp.zeros(a.shape, xp.int64)
    values = extreme.accumulate(a, axis=axis)
    hit = (a == values) | (a != a)
    places = xp.arange(a.shape[axis]).reshape((-1, *(1,) * (a.ndim - 1 - axis)))
    return values, xp.maximum.accumulate(xp.where(hit, places, 0), axis=axis)


def running_logsumexp(xp, a, axis: int):
    """log(sum(exp)) of all prefixes, without overflow."""
    if not a.size:
        return a.copy()
    if a.dtype.kind == "c":
        return _along(xp, a, axis, lambda s, x: complex_log_sum(xp, s, x, xp.exp, xp.log))
    return xp.logaddexp.accumulate(a, axis=axis)


def complex_log_sum(xp, x, y, exponential, logarithm):
    """log(e^x + e^y) of complex numbers, from the one with the larger real part; where that is infinite it is the sum, and of
    two infinite ones the phases add up."""
    larger = x.real >= y.real
    high, low = xp.where(larger, x, y), xp.where(larger, y, x)
    total = high + logarithm(1 + exponential(low - high))
    phase = xp.angle(xp.exp(1j * x.imag) + xp.exp(1j * y.imag))
    infinite = xp.where(xp.isposinf(low.real), high.real + 1j * phase, high).astype(x.dtype)
    known = xp.where(xp.isinf(high.real), infinite, total)
    return xp.where(xp.isnan(x) | xp.isnan(y), known.dtype.type(complex(xp.nan, xp.nan)), known)


def _along(xp, a, axis: int, step):
    """A scan by a Python loop over the axis."""
    rows = xp.moveaxis(a, axis, 0)
    out = xp.empty_like(rows)
    state = out[0] = rows[0]
    for k in range(1, rows.shape[0]):
        state = out[k] = step(state, rows[k])
    return xp.ascontiguousarray(xp.moveaxis(out, 0, axis))


def affine(xp, rate, value, axis: int):
    """s[k] = value[k] + rate[k] * s[k - 1] along an axis (rate[0] is not read)."""
    rates, values = rate.swapaxes(0, axis), value.swapaxes(0, axis)
    out = xp.empty(values.shape, xp.result_type(rate, value))
    if out.shape[0]:
        state = out[0] = values[0]
    for k in range(1, out.shape[0]):
        state = out[k] = values[k] + rates[k] * state
    return xp.ascontiguousarray(out.swapaxes(0, axis))
