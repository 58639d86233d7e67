"""Distributions drawn by trial and error: poisson, binomial, gamma, dirichlet.

In come a generator and arrays of parameters; out comes a new array of their dtype. How many numbers an element takes
depends on the numbers themselves, so elements are drawn one after another, from a tape of doubles that is read ahead
and given back. What always holds: afterwards the generator stands where PyTorch's would, and the numbers are PyTorch's;
where its arithmetic is in float32, so is the one here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import length_hint

import numpy as np

from .random import Generator
from .random_streams import BF16, F16, F32, F64, FLOATS, require, scalar_name

READ_AHEAD = 4096
NORMAL_TAIL = float(F32.type(0.0331))  # constants that PyTorch writes as float32
THIRD = float(F32.type(1) / F32.type(3))
STIRLING = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


class Tape:
    """Uniform doubles one at a time, read ahead in blocks; leaving the block gives back what was not used."""

    def __init__(self, gen: Generator, guess: int):
        self.gen = gen
        self.block = min(max(guess, 16), READ_AHEAD)
        self.drawn = 0
        self.left: Iterator[float] = iter(())

    def __enter__(self) -> Tape:
        self.gen.lock.acquire()
        self.mark = self.gen.mark()
        return self

    def __exit__(self, *exc) -> None:
        try:
            self.gen.rewind(self.mark, 2 * (self.drawn - length_hint(self.left)))
        finally:
            self.gen.lock.release()

    def uniform(self) -> float:
        """The next number in [0, 1)."""
        for value in self.left:
            return value
        self.left = iter(self.gen.doubles(self.block).tolist())
        self.drawn += self.block
        return next(self.left)

    def normal(self) -> float:
        """The next standard normal number; every other one comes from the generator's own store."""
        waiting = self.gen.next_normal
        if waiting is not None:
            self.gen.next_normal = None
            return waiting
        angle = 2.0 * math.pi * self.uniform()
        radius = math.sqrt(-2.0 * math.log1p(-self.uniform()))
        self.gen.next_normal = radius * math.sin(angle)
        return radius * math.cos(angle)


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


# ---- poisson


def poisson(gen: Generator, rate: np.ndarray) -> np.ndarray:
    """How many events happen where `rate` are expected."""
    require("poisson_cpu", rate.dtype, FLOATS)
    with Tape(gen, 8 * rate.size) as tape:
        counts = [_poisson(tape, r) for r in rate.astype(F64).ravel().tolist()]
    out = np.array(counts, F64).reshape(rate.shape)
    return out.astype(F32).astype(rate.dtype) if rate.dtype in (F16, BF16) else out.astype(rate.dtype)


def _poisson(tape: Tape, rate: float) -> float:
    if not rate >= 0:
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    if rate >= 10:
        return _poisson_large(tape, rate)
    if rate == 0:
        return 0.0
    least, product, count = math.exp(-rate), 1.0, 0
    while True:
        product *= tape.uniform()
        if not product > least:
            return float(count)
        count += 1


def _poisson_large(tape: Tape, rate: float) -> float:
    """Hörmann's transformed rejection."""
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    inside = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = tape.uniform() - 0.5
        v = tape.uniform()
        us = 0.5 - abs(u)
        if us == 0:  # the candidate is minus infinity
            continue
        k = _floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= inside:
            return _as_int64(k)
        if k < 0 or (us < 0.013 and v > us):
            continue
        if _log(v) + math.log(inverse_alpha) - _log(a / (us * us) + b) <= -rate + k * log_rate - math.lgamma(k + 1):
            return _as_int64(k)


def _floor(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) else x


def _as_int64(k: float) -> float:
    """What comes of a count that PyTorch converts to int64: the least one where it does not fit."""
    return k if abs(k) < 2.0**63 else -(2.0**63)


# ---- binomial


def binomial(gen: Generator, count: np.ndarray, prob: np.ndarray) -> np.ndarray:
    """How many of `count` trials succeed, each with probability `prob`."""
    for name, array in (("count", count), ("prob", prob)):
        if array.dtype.kind in "biuc":
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: {scalar_name(array.dtype)}"
            )
    if count.dtype != prob.dtype:
        raise RuntimeError(f"Found dtype {scalar_name(prob.dtype)} but expected {scalar_name(count.dtype)}")
    require("binomial_cpu", count.dtype, (F32, F64))
    n, p = np.broadcast_arrays(count, prob)
    rare = np.where(p <= 0.5, p, (1.0 - p.astype(F64)).astype(p.dtype))  # the rarer outcome is counted
    drawable = (n > 0) & (p > 0) & (p < 1) & np.isfinite(n)
    counted = np.zeros(n.shape, n.dtype)
    with Tape(gen, 8 * n.size) as tape:
        counted[drawable] = [_binomial(tape, *row) for row in _binomial_rows(n[drawable], rare[drawable])]
    counted = np.where(p <= 0.5, counted, n - counted)
    counted = np.where(np.isnan(p) | np.isnan(n) | np.isinf(n) & (p < 1), n.dtype.type(math.nan), counted)
    return np.where((n <= 0) | (p <= 0), n.dtype.type(0), counted)


