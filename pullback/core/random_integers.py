"""Random integers: from ranges, in permutations, as categories; with PyTorch's CPU streams.

In come a generator and an array to fill, a length, or weights; out come integers. What always holds: the words drawn,
and what is made of them, are PyTorch's. Shuffles are resolved for all steps at once, not by a loop over the elements.
"""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np

from . import native
from .arrays import empty_like
from .random import Generator
from .random_streams import (
    ALL_TYPES,
    BF16,
    C_NAMES,
    F16,
    F32,
    F64,
    FLOATS,
    SMALL_INTS,
    fill_exponential,
    require,
    scalar_name,
    store,
)

INT64 = np.dtype(np.int64)
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
DIGITS = {F16: 11, BF16: 8, F32: 24, F64: 53}  # bits of a significand
EXACT_RANGE = {
    F16: (2049, "2049", "Half"),
    F32: ((1 << 24) + 1, "2^24+1", "Float"),
    F64: ((1 << 53) + 1, "2^53+1", "Double"),
}
LARGE_SHUFFLE = 0xFFFFFFFF // 20  # from here on one word is too short for an even choice
LOOPED_SHUFFLE = 1024  # up to this length a plain loop is faster


# ---- ranges


def fill_random(gen: Generator, out: np.ndarray) -> np.ndarray:
    """Every value from 0 to the dtype's largest; for floats, to the end of the run of integers that it can hold."""
    if not out.size:
        return out
    require("random_kernel_cpu", out.dtype, ALL_TYPES)
    wide = out.dtype in (F64, INT64)
    values = gen.words64(out.size) if wide else gen.words(out.size)
    values %= values.dtype.type(_default_top(out.dtype))
    return store(out, values.astype(np.int64))


def _default_top(dtype: np.dtype) -> int:
    if dtype.kind == "b":
        return 2
    return (1 << DIGITS[dtype]) + 1 if dtype in FLOATS else int(np.iinfo(dtype).max) + 1


def fill_random_range(gen: Generator, out: np.ndarray, low: int, high: int | None) -> np.ndarray:
    """Integers in [low, high); without `high` up to the dtype's largest, or all of int64 where low is its least."""
    if not INT64_MIN <= low <= INT64_MAX or high is not None and not INT64_MIN <= high <= INT64_MAX:
        raise ValueError("Overflow when unpacking long long")
    if high is None and low == INT64_MIN:
        return _fill_random_all(gen, out)
    low, last = _integer_bounds(out.dtype, low, high)
    if not out.size:
        return out
    span = last - low + 1
    # One word is enough for small ranges; the remainder favours some values by 5 % at most.
    if span < 1 << 28:
        values = gen.words(out.size)
        values %= np.uint32(span)
        return store(out, values + np.int64(low))
    values = gen.words64(out.size)
    values %= np.uint64(span)
    values += np.uint64(low % (1 << 64))  # round the end of 64 bits where low is negative
    return store(out, values.view(np.int64))


def _fill_random_all(gen: Generator, out: np.ndarray) -> np.ndarray:
    if out.dtype not in (BF16, F32, F64, INT64) and out.size:
        require("random_full_64_bits_range_kernel_cpu", out.dtype, (BF16, F32, F64, *SMALL_INTS))
        raise RuntimeError("random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16")
    return store(out, gen.words64(out.size).view(np.int64)) if out.size else out


def _integer_bounds(dtype: np.dtype, low: int, high: int | None) -> tuple[int, int]:
    """The first and the last integer to draw, moved to numbers that the dtype can hold."""
    if dtype.kind == "c":
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    floating = dtype.kind not in "biu"
    if high is not None and not low < high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if floating:
        require("random_update_from_to" if high is not None else "random_from_to_range_calc", dtype, FLOATS)
        low = _inward(dtype, low, up=True)
    if high is not None:
        high = _inward(dtype, high, up=False) if floating else high
        if not low < high:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got "
                f"from={low} >= to={high}"
            )
        last = high - 1
    else:
        last = 1 << DIGITS[dtype] if floating else 1 if dtype.kind == "b" else int(np.iinfo(dtype).max)
        if floating and not low < last:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got "
                f"from={low} > to_inc={last}"
            )
    _check_integer_bounds(dtype, low, last)
    return low, last


def _inward(dtype: np.dtype, bound: int, up: bool) -> int:
    """The bound, moved inward where rounding to the dtype would step over it."""
    inside = bound + 1 if up else bound - 1
    rounded = _rounded(dtype, inside)
    if rounded < bound if up else rounded >= bound:
        step = 1 << (abs(inside).bit_length() - DIGITS[dtype])
        return rounded + step if up else rounded - step
    return bound


def _rounded(dtype: np.dtype, value: int) -> int:
    via = np.float32(value).astype(dtype) if dtype in (F16, BF16) else dtype.type(value)
    return int(via) if np.isfinite(via) else INT64_MIN


def _check_integer_bounds(dtype: np.dtype, low: int, last: int) -> None:
    least: int | float
    most: int | float
    if dtype.kind == "b":
        least, most = 0, 1
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        least, most = int(info.min), min(int(info.max), INT64_MAX)
    else:
        most = float(ml_dtypes.finfo(dtype).max)
        least = -most
    name = C_NAMES[dtype.name]
    for label, value in (("from", low), ("to - 1", last)):
        if not least <= value <= most:
            raise RuntimeError(f"{label} is out of bounds for {name}")
    for label, value in (("from", low), ("to - 1", last)) if dtype in DIGITS else ():
        digits = DIGITS[dtype]
        if abs(value) > 1 << digits:
            warnings.warn(
                f"{label} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {name} can "
                "support discrete uniform distribution only within this range. This warning will become an error in "
                "version 1.7 release, please fix the code in advance",
                stacklevel=4,
            )


