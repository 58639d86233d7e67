"""Orthogonal polynomials evaluated elementwise in both the argument `x` and the degree `n`.

In: two real tensors (or numbers) that broadcast together, integers promoted; a degree is truncated to an integer.
Out: a tensor of the broadcast shape, without gradient.
Always: a negative degree gives zero; inside the interval of orthogonality high-degree Chebyshev polynomials come from
their trigonometric form, everything else from the three-term recurrence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..system.operator import NONDIFFERENTIABLE
from .special import a_tensor_or_two, special_only

Array = Any
Step = Callable[[Any, Array, Array, int], Array]

# PyTorch answers NaN for Hermite degrees past these, by item size: the values overflow long before.
HERMITE_LIMIT = {4: 128, 8: 512}


def recur(xp: Any, x: Array, n: Array, active: Array, first: Array, step: Step) -> Array:
    """p_0 = 1, p_1 = first, p_{k+1} = step(p_k, p_{k-1}); each element stops at its own degree."""
    before, now = xp.ones_like(x), first
    out = xp.where(n == 0, before, now)
    top = int(xp.max(n, initial=0, where=active))
    for k in range(1, top):
        before, now = now, step(now, before, x, k)
        out = xp.where(n == k + 1, now, out)
        if k % 64 == 0 and not xp.isfinite(now[active & (n > k)]).any():
            # Nothing but infinity and NaN from here on: what is left takes the last value.
            return xp.where(n > k + 1, now, out)
    return out


def polynomial(kernel: Callable[[Any, Array, Array], Array]) -> Any:
    """Declare `special_NAME(x, n)`: broadcast, truncate the degree, give zero where it is negative."""

    def full(xp: Any, x: Array, n: Array) -> Array:
        x, n = xp.broadcast_arrays(x, n)
        if not x.size:
            return xp.empty(x.shape, x.dtype)
        degree = xp.trunc(n)
        return xp.where(degree < 0, 0, kernel(xp, x, degree)).astype(x.dtype)

    name = kernel.__name__
    schema = f"special_{name}(Tensor x, Tensor n) -> Tensor"
    check = a_tensor_or_two(f"special_{name}", "x", "n")
    return special_only(schema, kernel=full, kernel_name=f"{name}_cpu", check=check, vjp=NONDIFFERENTIABLE)


def odd(xp: Any, n: Array) -> Array:
    return xp.fmod(n, 2) != 0


def alternating(xp: Any, n: Array, size: Array) -> Array:
    """`size` with the sign (-1)^n."""
    return xp.where(odd(xp, n), -size, size)


def chebyshev(xp: Any, x: Array, n: Array, first: Array, ends: tuple[Array, Array], trig: Array, above: int) -> Array:
    """One of the four kinds on [-1, 1]: `ends` are its values at 1 and -1, `trig` its trigonometric form inside."""
    at_end = xp.abs(x) == 1
    inside = (n > above) & (xp.abs(x) < 1)
    out = recur(xp, x, n, ~(at_end | inside), first, lambda now, before, y, k: (y + y) * now - before)
    return xp.where(at_end, xp.where(x > 0, *ends), xp.where(inside, trig, out))


def kind_t(xp: Any, x: Array, n: Array, above: int) -> Array:
    one = xp.ones_like(x)
    return chebyshev(xp, x, n, x, (one, alternating(xp, n, one)), xp.cos(n * xp.arccos(x)), above)


def kind_u(xp: Any, x: Array, n: Array, above: int) -> Array:
    angle = xp.arccos(x)
    sine = xp.sin(angle)
    trig = xp.where(sine != 0, xp.sin((n + 1) * angle) / sine, (n + 1) * xp.cos((n + 1) * angle) / x)
    return chebyshev(xp, x, n, x + x, (n + 1, alternating(xp, n, n + 1)), trig, above)


def kind_v(xp: Any, x: Array, n: Array, above: int) -> Array:
    angle = xp.arccos(x)
    size = n + n + 1
    ends = xp.ones_like(x), alternating(xp, n, size)
    trig = xp.where(xp.sin(angle / 2) != 1, xp.cos((n + 0.5) * angle) / xp.cos(angle / 2), ends[1])
    return chebyshev(xp, x, n, x + x - 1, ends, trig, above)


def kind_w(xp: Any, x: Array, n: Array, above: int) -> Array:
    angle = xp.arccos(x)
    ends = n + n + 1, alternating(xp, n, xp.ones_like(x))
    trig = xp.where(xp.cos(angle / 2) != 1, xp.sin((n + 0.5) * angle) / xp.sin(angle / 2), xp.where(x > 0, *ends))
    return chebyshev(xp, x, n, x + x + 1, ends, trig, above)


@polynomial
def chebyshev_polynomial_t(xp: Any, x: Array, n: Array) -> Array:
    """Chebyshev polynomials of the first kind."""
    return kind_t(xp, x, n, 6)


@polynomial
def chebyshev_polynomial_u(xp: Any, x: Array, n: Array) -> Array:
    """Chebyshev polynomials of the second kind."""
    return kind_u(xp, x, n, 8)


@polynomial
def chebyshev_polynomial_v(xp: Any, x: Array, n: Array) -> Array:
    """Chebyshev polynomials of the third kind."""
    return kind_v(xp, x, n, 8)


@polynomial
def chebyshev_polynomial_w(xp: Any, x: Array, n: Array) -> Array:
    """Chebyshev polynomials of the fourth kind."""
    return kind_w(xp, x, n, 8)


@polynomial
def shifted_chebyshev_polynomial_t(xp: Any, x: Array, n: Array) -> Array:
    """The first kind, moved to [0, 1]."""
    return kind_t(xp, x + x - 1, n, 6)


@polynomial
def shifted_chebyshev_polynomial_u(xp: Any, x: Array, n: Array) -> Array:
    """The second kind, moved to [0, 1]."""
    return kind_u(xp, x + x - 1, n, 6)


@polynomial
def shifted_chebyshev_polynomial_v(xp: Any, x: Array, n: Array) -> Array:
    """The third kind, moved to [0, 1]."""
    return kind_v(xp, x + x - 1, n, 6)


@polynomial
def shifted_chebyshev_polynomial_w(xp: Any, x: Array, n: Array) -> Array:
    """The fourth kind, moved to [0, 1]."""
    return kind_w(xp, x + x - 1, n, 4)


def hermite(xp: Any, x: Array, n: Array, first: Array, step: Step) -> Array:
    over = n > HERMITE_LIMIT[x.dtype.itemsize]
    return xp.where(over, math.nan, recur(xp, x, n, ~over, first, step))


@polynomial
def hermite_polynomial_h(xp: Any, x: Array, n: Array) -> Array:
    """The physicist's Hermite polynomials."""
    return hermite(xp, x, n, x + x, lambda now, before, y, k: (y + y) * now - 2 * k * before)


@polynomial
def hermite_polynomial_he(xp: Any, x: Array, n: Array) -> Array:
    """The probabilist's Hermite polynomials."""
    return hermite(xp, x, n, x, lambda now, before, y, k: y * now - k * before)


@polynomial
def laguerre_polynomial_l(xp: Any, x: Array, n: Array) -> Array:
    """Laguerre polynomials."""
    at_zero = x == 0
    step: Step = lambda now, before, y, k: ((2 * k + 1 - y) * now - k * before) / (k + 1)
    return xp.where(at_zero, 1, recur(xp, x, n, ~at_zero, 1 - x, step))


@polynomial
def legendre_polynomial_p(xp: Any, x: Array, n: Array) -> Array:
    """Legendre polynomials."""
    at_end = xp.abs(x) == 1
    ends = xp.where((x > 0) | ~odd(xp, n), 1, -1)
    step: Step = lambda now, before, y, k: ((2 * k + 1) * y * now - k * before) / (k + 1)
    return xp.where(at_end, ends, recur(xp, x, n, ~at_end, x, step))
