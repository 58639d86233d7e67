"""A built library as a function: arrays in by a tuple, one call.

`Library(path)` finds the entry point and hands it BLAS and threads. `call(arrays, arena)` passes a tuple of arrays as it is: the
C side reads data pointers, shapes and strides from the objects, in the layout of CPython and NumPy. `readable()` checks that
layout once, on a real array; where it does not hold, nothing native is run.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import numpy as np

from . import blas, network, paired, threads


@functools.cache
def readable() -> bool:
    """Whether objects are laid out as the generated code reads them."""
    import sys

    if (
        sys.implementation.name != "cpython"
        or hasattr(sys, "getobjects")
        or not getattr(sys, "_is_gil_enabled", lambda: True)()
    ):
        return False
    a = np.zeros((3, 5), np.float32)[:, ::2]
    t = (a,)
    if _word(id(t) + 24) != id(a) or t.__sizeof__() < 32 or a.__sizeof__() < 72:
        return False
    data, rank, shape, strides = _word(id(a) + 16), _word(id(a) + 24) & 0xFFFFFFFF, _word(id(a) + 32), _word(id(a) + 40)
    if data != a.ctypes.data or rank != a.ndim or not shape or not strides:
        return False
    flags = _word(id(a) + 64) & 0xFFFFFFFF
    return [_word(shape), _word(strides), flags] == [a.shape[0], a.strides[0], a.flags.num]


def _word(address: int) -> int:
    return ctypes.c_ssize_t.from_address(address).value


class Library:
    """A loaded library."""

    def __init__(self, path: Path):
        self.path = path
        self.handle = ctypes.CDLL(str(path))
        found = blas.find()
        setup = self.handle.setup
        setup.argtypes, setup.restype = [ctypes.c_void_p] * 3 + [ctypes.c_int] + [ctypes.c_void_p] * 4, None
        own = network.address(), paired.address()
        setup(threads.parallel(), found.single, found.double, found.wide, found.count, found.use, *own)
        self.call = self.handle.entry
        self.call.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_long]
        self.call.restype = ctypes.c_long

    def bind(self, addresses: list[int]) -> None:
        """Hand over functions and descriptions of another library, as the text's `bind` takes them."""
        self.table = (ctypes.c_void_p * len(addresses))(*addresses)
        self.handle.bind(self.table)


def arena(size: int) -> np.ndarray:
    """Memory of at least this many bytes, whose address is a multiple of 64."""
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + max(size, 1)]
