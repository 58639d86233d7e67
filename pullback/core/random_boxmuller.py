"""Box-Muller in float32, to the last bit of PyTorch's vector kernel.

In come uniform float32 numbers in [0, 1), a multiple of 16 of them; out come standard normal ones, in the same memory.
In each block of 16, number j gives the radius and number j + 8 the angle of the pair (j, j + 8).

PyTorch evaluates logarithm, sine and cosine by the polynomials of the Cephes library in float32, with fused
multiply-adds where a product is added to. The same numbers come out only if every rounding happens where it happens
there: a fused step is done in float64, where the product of two float32 numbers is exact, and rounded to float32 once.
The inputs have 24 bits, so that every logarithm, sine and cosine that can occur has been compared.
"""

from __future__ import annotations

import numpy as np

from .extension import extension

_draws = extension("_draws")

F32, F64, I32 = np.float32, np.float64, np.int32
BLOCKS_AT_ONCE = 4096  # the scratch arrays of this many blocks of 16 stay in the second-level cache


def _coefficients(*values: float) -> tuple[np.float64, ...]:
    """Constants rounded to float32, held as float64."""
    return tuple(F64(F32(v)) for v in values)


LOG = _coefficients(
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
SIN = _coefficients(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COS = _coefficients(2.443315711809948e-005, -1.388731625493765e-003, 4.166664568298827e-002)
LN2_HIGH, LN2_LOW = F32(0.693359375), F32(-2.12194440e-4)
# Minus pi / 4 is subtracted in three parts there, the first two without rounding: one step in float64 gives the same.
MINUS_PI_4 = sum(_coefficients(-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8))
SQRT_HALF_BITS = I32(0x3F3504F3)
TWO_PI = F32(2.0 * np.pi)
FOUR_OVER_PI = F32(1.27323954473516)


def box_muller(uniform: np.ndarray) -> np.ndarray:
    """Turn uniform numbers into normal ones in place, in C where that is built."""
    if _draws is not None and uniform.flags.c_contiguous and uniform.dtype == F32:
        _draws.box_muller(uniform)
        return uniform
    return box_muller_arrays(uniform)


def box_muller_arrays(uniform: np.ndarray) -> np.ndarray:
    """The same by the array library."""
    blocks = uniform.reshape(-1, 16)
    for start in range(0, len(blocks), BLOCKS_AT_ONCE):
        part = blocks[start : start + BLOCKS_AT_ONCE]
        radius = _log(F32(1) - part[:, :8])  # 1 - u lies in (0, 1]: its logarithm is finite
        radius *= F32(-2)
        np.sqrt(radius, out=radius)
        sine, cosine = _sin_cos(part[:, 8:] * TWO_PI)
        np.multiply(cosine, radius, out=part[:, :8])
        np.multiply(sine, radius, out=part[:, 8:])
    return uniform


def _horner(x: np.ndarray, coefficients: tuple, wide: np.ndarray, out: np.ndarray) -> None:
    """The polynomial at x (float64 numbers of float32 precision), rounded to float32 after each fused step."""
    np.multiply(x, coefficients[0], out=wide)
    for c in coefficients[1:-1]:
        wide += c
        out[...] = wide
        wide[...] = out
        wide *= x
    wide += coefficients[-1]
    out[...] = wide


def _log(x: np.ndarray) -> np.ndarray:
    """The natural logarithm of positive normal numbers."""
    bits = x.view(I32)
    exponent = bits - SQRT_HALF_BITS
    exponent >>= 23
    x = (bits - (exponent << 23)).view(F32)  # x is now between sqrt(1/2) and sqrt(2), and a power of two is apart
    power = exponent.astype(F32)
    x -= F32(1)
    x64 = x.astype(F64)
    wide = np.empty_like(x64)
    y = np.empty_like(x)
    _horner(x64, LOG, wide, y)
    y *= x
    square = x * x
    wide[...] = y
    x64[...] = square
    wide *= x64
    wide += power * LN2_LOW
    y[...] = wide
    square *= F32(0.5)
    y -= square
    x += y
    power *= LN2_HIGH
    x += power
    return x


def _sin_cos(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine of angles in [0, 2 pi]; `x` is used up."""
    octant = (x * FOUR_OVER_PI).astype(I32)
    octant += I32(1)
    octant &= I32(-2)
    wide = octant.astype(F64)
    wide *= MINUS_PI_4
    wide += x
    x[...] = wide
    z = x * x
    z64 = z.astype(F64)
    sine, cosine = np.empty_like(x), np.empty_like(x)
    _horner(z64, COS, wide, cosine)
    cosine *= z
    wide[...] = cosine
    wide *= z64
    wide -= z64 * 0.5
    cosine[...] = wide
    cosine += F32(1)
    _horner(z64, SIN, wide, sine)
    sine *= z
    z64[...] = x
    wide[...] = sine
    wide *= z64
    wide += z64
    sine[...] = wide
    _place(octant, sine.view(I32), cosine.view(I32))
    return sine, cosine


def _place(octant: np.ndarray, sine: np.ndarray, cosine: np.ndarray) -> None:
    """Exchange sine and cosine in every other quarter and set their signs, on the bits of the floats."""
    change = octant & I32(2)
    change <<= 30
    change >>= 31  # all ones where the two are exchanged
    change &= sine ^ cosine
    sine ^= change
    cosine ^= change
    sine ^= (octant & I32(4)) << 29
    octant += I32(2)
    cosine ^= (octant & I32(4)) << 29