# ---- permutations


def randperm(gen: Generator, n: int, dtype: np.dtype | type = np.int64) -> np.ndarray:
    """The numbers 0 to n - 1 in random order."""
    dtype = np.dtype(dtype)
    _check_permutation(n, dtype)
    steps = np.arange(n, dtype=np.int64)
    if n < LARGE_SHUFFLE:
        # The shuffle of Fisher and Yates: element i changes places with one at or after i.
        words = gen.words(max(n - 1, 0)).astype(np.int64)
        words %= n - steps[:-1]
        words += steps[:-1]
        return shuffle(np.append(words, steps[-1:])).astype(dtype)
    # The same from inside out: element i changes places with one at or before i. Reading time and places backwards
    # makes a shuffle of the first kind of it, whose result is the inverse permutation.
    words = gen.words64(n)
    words %= (steps + 1).view(np.uint64)
    backwards = shuffle(n - 1 - words.view(np.int64)[::-1])
    out = np.empty(n, dtype)
    out[n - 1 - backwards] = (n - 1 - steps).astype(dtype)
    return out


def _check_permutation(n: int, dtype: np.dtype) -> None:
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    require("randperm", dtype, (*FLOATS, *SMALL_INTS))
    if dtype in SMALL_INTS and n - 1 > np.iinfo(dtype).max:
        raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")
    most, text, name = EXACT_RANGE.get(dtype, (n, "", ""))
    if n > most:
        raise RuntimeError(f"n cannot be greater than {text} for {name} type.")


def shuffle(target: np.ndarray) -> np.ndarray:
    """What lies where, after elements i and target[i] >= i of 0, 1, 2, ... have changed places for i = 0, 1, 2, ..."""
    if target.size <= LOOPED_SHUFFLE:
        places = list(range(target.size))
        for i, j in enumerate(target.tolist()):
            places[i], places[j] = places[j], places[i]
        return np.array(places, np.int64)
    # A place p is written by the steps that target it and is read, for the last time, by step p. So step i takes from
    # its target what the step before it with that target put there, namely what lay at that step's own place.
    steps = np.arange(target.size)
    last = np.full(target.size, -1)
    last[target] = steps
    before = _step_before(target, steps, last.copy())
    source = np.where(target == steps, before, last)  # the step that wrote a step's own place last
    first = np.where(source < 0, steps, source)
    while True:  # follow the sources to their beginning, twice as far in each round
        further = first[first]
        if np.array_equal(further, first):
            break
        first = further
    return np.where(before < 0, target, first[before])


def _step_before(target: np.ndarray, steps: np.ndarray, last: np.ndarray) -> np.ndarray:
    """For each step, the one before it with the same target, or -1. `last`, each target's last step, is used up."""
    before = np.full(steps.size, -1)
    while True:
        latest = last[target]
        rest = np.flatnonzero(latest != steps)
        if not rest.size:
            return before
        # Take the latest step of each target away; the latest of the rest is the one before it.
        target, steps, latest = target[rest], steps[rest], latest[rest]
        last[target] = steps  # of several writes to one place the last one stays
        before[latest] = last[target]


# ---- categories


def multinomial(gen: Generator, weights: np.ndarray, count: int, replacement: bool = False) -> np.ndarray:
    """`count` categories from each row of weights, as int64 indices."""
    _check_multinomial(weights, count, replacement)
    out = np.empty((*weights.shape[:-1], count), np.int64)
    if not out.size:
        return out
    if replacement and count > 1:
        _with_replacement(gen, weights, out)
    else:
        _without_replacement(gen, weights, out)
    return out


def _check_multinomial(weights: np.ndarray, count: int, replacement: bool) -> None:
    if not 0 < weights.ndim <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if weights.dtype not in FLOATS:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {scalar_name(weights.dtype)}"
        )
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and count > weights.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if weights.shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")


def _with_replacement(gen: Generator, weights: np.ndarray, out: np.ndarray) -> None:
    """Look up uniform numbers in the running sums of the weights."""
    weights = weights if weights.dtype == F64 else weights.astype(F32)
    if not (weights >= 0).all():
        raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
    if not np.isfinite(weights).all():
        raise RuntimeError("invalid multinomial distribution (encountering probability entry = infinity or NaN)")
    sums = np.cumsum(weights, axis=-1)  # one long chain of additions, in this precision, as PyTorch does it
    if not (sums[..., -1] > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    sums /= sums[..., -1:]
    sums[..., -1] = 1
    drawn = gen.doubles(out.size).reshape(out.shape)
    if out.ndim == 1:
        out[...] = np.searchsorted(sums.astype(F64), drawn)
        return
    for row, wanted, place in zip(sums.astype(F64), drawn, out, strict=True):
        place[...] = np.searchsorted(row, wanted)


def _without_replacement(gen: Generator, weights: np.ndarray, out: np.ndarray) -> None:
    """The largest of weight / exponential number: the category whose exponential clock rings first, then the next."""
    if not ((weights >= 0) & np.isfinite(weights)).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if (weights.astype(F64).sum(axis=-1) == 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    score = weights / fill_exponential(gen, empty_like(weights))
    if out.shape[-1] == 1:
        out[..., 0] = np.argmax(score, axis=-1)
    elif (first := None if np.isnan(score).any() else native.topk(score, out.shape[-1], True)) is not None:
        out[...] = first[1]
    else:
        out[...] = np.argsort(-score.astype(F64), axis=-1, kind="stable")[..., : out.shape[-1]]
