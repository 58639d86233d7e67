"""Convolutions by cuDNN, where it is installed.

In: shapes, strides and dtype of a convolution in its three forms (`FORWARD`: y from x and w; `TO_INPUT`: x from y and w; `TO_WEIGHT`: w
from x and y). Out: a `Convolution`, described to cuDNN and with an algorithm chosen, which runs on addresses; None where cuDNN is
not there or does not do it. Tensors are row-major or channels-last, filters as the tensor they meet.

Which algorithm: what cuDNN's heuristics name first, so that the same call gives the same bits; with `torch.backends.cudnn.benchmark`,
the quickest of those it tried. float32 is rounded to TF32 where `torch.backends.cudnn.allow_tf32` says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import threading
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.modes import process

FORWARD, TO_INPUT, TO_WEIGHT = range(3)
KINDS = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}  # as cudnnDataType_t counts them
_NAMES = ("Forward", "BackwardData", "BackwardFilter")
_ROW_MAJOR, _CHANNELS_LAST, _CROSS_CORRELATION = 0, 1, 1
_DEFAULT_MATH, _TENSOR_MATH, _FULL_MATH = 0, 1, 3
MOST_WORKSPACE = 1 << 30  # bytes that an algorithm may work in
_FILES = ("libcudnn.so.9", "libcudnn.so.8")


class Performance(ctypes.Structure):
    """What cuDNN says of an algorithm."""

    _fields_ = [
        ("algorithm", ctypes.c_int), ("status", ctypes.c_int), ("time", ctypes.c_float), ("memory", ctypes.c_size_t),
        ("determinism", ctypes.c_int), ("math", ctypes.c_int), ("reserved", ctypes.c_int * 3),
    ]  # fmt: skip


class Geometry(NamedTuple):
    """A convolution but for its addresses: (shape, strides) of x, w and y, in elements, at least two spatial dimensions."""

    x: tuple
    w: tuple
    y: tuple
    kind: int
    stride: tuple
    padding: tuple
    dilation: tuple
    groups: int


@cache
def library() -> Any:
    """cuDNN, or None."""
    found = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.cudnn")
    places = [Path(p) / "lib" for p in (found.submodule_search_locations or ())] if found else []
    for name in [*_FILES, *[str(p / f) for p in places for f in _FILES]]:
        with contextlib.suppress(OSError, AttributeError):
            loaded = ctypes.CDLL(name)
            loaded.cudnnGetVersion.restype = ctypes.c_size_t
            loaded.cudnnConvolutionForward, loaded.cudnnGetConvolutionForwardAlgorithm_v7  # noqa: B018 - must be there
            return loaded
    return None


def version() -> int | None:
    found = library()
    return None if found is None else int(found.cudnnGetVersion())


_of_thread = threading.local()


def handle(index: int) -> Any:
    """cuDNN's handle of this thread and a device, which is in use; None where it cannot be had."""
    known: dict = _of_thread.__dict__
    if index not in known:
        found, result = library(), ctypes.c_void_p()
        known[index] = None if found is None or found.cudnnCreate(ctypes.byref(result)) else result
    return known[index]


class Descriptor:
    """Something that was described to cuDNN; freed with this object."""

    def __init__(self, kind: str):
        self.kind, self.place = kind, ctypes.c_void_p()
        if getattr(library(), f"cudnnCreate{kind}Descriptor")(ctypes.byref(self.place)):
            raise Refused

    def set(self, how: str, *args) -> Descriptor:
        if getattr(library(), f"cudnnSet{self.kind}{how}")(self.place, *args):
            raise Refused
        return self

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            getattr(library(), f"cudnnDestroy{self.kind}Descriptor")(self.place)


class Refused(Exception):
    """cuDNN does not do it."""


def _ints(values) -> Any:
    return (ctypes.c_int * len(values))(*values)


def _channels_last(shape: tuple, strides: tuple) -> bool:
    return strides[1] == 1 and shape[1] > 1


def _tensor(geometry: tuple, kind: int) -> Descriptor:
    shape, strides = geometry
    return Descriptor("Tensor").set("NdDescriptor", kind, len(shape), _ints(shape), _ints(strides))


def _filter(geometry: tuple, kind: int) -> Descriptor:
    shape, strides = geometry
    order = _CHANNELS_LAST if _channels_last(shape, strides) else _ROW_MAJOR
    return Descriptor("Filter").set("NdDescriptor", kind, order, len(shape), _ints(shape))


