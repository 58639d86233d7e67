"""`Elements`: the array library that pointwise kernels are written for, on one element at a time.

A pointwise operator's kernel is a function of an array library `xp` and arrays. Called with an `Elements` and `Element`s in
their place, it writes down the scalar expression that it computes: the loop body comes from the one rule there is. A
declaration's `lower=lambda o, x: o.sin(x)` is called the same way and is used instead, where it is given.

What always holds: what depends on the values of elements (`if x.any():`) raises `Unlowerable`; so does any function, and any
attribute of arrays, that is not here. Names and meanings are NumPy's: `maximum` propagates NaN, integers wrap, Python numbers take the dtype of
what they meet.
"""

from __future__ import annotations

import math

import numpy as np

from ...core import dtype as dtypes
from ...core.dtype import by_numpy, dtype
from .expressions import Expr, cast, const, make


class Unlowerable(Exception):
    """A kernel that is read element by element asks for what one element cannot say: the operator runs as it is."""


class NoAttribute(Unlowerable, AttributeError):
    """An attribute of arrays that elements have not."""


class Element:
    """One element of an array in a kernel. Functions with `out=` change which expression it stands for."""

    __slots__ = ("expr",)
    __array_priority__ = 1000
    size = 1  # kernels choose between ways of computing by size: this is the direct way
    shape = (1,)

    def __init__(self, expr: Expr):
        self.expr = expr

    @property
    def dtype(self) -> np.dtype:
        return self.expr.dtype.numpy

    @property
    def ndim(self) -> int:
        return 0 if self.expr.op == "const" else 1

    def astype(self, target, copy: bool = True) -> Element:
        return Element(cast(self.expr, of_numpy(target)))

    def copy(self, order: str = "C") -> Element:
        return Element(self.expr)

    def item(self):
        return self._value()

    def conj(self) -> Element:
        return ELEMENTS.conjugate(self)

    @property
    def real(self) -> Element:
        return ELEMENTS.real(self)

    @real.setter
    def real(self, value: Element) -> None:
        self.expr = ELEMENTS.complex(value, self.imag).expr

    @property
    def imag(self) -> Element:
        return ELEMENTS.imag(self)

    @imag.setter
    def imag(self, value: Element) -> None:
        self.expr = ELEMENTS.complex(self.real, value).expr

    def _value(self):
        if self.expr.op != "const":
            raise Unlowerable("a kernel asks for the value of an element")
        return self.expr.args[0]

    def __getattr__(self, name: str):
        raise NoAttribute(f"a kernel asks for {name} of an array")

    def __getitem__(self, at):
        raise Unlowerable("a kernel picks from an array")

    def __setitem__(self, at, value):
        raise Unlowerable("a kernel writes into an array")

    def __len__(self) -> int:
        raise Unlowerable("a kernel asks for the length of an array")

    def __bool__(self) -> bool:
        return bool(self._value())

    def __float__(self) -> float:
        return float(self._value())

    def __int__(self) -> int:
        return int(self._value())

    def __array__(self, *args, **kwargs):
        raise Unlowerable("a kernel asks for an array")

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        """A ufunc that the kernel took from another library (`scipy.special.erf`)."""
        if method != "__call__" or kwargs:
            raise Unlowerable(f"{ufunc.__name__}.{method}")
        return getattr(ELEMENTS, ufunc.__name__)(*inputs, out=out[0] if out else None)


class Number(Element):
    """A number that is known when the loops run: like one of Python's it takes the dtype of what it meets, and is exact until then."""

    __slots__ = ()


def _binary(name: str, swapped: bool = False):
    def method(self, other):
        return getattr(ELEMENTS, name)(*((other, self) if swapped else (self, other)))

    return method


for _symbol, _name in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift",
}.items():  # fmt: skip
    setattr(Element, f"__{_symbol}__", _binary(_name))
    setattr(Element, f"__r{_symbol}__", _binary(_name, True))
for _symbol, _name in {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"
}.items():  # fmt: skip
    setattr(Element, f"__{_symbol}__", _binary(_name))
Element.__neg__ = lambda self: ELEMENTS.negative(self)  # type: ignore[attr-defined]
Element.__abs__ = lambda self: ELEMENTS.absolute(self)  # type: ignore[attr-defined]
Element.__invert__ = lambda self: ELEMENTS.invert(self)  # type: ignore[attr-defined]
Element.__hash__ = None  # type: ignore[assignment]

