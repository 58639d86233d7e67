"""One operation of an expression as C: types, literals, functions."""

from __future__ import annotations

import math

from ...core import dtype as dtypes
from ...core.dtype import dtype
from ...ops.lowering.expressions import Expr

C_TYPES = {
    dtypes.bool: "u8", dtypes.uint8: "u8", dtypes.int8: "i8", dtypes.int16: "i16", dtypes.int32: "i32", dtypes.int64: "i64",
    dtypes.uint16: "u16", dtypes.uint32: "u32", dtypes.float16: "f16", dtypes.bfloat16: "bf16", dtypes.float32: "f32",
    dtypes.float64: "f64", dtypes.complex64: "c64", dtypes.complex128: "c128",
}  # fmt: skip

INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "true_divide": "/", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=", "equal": "==", "not_equal": "!=", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
    "logical_and": "&&", "logical_or": "||", "logical_xor": "!=",
}  # fmt: skip
BOOLEAN = {"add": "|", "multiply": "&", "maximum": "|", "minimum": "&", "fmax": "|", "fmin": "&"}
# In single precision, by polynomials.
OURS = frozenset((
    "exp", "expm1", "exp2", "log", "log1p", "log2", "tanh", "erf", "sigmoid", "sinh", "cosh", "arcsinh", "arctanh", "arctan", "arctan2",
))  # fmt: skip
OURS_DOUBLE = frozenset(("erf",))  # those that double precision has a polynomial of too
UNVECTORISED = OURS - {
    "exp",
    "log",
    "tanh",
    "sigmoid",
}  # of which the array library has no vector loops on every processor
LIBRARY = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "arctan2": "atan2", "power": "pow",
}  # fmt: skip
BUILTIN = {
    "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "absolute": "fabs", "copysign": "copysign"
}  # fmt: skip
PAIRS = {"maximum": "max", "minimum": "min", "fmax": "fmax", "fmin": "fmin", "remainder": "remainder", "floor_divide": "floor_divide", "sign": "sign"}  # fmt: skip


def number(value, d: dtype) -> str:
    """A literal."""
    if d is dtypes.bool:
        return "1" if value else "0"
    if d.is_complex:
        kind = C_TYPES[d.to_real()]
        parts = (f"({kind}){number(part, d.to_real())}" for part in (value.real, value.imag))
        return f"__builtin_complex({', '.join(parts)})"
    if not d.is_floating_point:
        if value == -(1 << 63):
            return "(-9223372036854775807L - 1L)"
        return f"{value}L" if d is dtypes.int64 else f"(({C_TYPES[d]}){value})"
    if math.isnan(value) or math.isinf(value):
        text = "NAN" if math.isnan(value) else "INF" if value > 0 else "(-INF)"
    else:
        text = f"{float(value)!r}" if d is dtypes.float64 else f"{shortest(value)}f"
        text = f"({text})" if text.startswith("-") else text
    if d is dtypes.bfloat16:
        return f"to_bf16({text})"
    return f"((f16){text})" if d is dtypes.float16 else text


def shortest(value: float) -> str:
    """The shortest decimal that reads back as the same single-precision number."""
    import numpy as np

    text = str(np.float32(value))
    return text if "." in text or "e" in text else f"{text}.0"


def operation(e: Expr, args: list[str]) -> str:
    """An expression in terms of the names of its arguments."""
    op, d = e.op, e.args[0].dtype
    if op == "cast":
        return _cast(args[0], d, e.dtype)
    if op == "where":
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if d is dtypes.bool:
        return _boolean(op, args)
    if op == "complex":
        return f"__builtin_complex({args[0]}, {args[1]})"
    if d.is_complex:
        return _of_complex(op, d, args)
    if op in INFIX:
        return f"{args[0]} {INFIX[op]} {args[1]}"
    if op == "negative":
        return f"-{args[0]}"
    return _of_float(op, d, args) if d.is_floating_point else _of_integer(op, d, args)


def _boolean(op: str, args: list[str]) -> str:
    if op in BOOLEAN:
        return f"{args[0]} {BOOLEAN[op]} {args[1]}"
    return f"!{args[0]}" if op in ("invert", "logical_not") else f"{args[0]} {INFIX[op]} {args[1]}"


def _of_complex(op: str, d: dtype, args: list[str]) -> str:
    kind = C_TYPES[d]
    if op in ("real", "imag"):
        return f"__{op}__ {args[0]}"
    if op in ("multiply", "true_divide"):  # by the schoolbook, as the array library: no second look at NaN
        return f"{kind}_{op}({args[0]}, {args[1]})"
    if op in INFIX:
        return f"{args[0]} {INFIX[op]} {args[1]}"
    if op in ("negative", "conjugate"):
        return f"{'-' if op == 'negative' else '~'}{args[0]}"
    name = "abs" if op == "absolute" else LIBRARY.get(op, op)
    return f"c{name}{'f' if d is dtypes.complex64 else ''}({args[0]})"


def _of_float(op: str, d: dtype, args: list[str]) -> str:
    single = d is dtypes.float32
    if op in PAIRS:
        return f"{'f' if single else 'd'}_{PAIRS[op]}({', '.join(args)})"
    if op in OURS and (single or op in OURS_DOUBLE or op == "sigmoid"):
        return f"{'f' if single else 'd'}_{op}({', '.join(args)})"
    if op in BUILTIN:
        return f"__builtin_{BUILTIN[op]}{'f' if single else ''}({', '.join(args)})"
    if op == "isnan":
        return f"{args[0]} != {args[0]}"
    if op == "isinf":
        return f"__builtin_fabs{'f' if single else ''}({args[0]}) == INF"
    if op == "isfinite":
        return f"__builtin_fabs{'f' if single else ''}({args[0]}) < INF"
    if op == "signbit":
        return f"__builtin_copysign{'f' if single else ''}(1{'.f' if single else '.'}, {args[0]}) < 0"  # gcc 12 breaks on signbit in vectors
    return f"{LIBRARY.get(op, op)}{'f' if single else ''}({', '.join(args)})"


def _of_integer(op: str, d: dtype, args: list[str]) -> str:
    kind = C_TYPES[d]
    if op in ("maximum", "fmax"):
        return f"{args[0]} > {args[1]} ? {args[0]} : {args[1]}"
    if op in ("minimum", "fmin"):
        return f"{args[0]} < {args[1]} ? {args[0]} : {args[1]}"
    if op == "absolute":
        return args[0] if not d.is_signed else f"{args[0]} < 0 ? ({kind})-{args[0]} : {args[0]}"
    if op == "sign":
        return f"({args[0]} > 0) - ({args[0]} < 0)"
    if op == "invert":
        return f"~{args[0]}"
    if op == "signbit":
        return f"{args[0]} < 0"
    name = {"left_shift": "shl", "right_shift": "shr"}.get(op, op)
    return f"{kind}_{name}({', '.join(args)})"


def _cast(x: str, source: dtype, target: dtype) -> str:
    if source is dtypes.bfloat16:
        x, source = f"from_bf16({x})", dtypes.float32
    if target is dtypes.bool:
        return f"{x} != 0"
    if source.is_complex and not target.is_complex:
        x, source = f"(__real__ {x})", source.to_real()
    if target is dtypes.bfloat16:
        return f"to_bf16((f32){x})"
    if (
        source.is_floating_point
        and not target.is_floating_point
        and not target.is_complex
        and target is not dtypes.int64
    ):
        through = "i32" if target.is_signed or target.itemsize == 1 else "i64"  # as operators cast: `cast_array`
        return f"({C_TYPES[target]})({through}){x}"
    return f"({C_TYPES[target]}){x}"
