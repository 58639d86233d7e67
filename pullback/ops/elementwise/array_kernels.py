"""Small pieces of array kernels: numbers as arrays, masked values, the logistic and error functions, log(1 + exp(x)).

In: the array library and its arrays. Out: fresh arrays. A Python number costs a ufunc more than the call itself, so
kernels turn their constants into arrays of the operand's dtype first; large arrays are worked on in place.
"""

from __future__ import annotations

import numpy as np

from ...core.dtype import by_numpy
from ...core.elements import table
from ..system.scalars import check_fits

LARGE = 2048  # elements from which on many passes over an array are quicker than one slow one
_ERF_LIMIT = 3.92  # beyond, erf is 1 in single precision
# A rational approximation of erf(x) / x in x², by weighted least squares: 3.5e-7 of relative error in single precision.
_ERF_ABOVE = (2.0500995e-06, 0.00028488213, 0.003765575, 0.052748594, 0.19040544, 1.1283791)
_ERF_BELOW = (3.8091811e-05, 0.001162526, 0.014969132, 0.1141087, 0.50207517, 1.0)


def number(xp, value, like):
    """A number as a 0-d array of the dtype of `like`; numbers that do not fit wrap or become infinite.

    A complex number without imaginary part is a real one; with one, it has no place among reals.
    """
    if xp.__name__ != "numpy" and like.dtype.kind in "biufc":
        return number(np, value, like)[()]  # goes to the device with the call
    if value.__class__ is complex and like.dtype.kind != "c":
        check_fits(value, by_numpy[like.dtype])
        value = value.real
    try:
        return xp.asarray(value, dtype=like.dtype)
    except OverflowError:
        return xp.asarray(value).astype(like.dtype)


_SMALLEST, _LARGEST = 2.0**-100, 2.0**126  # what sums of squares in float32 may be, to have all their digits


def outgrown(xp, squares) -> bool:
    """Whether sums of squares in float32 have left its range where a root of them need not: they are worth float64."""
    return squares.dtype == xp.float32 and bool(((squares < _SMALLEST) | (squares > _LARGEST)).any())


def masked(xp, x, mask, value):
    """`x` with `value` (a number, or an array) where `mask` holds. All are of one shape, or `value` is a number."""
    value = value if hasattr(value, "dtype") else number(xp, value, x)
    if x.size >= LARGE:
        return xp.where(mask, value, x)
    out = xp.array(x)
    xp.copyto(out, value, where=mask)
    return out


def logistic(xp, x):
    """1 / (1 + exp(-x)): no overflow, as exp(-x) may be infinite."""
    if xp is np and (loop := table.get("sigmoid.default", {}).get(())) is not None and x.dtype.char == "f":
        return loop(x)
    out = xp.empty_like(x)
    xp.negative(x, out=out)
    xp.exp(out, out=out)
    xp.add(out, number(xp, 1, out), out=out)
    return xp.reciprocal(out, out=out)


def log1pexp(xp, x):
    """log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)): no overflow, and exact far below zero."""
    out = xp.empty_like(x)
    xp.abs(x, out=out)
    xp.negative(out, out=out)
    xp.exp(out, out=out)
    _log1p_of(xp, out.dtype)(out, out=out)
    return xp.add(out, xp.maximum(x, number(xp, 0, x)), out=out)


def _log1p_of(xp, dtype):
    """The ufunc in C, whose loop is vectorised; the array library's where there is none."""
    return table.get("log1p.default", {}).get((), xp.log1p) if xp is np and dtype == np.float32 else xp.log1p


def erf(xp, x):
    """The error function."""
    if xp.__name__ != "numpy":
        from cupyx.scipy.special import erf as erf_on_device

        return erf_on_device(x)
    if x.dtype != xp.float32 or x.size < LARGE:
        from scipy import special

        return special.erf(x)
    limit = number(xp, _ERF_LIMIT, x)
    x = xp.minimum(xp.maximum(x, -limit), limit)
    square = x * x
    out = _polynomial(xp, square, _ERF_ABOVE)
    xp.divide(out, _polynomial(xp, square, _ERF_BELOW), out=out)
    xp.multiply(out, x, out=out)
    one = number(xp, 1, x)
    return xp.minimum(xp.maximum(out, -one, out=out), one, out=out)


def _polynomial(xp, x, coefficients: tuple):
    out = xp.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        xp.multiply(out, x, out=out)
        xp.add(out, number(xp, c, x), out=out)
    return out
