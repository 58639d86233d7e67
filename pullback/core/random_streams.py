"""Distributions on the words of a generator, number for number as PyTorch's CPU kernels draw them.

In come a generator and a NumPy array to fill (or parameters, and a new array comes out). What always holds: the same
words are used, in the same order, as PyTorch uses for that distribution, dtype, size and memory layout; elements are
filled in the order in which they lie in memory; and the arithmetic is PyTorch's, with its fused multiply-adds.

So the numbers are equal to the last bit, with and without vector instructions. Float64 results pay for that: their
logarithms come from the C library one at a time, because NumPy's may differ in the last bit.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from . import dtype as dtypes
from .geometry import broadcast_shapes
from .random import Generator

F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = (F16, BF16, F32, F64)
SMALL_INTS = tuple(map(np.dtype, ("u1", "i1", "i2", "i4", "i8")))  # the integers that every kernel of PyTorch takes
ALL_TYPES = (*FLOATS, *SMALL_INTS, np.dtype("?"))
LIBM_PART = 1 << 13  # as Python numbers at one time, so that they stay in the cache
# What PyTorch's C++ calls a type in the errors on bounds.
C_NAMES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int",
    "int64": "long int", "uint16": "short unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


# ---- shared by all


def scalar_name(dtype: np.dtype) -> str:
    """PyTorch's name for the type of an element, such as 'Float'."""
    return dtypes.by_numpy[dtype].scalar_name


def require(kernel: str, dtype: np.dtype, allowed) -> None:
    """Raise PyTorch's error unless the kernel takes this dtype."""
    if dtype not in allowed:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(dtype)}'")


