"""CuPy as the array library of CUDA devices: its functions under NumPy's names and with NumPy's meaning.

`load(device)` gives the library, or raises PyTorch's words where there is no CuPy or no such device. What CuPy lacks is
filled in here: `out=...`, ufunc methods, a few functions. Whatever remains and has no kernel on the device is computed by
NumPy through `on_cpu`, the one place in this library where numbers leave the device; its results are back on the device.
Nothing here is imported, and CuPy neither, before a CUDA device is first asked about.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
from functools import cache, wraps
from typing import Any

import numpy as np

from .device import device
from .modes import process

NO_CUDA = "Torch not compiled with CUDA enabled"
_HELP = "CUDA devices need CuPy and an NVIDIA driver: pip install 'pullback[cuda]'"
_CONSTANTS = (type, int, float, bool, str, type(None))


@cache
def device_count() -> int:
    """How many CUDA devices can be used: none without CuPy or without a driver."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1") or importlib.util.find_spec("cupy") is None:
        return 0
    try:
        import cupy

        counted = _counted_by_driver(cupy.cuda.runtime.runtimeGetVersion())
        return cupy.cuda.runtime.getDeviceCount() if counted is None else counted
    except Exception:  # an installation that does not fit the driver is no device: `load` says what is missing
        return 0


def _counted_by_driver(needed: int) -> int | None:
    """The devices that the driver's management library counts; None where it cannot say. `needed`: CUDA's version here.

    CUDA itself would count as well, but a process that it was initialised in can no longer fork ones that use it.
    """
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if seen is not None and not seen.replace(",", "").isdigit():
        return None
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        ctypes.CDLL("libcuda.so.1")
        count, version = ctypes.c_uint(), ctypes.c_int()
        wrong = (
            library.nvmlInit_v2()
            or library.nvmlDeviceGetCount_v2(ctypes.byref(count))
            or library.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(version))
        )
    except (OSError, AttributeError):
        return None
    if wrong or version.value // 1000 < needed // 1000:
        return None
    return count.value if seen is None else _visible(seen, count.value)


def _visible(seen: str, count: int) -> int:
    """How many devices a list of numbers names, up to the first that is not there."""
    result = 0
    for number in seen.split(","):
        if not number or int(number) >= count:
            break
        result += 1
    return result


def loaded_library(name: str) -> str:
    """The path of a library that this process has loaded."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.rstrip("\n").split(maxsplit=5)[-1]
            if os.path.basename(path).startswith(name):
                return path
    raise OSError(f"{name} is not loaded: CuPy has not found it")


def load(where: device) -> Library:
    """The library of a CUDA device, or PyTorch's error where that device is not there."""
    if not device_count():
        raise AssertionError(f"{NO_CUDA}. {_HELP}")
    if (where.index or 0) >= device_count():
        raise RuntimeError(
            "CUDA error: invalid device ordinal\n"
            f"{where} was asked for, and there are {device_count()} CUDA devices, numbered from 0."
        )
    return loaded()


@cache
def loaded() -> Library:
    """The library, made at first need."""
    return Library()


def use_matmul_precision(precision: str) -> None:
    """Let products of float32 on devices use TF32, unless they are to be of the "highest" precision."""
    process.matmul_precision = precision
    if loaded.cache_info().currsize:
        loaded().use_tf32(precision != "highest")


def place(array, where: device):
    """An array on a CUDA device: itself, or a copy of the same order in memory."""
    load(where)
    import cupy

    if isinstance(array, (np.ndarray, np.generic)) or array.device.id != where.index:
        with cupy.cuda.Device(where.index or 0):
            return cupy.array(array, order="K")
    return array


def pinned_like(array: np.ndarray) -> np.ndarray:
    """A blank row-major array in locked memory."""
    load(device("cuda", 0))
    import cupyx

    return cupyx.empty_pinned(array.shape, array.dtype)


def is_pinned(array) -> bool:
    """Whether an array of NumPy's, or what it is a view of, is locked memory."""
    while isinstance(array, np.ndarray):
        array = array.base
    return "pinned" in type(array).__name__.lower()


def on_cpu(function):
    """A NumPy function for arrays on a device: what CuPy has no kernel for goes over the CPU, and comes back."""

    @wraps(function)
    def over(*args, **kwargs):
        import cupy

        result = function(*[_host(a) for a in args], **{k: _host(v) for k, v in kwargs.items()})
        return tuple(cupy.asarray(m) for m in result) if isinstance(result, tuple) else cupy.asarray(result)

    return over