_FLOAT = frozenset((dtypes.float32, dtypes.float64))
# Functions of floats; the result has the dtype of the operands.
_FLOAT_FUNCTIONS = frozenset(
    (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh",
        "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "erf", "erfc", "reciprocal", "arctan2", "hypot", "copysign", "expit",
        "true_divide",
    )
)  # fmt: skip
_ROUNDING = frozenset(("floor", "ceil", "trunc", "rint"))
_NUMBER_FUNCTIONS = frozenset(
    (
        "add", "subtract", "multiply", "negative", "absolute", "square", "maximum", "minimum", "fmax", "fmin", "floor_divide",
        "remainder", "fmod", "power", "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift", "sign",
    )
)  # fmt: skip
_TESTS = frozenset(
    (
        "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_xor",
        "logical_not", "isnan", "isinf", "isfinite", "signbit",
    )
)  # fmt: skip
_KNOWN = _FLOAT_FUNCTIONS | _ROUNDING | _NUMBER_FUNCTIONS | _TESTS
_ALIASES = {
    "abs": "absolute",
    "fabs": "absolute",
    "divide": "true_divide",
    "bitwise_not": "invert",
    "conj": "conjugate",
}
# Functions of complex numbers. Those of the first line are ours, the others the C library's.
_COMPLEX_FUNCTIONS = frozenset(
    (
        "add", "subtract", "multiply", "true_divide", "negative", "square", "reciprocal", "absolute",
        "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh",
        "arctanh",
    )
)  # fmt: skip


class Elements:
    """See the module's docstring. Functions are made at first use."""

    __name__ = "numpy"  # kernels look up special functions by it; those are ufuncs, which `Element` takes over
    float32, float64, int64, int32 = (np.dtype(n) for n in ("float32", "float64", "int64", "int32"))
    inf, nan, pi = np.inf, np.nan, np.pi
    bool_ = np.dtype(bool)

    def __getattr__(self, name: str):
        name = _ALIASES.get(name, name)
        if name not in _KNOWN:
            raise Unlowerable(f"no scalar function {name}")

        def function(*args, out=None, where=None):
            if where is not None:
                raise Unlowerable("where=")
            return _put(_apply(name, *_meet(args)), out, _kind(args))

        setattr(self, name, function)
        return function

    # ---- complex numbers and their parts
    def conjugate(self, x, out=None):
        return _put(make("conjugate", x.expr.dtype, x.expr) if x.expr.dtype.is_complex else x.expr, out)

    def real(self, x):
        return Element(make("real", x.expr.dtype.to_real(), x.expr)) if x.expr.dtype.is_complex else x

    def imag(self, x):
        d = x.expr.dtype
        return Element(make("imag", d.to_real(), x.expr) if d.is_complex else number(0, d))

    def complex(self, real, imag):
        """The number of two parts."""
        return Element(make("complex", real.expr.dtype.to_complex(), real.expr, imag.expr))

    # ---- what is no function of elements alone
    def positive(self, x, out=None):
        return _put(x.expr, out)

    def asarray(self, value, dtype=None):
        if isinstance(value, Element):
            return value if dtype is None else value.astype(dtype)
        if dtype is None:
            dtype = np.asarray(value).dtype
        return Element(number(value, of_numpy(dtype)))

    array = asarray

    def where(self, condition, a, b):
        a, b = _meet((a, b))
        return Element(make("where", a.dtype, _truth(condition), a, b))

    def copyto(self, out, value, where=True):
        value = cast(_meet((value,), out.expr.dtype)[0], out.expr.dtype)
        out.expr = value if where is True else make("where", value.dtype, _truth(where), value, out.expr)

    def empty_like(self, x, dtype=None):
        return Element(const(0, x.expr.dtype if dtype is None else of_numpy(dtype)))

    zeros_like = empty_like

    def ones_like(self, x, dtype=None):
        return self.full_like(x, 1, dtype)

    def full_like(self, x, value, dtype=None):
        return Element(number(value, x.expr.dtype if dtype is None else of_numpy(dtype)))

    def full(self, shape, value, dtype=None):
        return self.asarray(value, dtype)

    def zeros(self, shape, dtype=float):
        return self.asarray(0, dtype)

    def ones(self, shape, dtype=float):
        return self.asarray(1, dtype)

    def broadcast_to(self, x, shape):
        return self.asarray(x)

    def clip(self, x, low, high):
        x = x if low is None else self.maximum(x, low)
        return x if high is None else self.minimum(x, high)

    def all(self, x):
        return bool(x)

    any = all

    def cast(self, x, target: dtype):
        """`x` in another of our dtypes."""
        return Element(cast(x.expr, target))

    def logaddexp(self, x, y):
        """log(e^x + e^y): of equals (infinite ones too) their value and log 2, else by the larger."""
        apart = self.absolute(x - y)
        return self.where(x == y, x + math.log(2), self.maximum(x, y) + self.log1p(self.exp(-apart)))

    def sigmoid(self, x):
        return Element(make("sigmoid", x.expr.dtype, x.expr))


def of_numpy(d) -> dtype:
    return d if isinstance(d, dtype) else by_numpy[np.dtype(d)]


