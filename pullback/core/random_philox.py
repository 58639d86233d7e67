"""The random generators of CUDA devices: Philox4x32-10, a counter that is encrypted.

In comes a seed; out come 32-bit words, made where they are used: word number n follows from the seed and n alone, so a
thousand threads draw at once. `draw_on_device` fills an array of a device with a distribution. What always holds: same
seed, same numbers, in calls of the same order; the state is the seed and an offset, sixteen bytes as PyTorch's. The
stream is Philox's own, not the one of PyTorch's kernels, whose numbers depend on how they are launched.

Distributions that are drawn by rejection are drawn on the CPU, by a generator that this one seeds, and copied.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from . import random_streams as streams
from .arrays import assign, library, to_host
from .cuda_philox import blocks_of, philox_numbers
from .cupy_library import device_count
from .device import device, indexed
from .modes import process
from .random import DEFAULT_SEED, Generator
from .random_integers import fill_random_range


class PhiloxGenerator(Generator):
    """A source of random numbers on a CUDA device: see the module's docstring. `offset` counts blocks of four words."""

    __slots__ = ("offset", "capture")
    capture: CapturedDraws | None

    def __init__(self, where: device | str):
        if not device_count():
            raise RuntimeError(f"Cannot make a generator for device type 'cuda': there is no such device ({where})")
        self.device = indexed(where)
        self.lock = threading.RLock()
        self._engine = self._bulk = None
        self.capture = None
        self._reseed(DEFAULT_SEED)

    def _reseed(self, seed: int) -> None:
        self._seed, self.offset = seed, 0

    # ---- state
    def state_bytes(self) -> np.ndarray:
        return np.array([self._seed, self.offset], np.uint64).view(np.uint8)

    def set_state_bytes(self, state: np.ndarray) -> None:
        if not isinstance(state, np.ndarray) or state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.size != 16:
            raise RuntimeError("RNG state is wrong size")
        with self.lock:
            self._seed, self.offset = (int(v) for v in np.ascontiguousarray(state).view(np.uint64))

    def clone_state(self) -> Generator:
        return _restore(self.device, self.state_bytes())

    def __reduce__(self):
        return (_restore, (self.device, self.state_bytes()))

    def get_offset(self) -> int:
        return 4 * self.offset

    def set_offset(self, offset: int) -> None:
        if offset % 4:
            raise RuntimeError("offset must be a multiple of 4")
        self.offset = offset // 4

    # ---- draws
    def _numbers(self, count: int, dtype, how: int = 0, a: Any = 0, b: Any = 0, into=None):
        if process.cuda_captures:
            return self._captured_numbers(count, dtype, how, a, b, into)
        with self.lock:
            start, self.offset = self.offset, self.offset + blocks_of(count, dtype)
        return philox_numbers(self._seed, start, count, dtype, how, a, b, into=into)

    def _captured_numbers(self, count: int, dtype, how: int, a: Any, b: Any, into):
        if self.capture is None:
            raise RuntimeError(
                "A CUDA graph is being captured, and a generator that it does not know was drawn from: "
                "see CUDAGraph.register_generator_state"
            )
        start, self.capture.count = self.capture.count, self.capture.count + blocks_of(count, dtype)
        return philox_numbers(0, start, count, dtype, how, a, b, self.capture.origin, into)

    def advance_for(self, draws: CapturedDraws) -> None:
        """Give the draws of a captured graph their place in the stream: its next run takes up from here."""
        with self.lock:
            for place, value in enumerate(
                (self.offset, self._seed)
            ):  # by kernels: in order with replays before and after
                draws.origin[place : place + 1].fill(np.uint64(value))
            self.offset += draws.count

    def words(self, count: int) -> Any:
        """The next `count` words of 32 bits, as uint32 on the device."""
        return self._numbers(count, np.uint32)

    def words64(self, count: int) -> Any:
        """The next `count` words of 64 bits, as uint64."""
        words = self.words(2 * count).reshape(2, count).astype(np.uint64)
        return words[0] << np.uint64(32) | words[1]

    def uniform(self, like, low: float = 0.0, high: float = 1.0) -> Any:
        """Uniform numbers in [low, high), in the shape of an array: float64 for its kind, else float32."""
        return self._numbers(like.size, _drawn_in(like), False, low, high).reshape(like.shape)

    def normal(self, like, mean: float = 0.0, std: float = 1.0) -> Any:
        """Normal numbers, likewise."""
        return self._numbers(like.size, _drawn_in(like), True, mean, std).reshape(like.shape)

    def fill(self, out, how: int, a: Any, b: Any) -> Any:
        """As `uniform` or `normal` or trials (`how` is 0, 1 or 2); into the array itself, where it can be."""
        kind = _drawn_in(out)
        fits = out.dtype == kind and out.flags.c_contiguous and out.data.ptr % 16 == 0
        result = self._numbers(out.size, kind, how, a, b, out if fits else None)
        return out if fits else result.reshape(out.shape)

    def fill_new(self, out, how: int, a: float, b: float) -> Any:
        """As `fill`, for an array of float32 or float64 that was just made."""
        return self._numbers(out.size, out.dtype, how, a, b, out)

    def host(self) -> Generator:
        """A generator on the CPU that the next words of this one seed."""
        return Generator().manual_seed(int(self.words64(1)[0]))