def _host(value):
    if isinstance(value, (tuple, list)):
        return type(value)([_host(v) for v in value])
    return value.get() if hasattr(value, "get") and not isinstance(value, dict) else value


class Library:
    """`xp` for CUDA devices. Names are looked up once: what is defined here first, then CuPy's."""

    __name__ = "cupy"

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self.linalg = cupy.linalg
        self.lib = cupy.lib
        self.ndarray = cupy.ndarray
        self.insert = on_cpu(np.insert)
        if process.matmul_precision != "highest":
            self.use_tf32(True)

    def __getattr__(self, name: str):
        found: Any = getattr(self.cupy, name)
        if isinstance(found, self.cupy.ufunc):
            found = Ufunc(self.cupy, name, found)
        elif callable(found) and not isinstance(found, _CONSTANTS):
            found = _taking_numbers(self.cupy, found)
        self.__dict__[name] = found
        return found

    def use_tf32(self, allowed: bool) -> None:
        """Whether CuPy's products of float32 may round their operands to TF32; where it cannot, they do not."""
        from cupy._core import _routines_linalg as routines

        try:
            kind = routines.COMPUTE_TYPE_TF32 if allowed else routines.COMPUTE_TYPE_DEFAULT
            routines.set_compute_type(np.dtype(np.float32), kind)
        except (AttributeError, self.cupy.cuda.runtime.CUDARuntimeError):
            pass

    def errstate(self, **kwargs):
        """Devices raise no floating-point warnings."""
        return contextlib.nullcontext()

    def where(self, condition, x=None, y=None):
        """As NumPy's; CuPy widens pairs of bfloat16."""
        if x is None:
            return self.cupy.where(condition)
        result = self.cupy.where(*[_on_device(self.cupy, a) for a in (condition, x, y)])
        wanted = getattr(x, "dtype", None)
        narrow = wanted is not None and wanted == getattr(y, "dtype", wanted) and wanted.itemsize == 2
        return result.astype(wanted) if narrow and result.dtype != wanted else result

    def asarray(self, a, dtype=None, **kwargs):
        """As CuPy's; kinds of numbers that it cannot read are read by NumPy."""
        if isinstance(a, (np.generic, bool, int, float, complex)):
            a = np.asarray(a, dtype)
        return self.cupy.asarray(a, dtype, **kwargs)

    def max(self, a, axis=None, out=None, keepdims=False, initial=None, where=None):
        """As NumPy's, with `initial` and `where`, which CuPy's has not."""
        if where is not None:
            a = self.cupy.where(where, a, a.dtype.type(initial))
        if initial is None:
            return self.cupy.max(a, axis, keepdims=keepdims)
        if not a.size:
            return self.full(np.empty(a.shape).max(axis, keepdims=keepdims, initial=0).shape, initial, a.dtype)
        return self.cupy.maximum(self.cupy.max(a, axis, keepdims=keepdims), a.dtype.type(initial))

    def lexsort(self, keys, axis=-1):
        """As NumPy's, which takes keys in a tuple as well."""
        return self.cupy.lexsort(self.cupy.stack(list(keys)) if isinstance(keys, (tuple, list)) else keys)

    def shares_memory(self, a, b, *args) -> bool:
        return bool(self.cupy.shares_memory(a, b))


def _on_device(cupy, value):
    """An array of NumPy's among the operands of a device's function: most often a number that became an array."""
    return cupy.asarray(value) if value.__class__ is np.ndarray else value


def _taking_numbers(cupy, function):
    """A function of CuPy that also takes what NumPy takes for an array: a number, or an array of NumPy's."""

    @wraps(function)
    def call(*args, **kwargs):
        args = tuple([_on_device(cupy, a) for a in args])
        if args and isinstance(args[0], np.generic):
            args = (cupy.asarray(args[0]), *args[1:])
        return function(*args, **kwargs)

    return call


_COMPLEX = (np.dtype(np.complex64), np.dtype(np.complex128), complex)


@cache
def _complex_division():
    """Quotients of complex numbers as NumPy has them; CuPy's are NaN where the divisor is infinite."""
    import cupy

    steps = """
        const auto a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
        if (c == 0 && d == 0) z = T(a / fabs(c), b / fabs(c));
        else if (fabs(c) >= fabs(d)) { const auto part = d / c, scale = 1 / (c + d * part); z = T((a + b * part) * scale, (b - a * part) * scale); }
        else { const auto part = c / d, scale = 1 / (d + c * part); z = T((a * part + b) * scale, (b * part - a) * scale); }
    """
    return cupy.ElementwiseKernel("T x, T y", "T z", steps, "pullback_complex_division")


