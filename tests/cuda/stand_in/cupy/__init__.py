"""A stand-in for CuPy on machines without a device: arrays wrap NumPy's, streams and events note what is asked of them.

It is found in the place of CuPy where this folder comes first on the path (see `test_stand_in`). It holds the names that
`pullback` uses, with CuPy's meaning as far as a machine without a device can have it: two devices, a pool that counts what arrays
take, streams in which everything is done as soon as it is asked for. An array is none of NumPy's, as on a device: NumPy reads it
through `get()` alone. A kernel in CUDA C is an error, by which a test that
needs it is skipped.
"""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from . import cuda
from .cuda import memory

ufunc = np.ufunc


class ndarray(NDArrayOperatorsMixin):
    """An array "on the device" that was in use when it was made."""

    def __new__(cls, shape, dtype=float, memptr=None, strides=None):
        """Also a window on memory that another array has, from an address."""
        if memptr is None:
            return on_device(np.ndarray(shape, dtype))
        dtype = np.dtype(dtype)
        strides = strides if strides is not None else np.ndarray(shape, dtype).strides
        span = dtype.itemsize + sum(max(n - 1, 0) * s for n, s in zip(shape, strides, strict=True))
        window = np.ndarray(shape, dtype, (ctypes.c_char * span).from_address(memptr.ptr), 0, strides)
        return on_device(window, memptr.owner)

    @property
    def data(self):
        return memory.Pointer(self.host.__array_interface__["data"][0], self)

    def get(self, stream=None, order="C", out=None):
        if out is None:
            return self.host.copy(order)
        out[...] = self.host
        return out

    def item(self, *args):
        return self.host.item(*args)

    def tolist(self):
        return self.host.tolist()

    def __getattr__(self, name: str):
        found = getattr(self.host, name)
        if not callable(found):
            return on_device(found, self) if isinstance(found, np.ndarray) else found
        return lambda *args, **kwargs: on_device(found(*host(args), **host(kwargs)), self)

    def __getitem__(self, key):
        return on_device(self.host[host(key)], self)

    def __setitem__(self, key, value) -> None:
        self.host[host(key)] = host(value)

    def __array_ufunc__(self, function, method, *inputs, out=None, **kwargs):
        if out is not None:
            kwargs["out"] = host(out)
        result = getattr(function, method)(*host(inputs), **host(kwargs))
        return out[0] if out is not None else on_device(result)

    def __len__(self) -> int:
        return len(self.host)

    def __iter__(self):
        return (on_device(row, self) for row in self.host)

    def __bool__(self) -> bool:
        return bool(self.host)

    def __int__(self) -> int:
        return int(self.host)

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.host)

    def __complex__(self) -> complex:
        return complex(self.host)


def host(value):
    """Arrays inside a value, as NumPy's."""
    if isinstance(value, ndarray):
        return value.host
    if isinstance(value, (tuple, list)):
        return type(value)([host(v) for v in value])
    return {k: host(v) for k, v in value.items()} if isinstance(value, dict) else value


def on_device(result, owner: ndarray | None = None):
    """What a function of NumPy's gives, as arrays of the device; new memory is counted by the pool."""
    if isinstance(result, (tuple, list)):
        return tuple(on_device(r, owner) for r in result)
    if not isinstance(result, (np.ndarray, np.generic)):
        return result
    array = object.__new__(ndarray)
    array.host, array.owner, array.device = np.asarray(result), owner, cuda.Device(cuda.current)
    shares = owner is not None and np.may_share_memory(array.host, owner.host)
    array.block = owner.block if shares else memory.default.taken(array.host.nbytes)
    return array


def _of_numpy(found):
    """A function of NumPy's for arrays of the device."""

    def call(*args, **kwargs):
        result = found(*host(args), **host(kwargs))
        owner = next((a for a in args if isinstance(a, ndarray)), None)
        return on_device(result, owner)

    return call


class Names:
    """A module of NumPy's or SciPy's whose functions take arrays of the device."""

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name: str):
        found = getattr(self._module, name)
        if isinstance(found, (type, np.ufunc)) or not callable(found):
            return Names(found) if hasattr(found, "__path__") or type(found).__name__ == "module" else found
        return _of_numpy(found)


def RawModule(*args, **kwargs):
    raise NotImplementedError(cuda.NO_KERNELS)


RawKernel = ElementwiseKernel = ReductionKernel = RawModule
linalg, lib, _numpy = Names(np.linalg), Names(np.lib), Names(np)


def __getattr__(name: str):
    return getattr(_numpy, name)


def asnumpy(a):
    return a.get() if isinstance(a, ndarray) else np.asarray(a)


def get_default_memory_pool():
    return memory.default


def get_default_pinned_memory_pool():
    return memory.pinned
