"""The array library behind a device, copies between devices, and work on large arrays split over threads.

`library(device)` is the seam at which another array library (CuPy) enters: kernels name `xp`, never NumPy. `to_host`,
`to_device` and `assign` are the only ways from one library's arrays to another's. `split_elementwise`
runs an element-wise function over chunks of large arrays on a small pool of threads (NumPy releases the GIL).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .cupy_library import load, loaded, place
from .device import device
from .extension import extension
from .threads import run_all, thread_count

LARGE = 1 << 17  # elements; below this a thread costs more than it saves


def library(where: device):
    """The array library for a device."""
    if where.type in ("cpu", "meta"):
        return np
    if where.type == "cuda":
        return load(where)
    raise RuntimeError(f"no kernels for device type {where.type}")


def library_of(array):
    """The array library that an array belongs to."""
    if isinstance(array, np.ndarray):
        return np

    return loaded()


device_checks: list[
    Callable[[], None]
] = []  # called after the host has waited for a device: they raise what kernels found


def check_devices() -> None:
    """Raise what a kernel of a device has found wrong, where the host has just waited for it."""
    for check in device_checks:
        check()


def to_host(array) -> Any:
    """An array's numbers in NumPy: itself, or a copy of what is on a device."""
    if isinstance(array, (np.ndarray, np.generic)):
        return array
    result = array.get()
    check_devices()
    return result


def readable(array: np.ndarray) -> np.ndarray:
    """Numbers in a dtype of NumPy's own, which become Python's: those of ml_dtypes in the next wider one."""
    if array.dtype.kind in "biufc":
        return array
    return array.astype(np.complex64 if array.dtype.name == "complex32" else np.float32)


def to_device(array, where: device):
    """An array's numbers where `where` is: itself, if it is there."""
    if where.type != "cuda":
        return to_host(array)

    return place(array, where)


_move = getattr(extension("_places"), "move", None)  # copies by tiles between two orders of memory
TURNED = 1024  # elements; below this the array library's way is as short
TOGETHER = 8  # copies on a device that are worth a kernel


def copy_over(out, value) -> None:
    """`out[...] = value` of arrays of one dtype and shape on one device; on a device, both row-major."""
    if out.__class__ is np.ndarray:
        out[...] = value
    elif out.size:
        out.data.copy_from_device_async(value.data, out.nbytes)


def copy_all_over(pairs: list[tuple]) -> None:
    """`copy_over` of each (out, value); many small ones on devices are one kernel."""
    there = [pair for pair in pairs if pair[0].__class__ is not np.ndarray]
    if len(there) >= TOGETHER:
        from .cuda_copies import copy_together

        pairs = [pair for pair in pairs if pair[0].__class__ is np.ndarray] + copy_together(there)
    for out, value in pairs:
        copy_over(out, value)


def assign(out, value) -> None:
    """`out[...] = value`, whichever device each of the two is on."""
    host = isinstance(out, np.ndarray)
    if host and not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "get"):
        if (
            out.flags.c_contiguous
            and value.flags.c_contiguous
            and out.dtype == value.dtype
            and out.shape == value.shape
        ):
            value.get(out=out)
            check_devices()
            return
        value = to_host(value)
    elif not host and isinstance(value, np.ndarray):
        value = library_of(out).asarray(value)
    elif host and out.size >= TURNED and not (out.flags.c_contiguous and value.flags.c_contiguous):
        if _move is not None and _move(out, value, out.itemsize):
            return
    out[...] = value


def empty_like(x, dtype=None):
    """A new array in the memory order of `x`, or row-major where `x` repeats elements and so has no order of its own."""
    repeats = any(s == 0 and n > 1 for s, n in zip(x.strides, x.shape, strict=True))
    return library_of(x).empty_like(x, dtype=dtype, order="C" if repeats else "K")


def strided(buffer, shape: tuple, dtype: np.dtype, offset: int, strides: tuple | None):
    """The window of a device's flat bytes from an offset, with a shape and strides, both of them in bytes; row-major without."""
    return library_of(buffer).ndarray(shape, dtype, buffer.data + offset, strides=strides)


def _keep_freed_memory() -> None:
    """Ask the C library to reuse the memory of large arrays rather than return it: fresh pages cost more than the work. Without glibc there is
    nothing to ask."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD: its largest value
        mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD


_keep_freed_memory()


def run_chunks(tasks: list) -> list:
    """Run thunks over large arrays at the same time."""
    return run_all(tasks)


def split_elementwise(function, arrays: list, out) -> None:
    """`function(*arrays, out=out)` over chunks of the flattened arrays: all of one shape, row-major, or 0-d."""
    n = thread_count()
    flats = [a.reshape(-1) if a.ndim else a for a in arrays]
    flat_out = out.reshape(-1)
    step = -(-flat_out.size // n)
    step += -step % 64

    def chunk(start: int):
        part = slice(start, start + step)
        return lambda: function(*[f[part] if f.ndim else f for f in flats], out=flat_out[part])

    run_chunks([chunk(s) for s in range(0, flat_out.size, step)])


def can_split(arrays: list, shape: tuple) -> bool:
    """Whether large arrays are row-major and of one shape, and there is more than one thread."""
    return thread_count() > 1 and all(not a.ndim or a.shape == shape and a.flags.c_contiguous for a in arrays)