class CapturedDraws:
    """The draws of a captured graph: how many blocks, and where on the device it reads the offset and the seed to begin with."""

    def __init__(self) -> None:
        import cupy

        self.count, self.origin = 0, cupy.zeros(2, np.uint64)


def _restore(where: device, state: np.ndarray) -> PhiloxGenerator:
    result = PhiloxGenerator(where)
    result.set_state_bytes(state)
    return result


def draw_on_device(fill: Callable, generator: Generator, out, *parameters):
    """`fill(generator, out, *parameters)` for an array of a device, by the Philox stream."""
    if not isinstance(generator, PhiloxGenerator):
        raise RuntimeError(f"Expected a 'cuda' device type for generator but found '{generator.device.type}'")
    quick = _BY_PHILOX.get(fill)
    result = quick(generator, out, *parameters) if quick is not None and out.dtype.kind in "fVbiu" else None
    if result is None:
        blank = np.empty(out.shape, out.dtype)
        result = fill(generator.host(), blank, *[_on_host(p) for p in parameters])
    if result is not out:
        assign(out, result)
    return out


def _on_host(value):
    return to_host(value) if hasattr(value, "dtype") else value


def sample_on_device(xp, sample, generator: PhiloxGenerator, *parameters):
    """`sample(generator, *parameters)` on the CPU, its result on the device."""
    return xp.asarray(sample(generator.host(), *[_on_host(p) for p in parameters]))


def _drawn_in(like) -> type:
    return np.float64 if like.dtype.itemsize == 8 else np.float32


# ---- distributions: each gives new numbers of the array's shape, or None where the CPU must draw them
def _is_float(out) -> bool:
    return out.dtype.kind in "fV"


def _uniform(gen, out, low: float = 0.0, high: float = 1.0):
    return gen.fill(out, False, low, high) if _is_float(out) and high >= low else None


def _normal(gen, out, mean: float = 0.0, std: float = 1.0):
    return gen.fill(out, True, mean, std) if _is_float(out) and std >= 0 else None


def _log_normal(gen, out, mean: float = 1.0, std: float = 2.0):
    return library(gen.device).exp(gen.normal(out, mean, std)) if _is_float(out) and std > 0 else None


def _exponential(gen, out, rate: float = 1.0):
    if not _is_float(out) or not 0 < rate < math.inf:
        return None
    return -library(gen.device).log(1 - gen.uniform(out)) / rate


def _cauchy(gen, out, median: float = 0.0, sigma: float = 1.0):
    if not _is_float(out) or not sigma > 0:
        return None
    return library(gen.device).tan((gen.uniform(out) - 0.5) * math.pi) * sigma + median


def _bernoulli(gen, out, p=0.5):
    given = hasattr(p, "dtype")
    if given and (p.dtype.kind not in "fV" or not bool(((p >= 0) & (p <= 1)).all())) or not given and not 0 <= p <= 1:
        return None
    if not given:
        return gen.fill(out, 2, p, 1.0)
    return gen.uniform(p if p.shape == out.shape else out) < p


def _random_range(gen, out, low: int, high: int | None):
    if out.dtype.kind not in "iu" or high is None or not low < high:
        return None
    info = np.iinfo(out.dtype)
    if low < info.min or high - 1 > info.max:
        return None
    words = (gen.words64(out.size) % np.uint64(high - low)).astype(np.int64)
    return (words + low).reshape(out.shape)


_BY_PHILOX: dict[Callable, Callable] = {
    streams.fill_uniform: _uniform,
    streams.fill_normal: _normal,
    streams.fill_log_normal: _log_normal,
    streams.fill_exponential: _exponential,
    streams.fill_cauchy: _cauchy,
    streams.fill_bernoulli: _bernoulli,
    fill_random_range: _random_range,
}
