"""Element types.

A `dtype` names how one element is stored: it knows its NumPy dtype, its size and its place in the promotion lattice.
There is exactly one object per type, so identity (`is`) is equality. Types that NumPy lacks (bfloat16, float8, complex32)
come from ml_dtypes. `by_numpy` maps a NumPy dtype back to ours.
"""

from __future__ import annotations

import builtins
import functools
import math
from typing import Any

import ml_dtypes
import numpy as np

BOOL, INT, FLOAT, COMPLEX = range(4)
STORED = (
    8192  # key of tensors whose numbers are only stored in their dtype, and computed in another: see ops.system.stored
)


class dtype:
    """One element type, such as `float32`. `numpy` is its NumPy dtype, or None where no array library has it.

    >>> torch.float32.is_floating_point, torch.float32.itemsize
    (True, 4)
    """

    __slots__ = (
        "name", "scalar_name", "numpy", "itemsize", "category", "is_floating_point", "is_complex", "is_signed", "rank",
        "alias", "keys",
    )  # fmt: skip

    def __init__(
        self, name: str, scalar_name: str, numpy, category: int, rank: int, signed: builtins.bool = True, alias=None
    ):
        self.name = name
        self.scalar_name = scalar_name
        self.numpy = None if numpy is None else np.dtype(numpy)
        self.itemsize = 1 if self.numpy is None else self.numpy.itemsize
        self.category = category
        self.is_floating_point = category == FLOAT
        self.is_complex = category == COMPLEX
        self.is_signed = signed
        self.rank = rank
        self.alias = alias or name
        self.keys = STORED if name == "complex32" else 0

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return (_by_name, (self.name,))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    @property
    def abbr(self) -> str:
        """The short name: f32, bf16, i64, b8."""
        if self.name == "bool":
            return "b8"
        if self.name.startswith("bits"):
            return f"b{self.name[4:]}" + ("" if "x" in self.name else "x1")
        for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
            if self.name.startswith(long):
                return short + self.name[len(long) :].replace("_", "")
        return self.name

    @property
    def number(self) -> int:
        """PyTorch's number of the type, by which its schemas know it."""
        return _NUMBERED.index(self.name)

    def to_real(self) -> dtype:
        return _REAL.get(self, self)

    def to_complex(self) -> dtype:
        if self.is_complex:
            return self
        if self not in _COMPLEX:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")
        return _COMPLEX[self]


_NUMBERED = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64", "complex128", "bool", "qint8",
    "quint8", "qint32", "bfloat16", "quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float8_e5m2",
    "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16", "uint32", "uint64", *(f"uint{k}" for k in range(1, 8)),
    *(f"int{k}" for k in range(1, 8)), "float8_e8m0fnu", "float4_e2m1fn_x2",
)  # fmt: skip