class Convolution:
    """One form of a convolution, ready to be run; see the module's docstring."""

    def __init__(self, form: int, g: Geometry, tf32: bool, trying: bool, fixed: bool, index: int):
        self.form, self.geometry, self.index = form, g, index
        self.x, self.w, self.y = _tensor(g.x, g.kind), _filter(g.w, g.kind), _tensor(g.y, g.kind)
        n = len(g.stride)
        sums = 1 if g.kind == KINDS["float64"] else 0
        self.how = Descriptor("Convolution").set(
            "NdDescriptor", n, _ints(g.padding), _ints(g.stride), _ints(g.dilation), _CROSS_CORRELATION, sums
        )
        if g.groups > 1 and library().cudnnSetConvolutionGroupCount(self.how.place, g.groups):
            raise Refused
        full = g.kind == KINDS["float32"] and not tf32
        self._use_math(_FULL_MATH if full else _DEFAULT_MATH if g.kind < 2 else _TENSOR_MATH)
        best = self._choose(trying, fixed)
        self.algorithm, self.workspace = best.algorithm, best.memory
        self._use_math(best.math)
        self.double = sums

    def _use_math(self, kind: int) -> None:
        if library().cudnnSetConvolutionMathType(self.how.place, kind):
            raise Refused

    @property
    def described(self) -> tuple:
        """The descriptors, in the order in which this form takes its operands and its result."""
        return ((self.x, self.w, self.y), (self.w, self.y, self.x), (self.x, self.y, self.w))[self.form]

    def _choose(self, trying: bool, fixed: bool) -> Performance:
        """An algorithm; `fixed`: one that always gives the same bits."""
        first, second, result = (d.place for d in self.described)
        found, count = (Performance * 10)(), ctypes.c_int()
        name = f"cudnn{'Find' if trying else 'Get'}Convolution{_NAMES[self.form]}Algorithm{'' if trying else '_v7'}"
        given = (handle(self.index), first, second, self.how.place, result, 10, ctypes.byref(count), found)
        if getattr(library(), name)(*given):
            raise Refused
        for one in found[: count.value]:
            if not one.status and one.memory <= MOST_WORKSPACE and (one.determinism or not fixed):
                return one
        raise Refused

    def entry(self) -> Entry:
        """What a launcher is told of it."""
        places = [d.place for d in self.described]
        return Entry(
            places[0], places[1], self.how.place, places[2], self.algorithm, self.form, self.double, 0, self.workspace
        )


class Entry(ctypes.Structure):
    """A convolution as `runtime.launcher` reads it."""

    _fields_ = [
        *[(name, ctypes.c_void_p) for name in ("first", "second", "how", "result")],
        *[(name, ctypes.c_int) for name in ("algorithm", "form", "double", "unused")], ("workspace", ctypes.c_size_t),
    ]  # fmt: skip


class Library(ctypes.Structure):
    """cuDNN as `runtime.launcher` reads it: a handle, its functions, convolutions of a program and memory that they may use."""

    _fields_ = [
        (name, ctypes.c_void_p)
        for name in ("handle", "use_stream", "forward", "to_input", "to_weight", "convolutions", "workspace")
    ]


class Convolutions:
    """The convolutions of a program; prepared again where the switches of cuDNN have changed since."""

    def __init__(self, found: list[Convolution]):
        self._describe(found)

    def current(self) -> tuple:
        """The switches as they are, and convolutions as they want them (those that cuDNN refuses now stay as they were)."""
        if self.switches != switches():
            self._describe([prepared(c.form, c.geometry, c.index) or c for c in self.found])
        return self.switches

    def _describe(self, found: list[Convolution]) -> None:
        self.found, self.switches = found, switches()
        self.entries = (Entry * len(found))(*[c.entry() for c in found])
        self.workspace = max(c.workspace for c in found)

    def told(self, index: int, workspace: int) -> Library:
        """All that a launcher needs, for this thread."""
        self.current()
        lib = library()
        functions = [getattr(lib, name) for name in ("cudnnSetStream", *[f"cudnnConvolution{n}" for n in _NAMES])]
        places = [ctypes.cast(f, ctypes.c_void_p).value for f in functions]
        return Library(handle(index), *places, ctypes.addressof(self.entries), workspace)


def switches() -> tuple[bool, bool, bool]:
    """(whether float32 may be rounded to TF32, whether algorithms are tried, whether they must always give the same bits)."""
    found = process.cudnn
    return bool(found.allow_tf32), bool(found.benchmark), bool(found.deterministic) or process.deterministic


def prepared(form: int, g: Geometry, index: int) -> Convolution | None:
    """The convolution of a geometry on a device, as the switches of cuDNN are now."""
    if not process.cudnn.enabled or handle(index) is None:
        return None
    return _prepared(form, g, *switches(), index)


@lru_cache(512)
def _prepared(form: int, g: Geometry, tf32: bool, trying: bool, fixed: bool, index: int) -> Convolution | None:
    try:
        return Convolution(form, g, tf32, trying, fixed, index)
    except Refused:
        return None


def geometry(sides: tuple, dtype: Any, stride, padding, dilation, groups: int) -> Geometry | None:
    """The geometry of (shape, strides) of x, w and y; a sequence is an image of one row. None where cuDNN has no such thing."""
    kind = KINDS.get(np.dtype(dtype).name)
    rank = len(sides[0][0])
    if kind is None or rank not in (3, 4, 5):
        return None
    if rank == 3:
        sides = tuple([((*s[:2], 1, s[2]), (*t[:2], s[2] * t[2], t[2])) for s, t in sides])
        stride, dilation, padding = (1, *stride), (1, *dilation), (0, *padding)
    x, w, y = [(tuple(map(int, s)), tuple(map(int, t))) for s, t in sides]
    numbers = [tuple(map(int, v)) for v in (stride, padding, dilation)]
    return Geometry(x, w, y, kind, numbers[0], numbers[1], numbers[2], int(groups))
