"""Small pieces of array kernels: numbers as arrays, masked values, the logistic function.

In: the array library and its arrays. Out: fresh arrays. A Python number costs a ufunc more than the call itself, so
kernels turn their constants into arrays of the operand's dtype first.
"""

from __future__ import annotations


def number(xp, value, like):
    """A number as a 0-d array of the dtype of `like`; numbers that do not fit wrap or become infinite."""
    try:
        return xp.asarray(value, dtype=like.dtype)
    except OverflowError:
        return xp.asarray(value).astype(like.dtype)


def masked(xp, x, mask, value):
    """`x` with `value` (a number, or an array) where `mask` holds. All are of one shape, or `value` is a number."""
    out = xp.array(x)
    xp.copyto(out, number(xp, value, out) if not hasattr(value, "dtype") else value, where=mask)
    return out


def logistic(xp, x):
    """1 / (1 + exp(-x)): no overflow, as exp(-x) may be infinite."""
    out = xp.empty_like(x)
    xp.negative(x, out=out)
    xp.exp(out, out=out)
    xp.add(out, number(xp, 1, out), out=out)
    return xp.reciprocal(out, out=out)