bool = dtype("bool", "Bool", np.bool_, BOOL, 0, signed=False)
uint8 = dtype("uint8", "Byte", np.uint8, INT, 1, signed=False)
int8 = dtype("int8", "Char", np.int8, INT, 2)
int16 = dtype("int16", "Short", np.int16, INT, 3, alias="short")
int32 = dtype("int32", "Int", np.int32, INT, 4, alias="int")
int64 = dtype("int64", "Long", np.int64, INT, 5, alias="long")
uint16 = dtype("uint16", "UInt16", np.uint16, INT, 3, signed=False)
uint32 = dtype("uint32", "UInt32", np.uint32, INT, 4, signed=False)
uint64 = dtype("uint64", "UInt64", np.uint64, INT, 5, signed=False)
float16 = dtype("float16", "Half", np.float16, FLOAT, 7, alias="half")
bfloat16 = dtype("bfloat16", "BFloat16", ml_dtypes.bfloat16, FLOAT, 7)
float32 = dtype("float32", "Float", np.float32, FLOAT, 8, alias="float")
float64 = dtype("float64", "Double", np.float64, FLOAT, 9, alias="double")
float8_e4m3fn = dtype("float8_e4m3fn", "Float8_e4m3fn", ml_dtypes.float8_e4m3fn, FLOAT, 6)
float8_e5m2 = dtype("float8_e5m2", "Float8_e5m2", ml_dtypes.float8_e5m2, FLOAT, 6)
float8_e4m3fnuz = dtype("float8_e4m3fnuz", "Float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, FLOAT, 6)
float8_e5m2fnuz = dtype("float8_e5m2fnuz", "Float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, FLOAT, 6)
float8_e8m0fnu = dtype("float8_e8m0fnu", "Float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, FLOAT, 6)
complex32 = dtype("complex32", "ComplexHalf", getattr(ml_dtypes, "complex32", None), COMPLEX, 10, alias="chalf")
complex64 = dtype("complex64", "ComplexFloat", np.complex64, COMPLEX, 11, alias="cfloat")
complex128 = dtype("complex128", "ComplexDouble", np.complex128, COMPLEX, 12, alias="cdouble")

ALL = (
    bool, uint8, int8, int16, int32, int64, uint16, uint32, uint64, float16, bfloat16, float32, float64,
    float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu, complex32, complex64, complex128,
)  # fmt: skip
by_numpy: dict[np.dtype, dtype] = {d.numpy: d for d in ALL if d.numpy is not None}
by_name: dict[str, dtype] = {d.name: d for d in ALL} | {d.alias: d for d in ALL}

# Names that exist for storage formats of quantised weights: they can be named and compared, no kernel reads them.
opaque: dict[str, dtype] = {
    n: dtype(n, n, None, INT, -1)
    for n in (
        *(f"{s}int{k}" for s in ("", "u") for k in range(1, 8)),
        "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2", "float4_e2m1fn_x2",
        "quint8", "qint8", "qint32", "quint4x2", "quint2x4",
    )
}  # fmt: skip

_REAL = {complex32: float16, complex64: float32, complex128: float64}
_COMPLEX = {float16: complex32, float32: complex64, float64: complex128, bfloat16: complex64}
reduced_precision = frozenset(d for d in ALL if d.is_floating_point and d.itemsize < 4)


def _by_name(name: str) -> dtype:
    return by_name.get(name) or opaque[name]


def computable(d: dtype, where=None) -> dtype:
    """The dtype itself, or an error where no array library has it: nothing is computed in another dtype silently."""
    if d.numpy is None:
        newer = "; ml_dtypes 0.6 has it" if d is complex32 else ""
        raise NotImplementedError(f"{d!r} tensors are not supported: no array library computes with this dtype{newer}")
    if where is not None and where.keys and (d.keys or d.is_floating_point and d.itemsize == 1):
        raise NotImplementedError(f"{d!r} tensors are not supported on {where}: CuPy has no such dtype")
    return d


def numpy_to_dtype(numpy_dtype) -> dtype:
    """Our dtype for a NumPy one; raises PyTorch's TypeError where there is none."""
    found = by_numpy.get(np.dtype(numpy_dtype).newbyteorder("="))
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type {np.dtype(numpy_dtype).type.__module__}.{np.dtype(numpy_dtype).type.__name__}. "
            "The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, "
            "uint64, uint32, uint16, uint8, and bool."
        )
    return found


def _of_type(function: str, type: Any) -> dtype:
    """A dtype, or the one that a type of Python stands for."""
    if isinstance(type, dtype):
        return type
    if isinstance(type, builtins.type) and type in PYTHON_TYPES:
        return PYTHON_TYPES[type]
    raise TypeError(f"{function}(): argument 'type' (position 1) must be torch.dtype, not {type!r}")


@functools.cache
def _limits(real: dtype) -> tuple[float, ...]:
    info = ml_dtypes.finfo(real.numpy)
    resolution = float(f"1e-{int(info.nmant * math.log10(2))}")
    return float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), resolution


class finfo:
    """Limits of a floating dtype, as `torch.finfo`.

    >>> torch.finfo(torch.float16).max
    65504.0
    """

    def __init__(self, type: dtype | type[float] | type[complex] | None = None):
        from .modes import ambient

        self.dtype_object = d = ambient.default_dtype if type is None else _of_type("finfo", type)
        if not (d.is_floating_point or d.is_complex):
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{d!r}'")
        real = d.to_real()
        self.dtype = real.name
        self.bits = real.itemsize * 8
        self.eps, self.max, self.min, self.smallest_normal, self.resolution = _limits(real)
        self.tiny = self.smallest_normal

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype, as `torch.iinfo`.

    >>> torch.iinfo(torch.int8).min
    -128
    """

    def __init__(self, type: dtype | type[int]):
        type = _of_type("iinfo", type)
        if type.category != INT:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type!r}'")
        info = np.iinfo(type.numpy)
        self.bits, self.max, self.min, self.dtype = info.bits, int(info.max), int(info.min), type.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


PYTHON_TYPES: dict[type, dtype] = {float: float64, int: int64, builtins.bool: bool, complex: complex128}  # as a dtype