class Ufunc:
    """A ufunc of CuPy with the methods of NumPy's."""

    def __init__(self, cupy, name: str, ufunc):
        self.cupy, self.__name__, self.ufunc, self.host = cupy, name, ufunc, getattr(np, name)
        self.outer = ufunc.outer
        self.is_logical = name.startswith("logical_")
        self.is_division = name in ("true_divide", "divide")

    def __call__(self, *args, out=None, **kwargs):
        out = None if out is Ellipsis else out
        for a in args:
            if a.__class__ is np.ndarray:
                args = tuple([_on_device(self.cupy, v) for v in args])
                break
        if self.is_logical:  # CuPy has no truth of complex numbers
            args = tuple([v != 0 if hasattr(v, "dtype") and v.dtype.kind == "c" else v for v in args])
        if self.is_division and not kwargs and any(getattr(v, "dtype", v.__class__) in _COMPLEX for v in args):
            kind = np.result_type(*[v.dtype if hasattr(v, "dtype") else v for v in args])
            operands = [self.cupy.asarray(v, kind) for v in args]
            return _complex_division()(*operands) if out is None else _complex_division()(*operands, out)
        return self.ufunc(*args, out=out, **kwargs) if out is not None or kwargs else self.ufunc(*args)

    def reduce(self, a, axis=0, dtype=None, out=None, keepdims=False):
        named = _REDUCTIONS.get(self.__name__)
        if named is None:
            return on_cpu(self.host.reduce)(a, axis=axis, dtype=dtype, keepdims=keepdims)
        options = {"dtype": dtype} if dtype is not None else {}
        if named in _KEEP_DTYPE and dtype is None and a.dtype.kind in "biu":
            options["dtype"] = np.result_type(a.dtype, np.int64 if a.dtype.kind != "u" else np.uint64)
        return getattr(self.cupy, named)(a, axis=axis, keepdims=keepdims, **options)

    def accumulate(self, a, axis=0):
        """By doubling: after k rounds each element has taken in the 2**k before it."""
        out = self.cupy.moveaxis(a, axis, 0).copy()
        step = 1
        while step < out.shape[0]:
            out[step:] = self.ufunc(out[step:], out[:-step].copy())
            step *= 2
        return self.cupy.moveaxis(out, 0, axis)

    def reduceat(self, a, indices, axis=0, dtype=None):
        """Sums of stretches along the first axis are made here, if none is empty; the rest is NumPy's."""
        if self.__name__ != "add" or axis or a.dtype.kind != "f" or not bool((indices[1:] > indices[:-1]).all()):
            return on_cpu(self.host.reduceat)(a, indices, axis, dtype)
        cupy, first = self.cupy, int(indices[0])
        starts = cupy.zeros(a.shape[0], np.int64)
        starts[indices] = 1
        out = cupy.zeros((indices.size, *a.shape[1:]), a.dtype)
        self.ufunc.at(out, cupy.cumsum(starts)[first:] - 1, a[first:])
        return out

    def at(self, a, indices, *values) -> None:
        if self.__name__ == "add" and a.dtype.kind == "c":
            value = self.cupy.asarray(values[0])
            self.ufunc.at(a.real, indices, value.real)
            self.ufunc.at(a.imag, indices, value.imag)
            return
        if self.__name__ in ("maximum", "minimum") and a.ndim == 1 and hasattr(indices, "dtype"):
            self._extremes_at(a, indices, values[0])
            return
        try:
            self.ufunc.at(a, indices, *values)
        except (TypeError, NotImplementedError):  # only some dtypes have atomic updates
            result = a.get()
            self.host.at(result, _host(indices), *[_host(v) for v in values])
            a[...] = self.cupy.asarray(result)

    def _extremes_at(self, a, indices, values) -> None:
        """The largest (smallest) value of each place by sorting: CuPy's own rounds float64. NaN sorts last, as it must."""
        cupy = self.cupy
        values = cupy.broadcast_to(cupy.asarray(values), indices.shape).astype(a.dtype)
        flips = self.__name__ == "minimum"
        keys = (~values if values.dtype.kind in "biu" else -values) if flips else values
        by_value = cupy.argsort(keys)
        order = by_value[cupy.argsort(indices[by_value])]
        places = indices[order]
        last = cupy.ones(places.shape, bool)
        last[:-1] = places[1:] != places[:-1]
        at, best = places[last], values[order][last]
        a[at] = self.ufunc(a[at], best)


_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_or": "any", "logical_and": "all",
}  # fmt: skip
_KEEP_DTYPE = ("sum", "prod")