def memory_order(out: np.ndarray) -> list[int]:
    """The axes of an array that is to be written, outermost in memory first."""
    if any(stride == 0 and size > 1 for size, stride in zip(out.shape, out.strides, strict=True)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    return sorted(range(out.ndim), key=lambda d: -out.strides[d])


def store(out: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Write a flat array of values into `out` in memory order, rounded to its dtype."""
    if out.dtype in (F16, BF16) and values.dtype != F32:
        values = values.astype(F32)  # PyTorch has no other way into the half types: two roundings
    place = out if out.flags.c_contiguous else out.transpose(memory_order(out))
    place[...] = values.reshape(place.shape)
    return out


def real_view(out: np.ndarray) -> np.ndarray:
    """A complex array as a real one with a last axis of two."""
    half = out.itemsize // 2
    return np.lib.stride_tricks.as_strided(out.real, (*out.shape, 2), (*out.strides, half))


def libm(name: str, x: np.ndarray, precise: bool = True) -> np.ndarray:
    """An elementary function of float64 numbers: the C library's, or where the last bit will be lost, NumPy's."""
    if not precise:
        return getattr(np, name)(x)
    flat, out, function = x.reshape(-1), np.empty(x.size), LIBM[name]
    for start in range(0, x.size, LIBM_PART):
        part = flat[start : start + LIBM_PART]
        out[start : start + LIBM_PART] = np.fromiter(map(function, part.tolist()), F64, part.size)
    return out.reshape(x.shape)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


LIBM = {"log": math.log, "log1p": math.log1p, "tan": math.tan, "exp": _exp}


def fused(a: np.ndarray, b: float, c: float) -> np.ndarray:
    """a * b + c of float64 numbers with one rounding, as the processor's fused multiply-add has it."""
    product = a * b
    if c == 0 or math.frexp(b)[0] in (0.5, -0.5, 0.0) or not (math.isfinite(b) and math.isfinite(c)):
        return product + c  # the product is exact, or the sum is
    # Product and sum as exact pairs; what is left over is rounded to odd, so that the last sum rounds as if it saw all of it.
    low_a, low_b = a - _upper(a), b - float(_upper(np.float64(b)))
    high_a, high_b = a - low_a, b - low_b
    lost = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    near, far = _exact_sum(c, lost)
    total, rest = _exact_sum(product, near)
    result = total + _sum_to_odd(far, rest)
    return np.where(np.isfinite(result), result, product + c)


def _exact_sum(a, b) -> tuple:
    """a + b, and what its rounding lost."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _sum_to_odd(a, b) -> np.ndarray:
    """a + b; where that is not exact, the neighbour of the true sum whose last bit is set."""
    total, lost = _exact_sum(a, b)
    even = np.asarray(total).view(np.int64) & 1 == 0
    return np.where((lost != 0) & even, np.nextafter(total, np.copysign(np.inf, lost)), total)


def _upper(x):
    """The upper half of the significands: what is left fits 26 bits, so products of halves are exact."""
    scaled = x * 134217729.0  # 2**27 + 1
    return scaled - (scaled - x)


def narrow_fused(a: np.ndarray, b: np.float32, c: np.float32) -> np.ndarray:
    """a * b + c of float32 numbers with one rounding: the product of two float32 is exact in float64."""
    wide = a.astype(F64)
    wide *= np.float64(b)
    wide += np.float64(c)
    return wide.astype(F32)


# ---- uniform


def fill_uniform(gen: Generator, out: np.ndarray, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Uniform numbers in [low, high)."""
    if out.dtype.kind == "c":
        if out.size:
            fill_uniform(gen, real_view(out), low, high)
        return out
    require("check_uniform_bounds", out.dtype, FLOATS)
    low, high = float(low), float(high)
    if (low, high) != (0.0, 1.0):
        _check_uniform_bounds(out.dtype, low, high)
    if not out.size:
        return out
    if out.dtype == F64:
        values = gen.doubles(out.size)
        if (low, high) == (0.0, 1.0):
            return store(out, values)
        values = fused(values, high - low, low)
    else:
        values = gen.floats(out.size)
        if (low, high) != (0.0, 1.0):
            values = narrow_fused(values, np.float32(high) - np.float32(low), np.float32(low))
        elif out.dtype == F32:
            return store(out, values)
        values = values.astype(out.dtype)
    # Rounding may have led up to `high`, which is outside.
    values[values == out.dtype.type(high)] = out.dtype.type(low)
    return store(out, values)


def _check_uniform_bounds(dtype: np.dtype, low: float, high: float) -> None:
    limit = float(ml_dtypes.finfo(dtype).max)
    for name, value in (("from", low), ("to", high)):
        if not -limit <= value <= limit:
            raise RuntimeError(f"{name} is out of bounds for {C_NAMES[dtype.name]}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > limit:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{scalar_name(dtype)}>::max(), but found to={high:g} and "
            f"from={low:g} which result in to-from to exceed the limit"
        )


# ---- normal


def fill_normal(gen: Generator, out: np.ndarray, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
    """Normal numbers. Contiguous arrays of 16 and more are filled by blocks of 16, others number by number."""
    mean, std = float(mean), float(std)
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if not out.size:
        return out
    if out.dtype.kind == "c":
        fill_normal(gen, real_view(out), mean, std / math.sqrt(2))
        return out
    require("normal_kernel_cpu", out.dtype, FLOATS)
    if out.size < 16 or not out.flags.c_contiguous:
        return store(out, fused(single_normals(gen, out.size, out.dtype == F64), std, mean))
    return _fill_normal_blocks(gen, out, mean, std)


def single_normals(gen: Generator, count: int, precise: bool = True) -> np.ndarray:
    """Standard normal float64 numbers one by one; a pair's second number waits in the generator for the next call."""
    out = np.empty(count)
    with gen.lock:
        waiting = gen.next_normal
        start = 0 if waiting is None or not count else 1
        if start:
            out[0], gen.next_normal = waiting, None
        wanted = count - start
        if wanted:
            turn, distance = gen.doubles(wanted + wanted % 2).reshape(-1, 2).T
            radius = np.sqrt(-2.0 * libm("log1p", -distance, precise))
            angle = 2.0 * math.pi * turn
            pairs = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1).reshape(-1)
            out[start:] = pairs[:wanted]
            if wanted % 2:
                gen.next_normal = math.sqrt(-2.0 * math.log1p(-distance[-1])) * math.sin(angle[-1])
    return out


def _fill_normal_blocks(gen: Generator, out: np.ndarray, mean: float, std: float) -> np.ndarray:
    draw, transform = (gen.doubles, _normal_blocks64) if out.dtype == F64 else (gen.floats, _normal_blocks32)
    whole = out.size // 16 * 16
    flat = out.reshape(-1)
    if whole == out.size:
        flat[...] = transform(draw(whole), mean, std)
        return out
    # The last 16 are made anew, from 16 numbers more, over some that were there. Before that, float32 and float64 have
    # drawn a uniform number for every element, the half types for whole blocks only.
    drawn = draw(16 + (out.size if out.dtype in (F32, F64) else whole))
    values = transform(np.concatenate((drawn[:whole], drawn[-16:])), mean, std)
    flat[:whole], flat[-16:] = values[:whole], values[whole:]
    return out


def _normal_blocks64(uniform: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Box-Muller on blocks of 16: number j and number j + 8 make a pair."""
    blocks = uniform.reshape(-1, 16)
    radius = np.sqrt(-2.0 * libm("log", 1.0 - blocks[:, :8]))
    angle = 2.0 * math.pi * blocks[:, 8:]
    np.multiply(radius, np.cos(angle), out=blocks[:, :8])
    np.multiply(radius, np.sin(angle), out=blocks[:, 8:])
    return fused(blocks.reshape(-1), std, mean)


def _normal_blocks32(uniform: np.ndarray, mean: float, std: float) -> np.ndarray:
    from .random_boxmuller import box_muller

    normal = box_muller(uniform)
    mean32, std32 = np.float32(mean), np.float32(std)
    if mean32 == 0:
        normal *= std32
        normal += np.float32(0)  # as the fused add does: no negative zero
        return normal
    return narrow_fused(normal, std32, mean32)


def normal(gen: Generator, mean: np.ndarray | float, std: np.ndarray | float) -> np.ndarray:
    """Normal numbers with a mean and a standard deviation for each; at least one of the two is an array."""
    if isinstance(std, np.ndarray):
        if std.dtype.kind == "c":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if std.size and not std.min() >= 0:
            raise RuntimeError("normal expects all elements of std >= 0.0")
    like = np.asarray(mean if isinstance(mean, np.ndarray) else std)
    out = np.empty(broadcast_shapes(np.shape(mean), np.shape(std)), like.dtype)
    if isinstance(std, np.ndarray):
        out = (fill_normal(gen, out) * std).astype(out.dtype)  # rounded here and again below, as PyTorch's two steps
    else:
        fill_normal(gen, out, 0.0, std)
    return (out + (mean if isinstance(mean, np.ndarray) else out.dtype.type(mean))).astype(out.dtype)


# ---- from one uniform or normal number each


def fill_log_normal(gen: Generator, out: np.ndarray, mean: float = 1.0, std: float = 2.0) -> np.ndarray:
    """Exponentials of normal numbers."""
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if not out.size:
        return out
    require("log_normal_cpu", out.dtype, FLOATS)
    precise = out.dtype == F64
    return store(out, libm("exp", fused(single_normals(gen, out.size, precise), float(std), float(mean)), precise))


def fill_exponential(gen: Generator, out: np.ndarray, rate: float = 1.0) -> np.ndarray:
    """Exponential numbers with the given rate."""
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    if not out.size:
        return out
    if out.dtype not in FLOATS:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {scalar_name(out.dtype)}"
        )
    return store(out, -1.0 / rate * libm("log1p", -gen.doubles(out.size), out.dtype == F64))


def fill_geometric(gen: Generator, out: np.ndarray, p: float) -> np.ndarray:
    """How many trials until the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if not out.size:
        return out
    require("geometric_cpu", out.dtype, (*FLOATS, *SMALL_INTS))
    return store(out, np.ceil(np.log(gen.doubles(out.size)) / math.log1p(-p)))


def fill_cauchy(gen: Generator, out: np.ndarray, median: float = 0.0, sigma: float = 1.0) -> np.ndarray:
    """Cauchy numbers."""
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if out.dtype not in FLOATS:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {C_NAMES[out.dtype.name]}"
        )
    if not out.size:
        return out
    tangent = libm("tan", math.pi * (gen.doubles(out.size) - 0.5), out.dtype == F64)
    return store(out, fused(tangent, float(sigma), float(median)))


# ---- bernoulli, dropout, rrelu


def fill_bernoulli(gen: Generator, out: np.ndarray, p: float | np.ndarray = 0.5) -> np.ndarray:
    """Ones with probability p, else zeros; p is a number or an array that broadcasts to `out`."""
    if isinstance(p, np.ndarray):
        return _fill_bernoulli_each(gen, out, p)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if not out.size:
        return out
    require("bernoulli_scalar_cpu_", out.dtype, ALL_TYPES)
    order = None if out.flags.c_contiguous else memory_order(out)
    words = gen.words64(out.size)
    words &= np.uint64((1 << 53) - 1)
    place = out if order is None else out.transpose(order)
    # The words are 2**53 times the uniform numbers, exactly: no need to make the numbers.
    place[...] = (words < np.uint64(math.ceil(math.ldexp(p, 53)))).reshape(place.shape)
    return out


def _fill_bernoulli_each(gen: Generator, out: np.ndarray, p: np.ndarray) -> np.ndarray:
    if not out.size:
        return out
    order = memory_order(out)
    require("bernoulli_tensor_cpu_self_", out.dtype, ALL_TYPES)
    require("bernoulli_tensor_cpu_p_", p.dtype, FLOATS)
    if not ((p >= 0) & (p <= 1)).all():
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  "
            "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    check_expandable(p.shape, out.shape)
    place = out.transpose(order)
    each = np.broadcast_to(p, out.shape).transpose(order)
    draw, wide = (gen.doubles, F64) if p.dtype == F64 else (gen.floats, F32)
    place[...] = draw(out.size).reshape(place.shape) < each.astype(wide)
    return out


def check_expandable(shape: tuple, target: tuple) -> None:
    """Raise PyTorch's error unless an array of `shape` can be expanded to `target`."""
    for back in range(1, len(shape) + 1):
        size, wanted = shape[-back], target[-back] if back <= len(target) else 1
        if size not in (1, wanted) or back > len(target):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({size}) at non-singleton "
                f"dimension {len(target) - back}.  Target sizes: {list(target)}.  Tensor sizes: {list(shape)}"
            )


def fill_dropout(gen: Generator, out: np.ndarray, p: float) -> np.ndarray:
    """The factors of dropout: 0 with probability p, else 1 / (1 - p); all 0 where p is 1."""
    if p == 1:
        out[...] = 0
        return out
    fill_bernoulli(gen, out, 1.0 - p)
    real = F64 if out.dtype == F64 else F32
    out *= (real.type(1) / real.type(1.0 - p)).astype(out.dtype)  # of zeros and ones, so this is as good as dividing
    return out


def rrelu_noise(gen: Generator, x: np.ndarray, lower: float, upper: float) -> np.ndarray:
    """The slope for each element: uniform in [lower, upper) where x <= 0, and 1, without a draw, elsewhere."""
    require("rrelu_with_noise_out_cpu", x.dtype, (F32, F64, BF16))
    bound = F64.type if x.dtype == F64 else F32.type
    lower, upper = float(bound(lower)), float(bound(upper))
    noise = np.ones(x.shape, x.dtype)
    drawn = x <= 0
    noise[drawn] = gen.doubles(int(drawn.sum())) * (upper - lower) + lower
    return noise