def _binomial_rows(n: np.ndarray, p: np.ndarray):
    """For each element what its draws need: computed in the dtype where PyTorch does so, then as Python numbers."""
    one = n.dtype.type(1)
    log_fail = np.log1p(-p.astype(F64)).astype(p.dtype)
    parts = (n, p, n * p, np.sqrt(n * p * (one - p)), p / (one - p), np.floor((n + one) * p), n + one, log_fail)
    # Integers this small are exact in float32 too; only larger ones, and fractions, have to be rounded to it.
    rounds = (n.dtype == F32) & ((n >= 1 << 23) | (n != np.floor(n)))
    return zip(*(a.astype(F64).tolist() for a in parts), rounds.tolist(), strict=True)


def _binomial(tape: Tape, n, p, mean, deviation, odds, mode, n_plus_1, log_fail, rounds) -> float:
    if mean >= 10:
        return _binomial_rejection(tape, n, p, mean, deviation, odds, mode, n_plus_1, _to_float32 if rounds else float)
    total, successes = 0.0, 0
    while True:  # the gaps between successes are geometric
        total += _ceil(_log(tape.uniform()) / log_fail)
        if total > n:
            return float(successes)
        successes += 1


def _to_float32(x: float) -> float:
    return float(F32.type(x))


def _ceil(x: float) -> float:
    return float(math.ceil(x)) if math.isfinite(x) else x


def _binomial_rejection(tape: Tape, n, p, mean, deviation, odds, mode, n_plus_1, rounded) -> float:
    """Hörmann's transformed rejection with squeeze."""
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = mean + 0.5
    inside = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * deviation
    above_mode = n - mode + 1
    while True:
        u = tape.uniform() - 0.5
        v = tape.uniform()
        us = 0.5 - abs(u)
        if us == 0:  # the candidate is infinite
            continue
        k = rounded(math.floor((2 * a / us + b) * u + c))
        if k < 0 or k > n:
            continue
        if us >= 0.07 and v <= inside:
            return k
        rest = rounded(n - k)
        above = rounded(rest + 1)
        bound = (
            (mode + 0.5) * _log((mode + 1) / (odds * above_mode))
            + n_plus_1 * _log(above_mode / above)
            + (k + 0.5) * _log(odds * above / rounded(k + 1))
            + _stirling_tail(mode)
            + _stirling_tail(n - mode)
            - _stirling_tail(k)
            - _stirling_tail(rest)
        )
        if _log(v * alpha / (a / (us * us) + b)) <= bound:
            return k


def _stirling_tail(k: float) -> float:
    """What Stirling's formula for log(k!) leaves out."""
    if k < len(STIRLING):
        return STIRLING[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


# ---- gamma, dirichlet


def standard_gamma(gen: Generator, alpha: np.ndarray) -> np.ndarray:
    """Gamma numbers with shape `alpha` and scale 1, never 0."""
    require("gamma_cpu", alpha.dtype, (F32, F64))
    out = _gamma(gen, alpha).astype(alpha.dtype)
    return _at_least_tiny(out)


def dirichlet(gen: Generator, alpha: np.ndarray) -> np.ndarray:
    """Points whose coordinates along the last axis are positive and add up to 1."""
    require("dirichlet", alpha.dtype, (F32, F64))
    gamma = _at_least_tiny(_gamma(gen, alpha.astype(F64)))
    out = (gamma / gamma.sum(axis=-1, keepdims=True) if gamma.ndim else gamma / gamma).astype(alpha.dtype)
    below_one = np.nextafter(out.dtype.type(1), out.dtype.type(0))
    return np.minimum(below_one, _at_least_tiny(out))


def _at_least_tiny(x: np.ndarray) -> np.ndarray:
    """Replace what is not above the least normal number, NaN included, by that number."""
    tiny = np.finfo(x.dtype).tiny
    return np.where(x > tiny, x, tiny)


def _gamma(gen: Generator, alpha: np.ndarray) -> np.ndarray:
    """Float64 gamma numbers, with those parts of the arithmetic in alpha's dtype that are so in PyTorch."""
    real = alpha.dtype.type
    small = alpha < 1
    inverse = np.divide(real(1), alpha, where=small, out=np.ones_like(alpha))
    d = np.where(small, alpha + real(1), alpha) - real(THIRD)
    rows = zip(*(a.astype(F64).ravel().tolist() for a in (alpha, inverse, d)), strict=True)
    with Tape(gen, 4 * alpha.size) as tape:
        values = [_gamma_one(tape, *row) for row in rows]
    return np.array(values, F64).reshape(alpha.shape)


def _gamma_one(tape: Tape, alpha: float, inverse: float, d: float) -> float:
    """Marsaglia and Tsang's method; a shape below 1 is drawn one higher and scaled down."""
    if alpha == 0:
        return 0.0
    scale = _power(1 - tape.uniform(), inverse) if alpha < 1 else 1.0
    c = 1.0 / math.sqrt(9.0 * d) if d > 0 else math.nan
    while True:
        x = tape.normal()
        y = 1.0 + c * x
        while y <= 0:
            x = tape.normal()
            y = 1.0 + c * x
        v = y * y * y
        u = 1 - tape.uniform()
        square = x * x
        if u < 1.0 - NORMAL_TAIL * square * square or math.log(u) < 0.5 * square + d * (1.0 - v + _log(v)):
            return scale * d * v


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