def number(value, d: dtype) -> Expr:
    if isinstance(value, complex) and not d.is_complex or hasattr(value, "is_symbolic"):
        raise Unlowerable("a complex number among real ones, or a symbolic one")
    if isinstance(value, np.generic):
        value = value.item()
    kind = (
        dtypes.complex128
        if isinstance(value, complex)
        else dtypes.float64
        if isinstance(value, float)
        else dtypes.int64
    )
    result = cast(const(value, kind), d)
    if result.op != "const":
        raise Unlowerable(f"{value} as {d}")
    return result


def _meet(args: tuple, default: dtype | None = None) -> list[Expr]:
    """Operands as expressions of one dtype; Python numbers take the dtype of the others, floats make integers floats."""
    given = [a.expr.dtype for a in args if isinstance(a, Element) and not isinstance(a, Number)]
    given = given or ([default] if default else [])
    floats = any(isinstance(a, float) or isinstance(a, Number) and a.expr.dtype is dtypes.float64 for a in args)
    if not given:
        given = [dtypes.float64 if floats else dtypes.int64]
    common = given[0]
    for d in given[1:]:
        if d is not common:
            common = by_numpy[np.result_type(common.numpy, d.numpy)]
    if any(isinstance(a, complex) for a in args) and not common.is_complex:
        common = dtypes.complex64 if common is dtypes.float32 else dtypes.complex128
    elif common.category < dtypes.FLOAT and floats:
        common = dtypes.float64
    elif common is dtypes.bool and any(
        isinstance(a, Number) or isinstance(a, int) and not isinstance(a, bool) for a in args
    ):
        common = dtypes.int64
    return [cast(a.expr, common) if isinstance(a, Element) else number(a, common) for a in args]


def _truth(condition) -> Expr:
    e = condition.expr if isinstance(condition, Element) else const(bool(condition), dtypes.bool)
    return e if e.dtype is dtypes.bool else make("not_equal", dtypes.bool, e, cast(const(0, dtypes.int64), e.dtype))


def _kind(args: tuple) -> type[Element]:
    """What is computed of numbers alone is a number."""
    return Element if any(isinstance(a, Element) and not isinstance(a, Number) for a in args) else Number


def _put(result: Expr, out: Element | None, kind: type[Element] = Element) -> Element:
    if out is None:
        return kind(result)
    out.expr = cast(result, out.expr.dtype)
    return out


def _apply(name: str, *args: Expr) -> Expr:
    """One operation on expressions of one dtype."""
    d = args[0].dtype
    if d in dtypes.reduced_precision:
        raise Unlowerable(f"{name} in {d}")
    if d.is_complex:
        return _apply_complex(name, d, *args)
    if name in _TESTS:
        if name.startswith("logical"):
            return make(name, dtypes.bool, *[_truth(Element(a)) for a in args])
        if name.startswith("is") and not d.is_floating_point:
            return const(name == "isfinite", dtypes.bool)
        if all(a.op == "const" for a in args):
            return const(bool(getattr(np, name)(*[a.args[0] for a in args])), dtypes.bool)
        return make(name, dtypes.bool, *args)
    if name in _FLOAT_FUNCTIONS and d not in _FLOAT:
        d = dtypes.float64
        args = tuple([cast(a, d) for a in args])
    if name in _ROUNDING and d not in _FLOAT:
        return args[0]
    if name == "square":
        return make("multiply", d, args[0], args[0])
    if name == "reciprocal":
        return make("true_divide", d, const(1.0, d), args[0])
    if name == "expit":
        return make("sigmoid", d, args[0])
    return _folded(name, d, args)


def _apply_complex(name: str, d: dtype, *args: Expr) -> Expr:
    """One operation on complex numbers."""
    if name in ("equal", "not_equal"):
        return make(name, dtypes.bool, *args)
    if name.startswith("logical"):
        return make(name, dtypes.bool, *[_truth(Element(a)) for a in args])
    if name in ("isnan", "isinf", "isfinite"):
        parts = [make(name, dtypes.bool, make(part, d.to_real(), args[0])) for part in ("real", "imag")]
        return make("logical_and" if name == "isfinite" else "logical_or", dtypes.bool, *parts)
    if name not in _COMPLEX_FUNCTIONS:
        raise Unlowerable(f"no function {name} of complex numbers")
    if name == "square":
        return make("multiply", d, args[0], args[0])
    if name == "reciprocal":
        return make("true_divide", d, const(1 + 0j, d), args[0])
    return make(name, d.to_real() if name == "absolute" else d, *args)


_FOLDING = frozenset(("add", "subtract", "multiply", "negative", "true_divide", "absolute", "maximum", "minimum"))


def _folded(name: str, d: dtype, args: tuple) -> Expr:
    if name in _FOLDING and all(a.op == "const" for a in args) and d is not dtypes.bool:
        with np.errstate(all="ignore"):
            return const(getattr(np, name)(*[d.numpy.type(a.args[0]) for a in args]).item(), d)
    return make(name, d, *args)


ELEMENTS = Elements()
