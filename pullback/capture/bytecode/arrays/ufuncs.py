"""NumPy's universal functions on traced arrays: NumPy says of which dtype the loop is (`resolve_dtypes`), an operator computes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.dtype import by_numpy
from ....core.tensor import Tensor
from ....ops.system.operator import public
from ..lookups import is_symbol
from ..signals import Break
from .traced import (
    TABLE,
    TracedArray,
    asked,
    conformed,
    is_traced,
    known_to_numpy,
    lifted,
    model_of,
    plain,
    refuse_tensor,
)

SAME = """
add subtract multiply true_divide negative sqrt square exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh arcsin
arccos arctan arcsinh arccosh arctanh deg2rad rad2deg hypot logaddexp logaddexp2 maximum minimum fmax fmin isnan isinf
isfinite signbit copysign nextafter greater greater_equal less less_equal not_equal logical_and logical_or logical_xor
logical_not bitwise_and bitwise_or bitwise_xor gcd lcm heaviside reciprocal float_power absolute
""".split()  # of the same name and meaning as ours, for the loops that are let through
OTHER = {
    "equal": "eq", "rint": "round", "arctan2": "atan2", "invert": "bitwise_not", "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift", "radians": "deg2rad", "degrees": "rad2deg", "fabs": "absolute", "sign": "sign",
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "power": "pow", "conjugate": "conj_physical", "positive": "clone",
    "floor_divide": "floor_divide", "remainder": "remainder", "fmod": "fmod",
}  # fmt: skip
DIVIDING = ("floor_divide", "remainder", "fmod")  # of whole numbers: by zero they give 0 in NumPy
FLOATS = ("reciprocal", "heaviside", "nextafter", "float_power")  # loops of these dtypes alone are the same
REAL = ("sign", "maximum", "minimum", "fmax", "fmin", "greater", "greater_equal", "less", "less_equal")


def loops(ufunc: np.ufunc, inputs: tuple, dtype) -> tuple:
    """The dtypes of the loop: of its inputs and its result."""
    kinds = tuple([_kind(v) for v in inputs])
    named = {} if dtype is None else {"signature": (*([None] * len(inputs)), np.dtype(dtype))}
    if all(k in (int, float, complex) for k in kinds):
        kinds = tuple([np.dtype(k) for k in kinds])
    return ufunc.resolve_dtypes((*kinds, None), **named)


def _kind(value):
    if isinstance(value, (TracedArray, np.generic)):
        return value.dtype
    if isinstance(value, bool):
        return np.dtype(bool)
    return value.symbolic_type if is_symbol(value) else type(value)


def _operand(value, wanted: np.dtype):
    """An input of a loop: a tensor of its dtype, or a number that is one of its dtype."""
    if wanted not in by_numpy:
        raise Break(f"NumPy computes in {wanted}, which no tensor has")
    if isinstance(value, TracedArray):
        dtype = by_numpy[wanted]
        return value.tensor if value.tensor.dtype is dtype else value.tensor.to(dtype)
    if is_symbol(value):
        return public("torch", "scalar_tensor")(value, dtype=by_numpy[wanted])
    try:
        number = np.asarray(value, wanted)
    except OverflowError:
        raise Break("it computes with a number that the NumPy array's dtype does not hold") from None
    return public("torch", "full")((), plain(number[()]), dtype=by_numpy[wanted])


def apply(ufunc: np.ufunc, *inputs, out=None, dtype=None, **other):
    """Call a universal function."""
    if other:
        raise Break(f"it calls numpy.{ufunc.__name__} with {', '.join(other)}")
    inputs, given = inputs[: ufunc.nin], inputs[ufunc.nin :]
    out = (out or (given[0] if given else None)) if out is None or not isinstance(out, tuple) else out[0]
    inputs = tuple([TABLE[np.array](v) if isinstance(v, (list, tuple)) else refuse_tensor(v) for v in inputs])
    if not is_traced((inputs, out)):
        return lifted(ufunc(*inputs, dtype=dtype))
    if out is not None:
        if type(out) is not TracedArray:
            raise Break(f"it calls numpy.{ufunc.__name__} with out= of a {type(out).__name__}")
        out.check_write()
        asked(
            functools.partial(ufunc, dtype=dtype, out=model_of(out).copy()), inputs, {}
        )  # it raises what NumPy raises
    model = asked(functools.partial(ufunc, dtype=dtype), inputs, {})
    *wanted, _ = loops(ufunc, inputs, dtype)
    with known_to_numpy(ufunc.__name__):
        result = conformed(computed(ufunc.__name__, inputs, wanted), model, ufunc.__name__)
    return result if out is None else _written(ufunc, out, result)


def computed(name: str, inputs: tuple, wanted: list) -> Tensor:
    kind = wanted[0].kind
    if name in FLOATS and kind not in "f" or name in REAL and kind == "c":
        raise Break(f"it calls numpy.{name} of {wanted[0]}")
    operands = [_operand(v, w) for v, w in zip(inputs, wanted, strict=True)]
    if name in DIVIDING and kind in "biu":
        is_zero = operands[1] == 0
        safe = operands[1].masked_fill(is_zero, 1)
        return public("torch", OTHER[name])(operands[0], safe).masked_fill(is_zero, 0)
    if name == "power" and kind in "iu":
        _check_exponent(inputs[1])
    if kind in "biu" and name in ("floor", "ceil", "trunc", "rint"):
        return operands[0].clone()
    return public("torch", OTHER.get(name, name))(*operands)


def _check_exponent(exponent) -> None:
    if isinstance(exponent, TracedArray) and exponent.dtype.kind == "i" or is_symbol(exponent):
        raise Break("it raises whole numbers in a NumPy array to powers that may be negative")
    if not isinstance(exponent, TracedArray) and exponent < 0:
        raise Break("it raises whole numbers in a NumPy array to a negative power")


def _written(ufunc: np.ufunc, out, result: TracedArray) -> TracedArray:
    """`out=`: the result is put there, where NumPy would."""
    if tuple(result.tensor.expand(out.shape).shape) != out.shape:
        raise Break("the result of a NumPy function does not fit into out=")
    out.tensor.copy_(result.tensor)
    return out


def _inplace(ufunc: np.ufunc) -> Callable:
    def method(self, other):
        if _is_foreign(other):
            return NotImplemented
        return TABLE[ufunc](self, other) if self.is_scalar else TABLE[ufunc](self, other, out=(self,))

    return method


def _binary(ufunc: np.ufunc) -> Callable:
    return lambda self, other: NotImplemented if _is_foreign(other) else TABLE[ufunc](self, other)


def _reflected(ufunc: np.ufunc) -> Callable:
    return lambda self, other: NotImplemented if _is_foreign(other) else TABLE[ufunc](other, self)


def _unary(ufunc: np.ufunc) -> Callable:
    return lambda self: TABLE[ufunc](self)


def _is_foreign(other) -> bool:
    if isinstance(other, Tensor):
        raise Break("it computes with a tensor and a NumPy array")
    numbers = (TracedArray, bool, int, float, complex, list, tuple, np.generic)
    return not (isinstance(other, numbers) or is_symbol(other))


BINARY: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide, "mod": np.remainder,
    "pow": np.power, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift,
    "rshift": np.right_shift, "matmul": np.matmul,
}  # fmt: skip
COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}

for name in (*SAME, *OTHER):
    TABLE[getattr(np, name)] = functools.partial(apply, getattr(np, name))
for name, ufunc in BINARY.items():
    setattr(TracedArray, f"__{name}__", _binary(ufunc))
    setattr(TracedArray, f"__r{name}__", _reflected(ufunc))
    setattr(TracedArray, f"__i{name}__", _inplace(ufunc))
for name, ufunc in COMPARE.items():
    setattr(TracedArray, f"__{name}__", _binary(ufunc))
for name, ufunc in UNARY.items():
    setattr(TracedArray, f"__{name}__", _unary(ufunc))
TracedArray.__hash__ = None  # type: ignore[assignment]
