"""The text of an element-wise operator's plain case: lines that its generated wrapper runs before the general path.

In: an operator and the names of its wrapper's parameters. Out: source lines, and what they name. What always holds: the
lines return only where every tensor is a small plain CPU tensor and nothing listens; in any other case they fall through.

Two kinds of operators have a plain case: those whose kernel is one ufunc (`ufunc=`), and those whose kernel may be
called on float32 and float64 arrays as they are (`fast=True`), with Python numbers for their attributes. A third kind of
lines chooses another overload where an argument is a Python number (`overloads={"other": remainder_scalar}`).
"""

from __future__ import annotations

import numpy as np

from ...core import dtype as dtypes
from ...core.geometry import elementwise_strides
from ...core.dtype import BOOL, COMPLEX, FLOAT, INT, dtype
from ..operator import Operator

CATEGORIES = {"all": (BOOL, INT, FLOAT, COMPLEX), "number": (INT, FLOAT, COMPLEX), "float": (FLOAT, COMPLEX), "real": (BOOL, INT, FLOAT), "real_number": (INT, FLOAT), "int": (BOOL, INT), "integer": (INT,), "real_float": (FLOAT,)}  # fmt: skip
NUMBERS = frozenset((int, float, bool, complex))
REALS = frozenset((int, float, bool))
_PLAIN_VALUES = {"Scalar": "REALS", "float": "REALS", "int": "REALS", "bool": "REALS", "str": "STRINGS"}
_WRAP = [
    "t = new(Tensor)", "t.array = r", "t.dtype = RESULT or d", "t.device = cpu", "t.keys = 0", "t.autograd = None", "t.version = [0]",
    "t.memory = None", "t.offset = 0", "t.view_info = None",
]  # fmt: skip


def laid_out(made, arrays):
    """A fresh result in the order of memory that its operands ask for, which is not always the array library's."""
    operands = [(a.shape, tuple([s // a.itemsize for s in a.strides])) for a in arrays if a.ndim]
    stride = elementwise_strides(made.shape, operands or [((), ())])
    size = made.itemsize
    strides = tuple([s * size for s in stride])
    if made.strides == strides or not made.size:
        return made
    out = np.ndarray(made.shape, made.dtype, np.empty(made.size, made.dtype), 0, strides)
    out[...] = made
    return out


def lines_of(op: Operator, values: list[str], has_out: bool) -> list[str]:
    """All lines of the plain case of an operator, or of its in-place twin."""
    return _kernel_lines(op, values, has_out) + _overload_lines(op, values, has_out)


def _kernel_lines(op: Operator, values: list[str], has_out: bool) -> list[str]:
    functional = op.inplace_of or op
    arguments = list(zip(values, op.schema.arguments, strict=True))
    tensors = [v for v, a in arguments if a.is_tensor]
    if len(tensors) > 2:
        return []
    no_out = ["out is None"] if has_out else []
    if "ufunc" in functional.options:
        plain = [f"{v} is default_{v}" for v in values if v not in tensors] + no_out
        rest = "".join(f", {v}" for v in values if v not in tensors)
        if op.inplace_of is not None:
            return _inplace_lines(tensors, plain, rest)
        return _unary_lines(tensors[0], plain, rest) if len(tensors) == 1 else _binary_lines(functional, *tensors, plain, rest)
    if functional.options.get("fast"):
        plain = [f"{v}.__class__ in {_PLAIN_VALUES[a.base]}{'_OR_NONE' * a.optional}" for v, a in arguments if not a.is_tensor] + no_out
        return _inplace_fast_lines(tensors, values, plain) if op.inplace_of is not None else _fast_lines(functional, tensors, values, plain)
    return []


def names_of(op: Operator) -> dict:
    """What those lines name."""
    functional = op.inplace_of or op
    options = functional.options
    names: dict = {"NUMBERS": NUMBERS, "REALS": REALS, "REALS_OR_NONE": REALS | {type(None)}, "STRINGS": frozenset((str,))}
    for name, other in options.get("overloads", {}).items():
        chosen = other if op.inplace_of is None else other.inplace
        names |= {f"op_{name}": chosen, f"function_{name}": getattr(other, "function" if op.inplace_of is None else "inplace_function", None)}
    if "ufunc" in options:
        names |= {"ufunc": getattr(np, options["ufunc"]), "DIRECT": _direct(functional)}
    elif options.get("fast"):
        names |= {"kernel": functional.kernel, "DIRECT": frozenset((dtypes.float32, dtypes.float64)), "ndarray": np.ndarray, "check": options.get("check")}
    else:
        return names
    names["laid_out"] = laid_out
    result = options.get("result")
    return names | {"RESULT": result if isinstance(result, dtype) else None, "record": functional, "differentiable": functional.differentiable}


def _direct(op: Operator) -> frozenset:
    """The dtypes for which the ufunc alone is right."""
    by_default = "float" if op.options["promote"] == "int_to_float" else op.options.get("supports", "all")
    accepted = CATEGORIES[op.options.get("direct", by_default)]
    computed = (d for d in dtypes.ALL if d.numpy is not None and not (d.is_floating_point and d.itemsize == 1))
    direct = {d for d in computed if d.category in accepted}
    result = op.options.get("result")
    if result is not None and not isinstance(result, dtype):  # depends on the operand: real results of complex ones
        direct = {d for d in direct if not d.is_complex}
    return frozenset(direct)


def _layout(tensors: list[str]) -> list[str]:
    dense = " and ".join(f"{t}.array.flags.c_contiguous" for t in tensors)
    arrays = ", ".join(f"{t}.array" for t in tensors)
    return [f"if r.ndim > 1 and not ({dense}):", f"    r = laid_out(r, ({arrays},))"]


def _plain(tensors: list[str], plain: list[str]) -> str:
    checks = [c for t in tensors for c in (f"{t}.__class__ in PLAIN", f"not {t}.keys")]
    return " and ".join([*checks, *plain])


def _unary_lines(x: str, plain: list[str], rest: str) -> list[str]:
    return [
        f"    if {_plain([x], plain)}:",
        "        mode = ambient.mode",
        f"        d = {x}.dtype",
        f"        if mode < 2 and d in DIRECT and {x}.array.size < LARGE:",
        f"            r = ufunc({x}.array, out=...)",
        *[f"            {line}" for line in _layout([x]) + _WRAP],
        f"            if mode and differentiable and {x}.autograd is not None:",
        f"                return record.record(t, {x}{rest})",
        "            return t",
    ]


def _binary_lines(op: Operator, x: str, y: str, plain: list[str], rest: str) -> list[str]:
    lines = [
        f"    if {_plain([x], plain)}:",
        "        mode = ambient.mode",
        f"        d = {x}.dtype",
        f"        if mode < 2 and d in DIRECT and {x}.array.size < LARGE:",
        f"            if {y}.__class__ in PLAIN:",
        f"                if d is {y}.dtype and not {y}.keys and {y}.array.size < LARGE:",
        "                    try:",
        f"                        r = ufunc({x}.array, {y}.array, out=...)",
        "                    except ValueError:",
        f"                        return general(function, op, ({x}, {y}{rest}))",
        *[f"                    {line}" for line in _layout([x, y]) + _WRAP],
        f"                    if mode and differentiable and ({x}.autograd is not None or {y}.autograd is not None):",
        f"                        return record.record(t, {x}, {y}{rest})",
        "                    return t",
    ]
    if _takes_number(op, y):
        lines += [
            f"            elif d.category == 2 and ({y}.__class__ is float or {y}.__class__ is int):",
            f"                r = ufunc({x}.array, {y}, out=...)",
            *[f"                {line}" for line in _layout([x]) + _WRAP],
            f"                if mode and differentiable and {x}.autograd is not None:",
            f"                    return record.record(t, {x}, {y}{rest})",
            "                return t",
        ]
    return lines


def _takes_number(op: Operator, name: str) -> bool:
    """Whether the ufunc itself may be given a Python number: it is allowed, and no other overload is meant for it."""
    if name in op.options.get("overloads", ()) and op.differentiable:
        return False
    allowed = op.options.get("numbers")
    return allowed is None or name in allowed


def _fast_lines(op: Operator, tensors: list[str], values: list[str], plain: list[str]) -> list[str]:
    x = tensors[0]
    same = [f"{y}.dtype is d and {y}.array.shape == {x}.array.shape" for y in tensors[1:]]
    arrays = [f"{v}.array" if v in tensors else v for v in values]
    check = [f"            check({', '.join(values)})"] if op.options.get("check") is not None else []
    return [
        f"    if {_plain(tensors, plain)}:",
        "        mode = ambient.mode",
        f"        d = {x}.dtype",
        f"        if {' and '.join(['mode < 2', 'd in DIRECT', f'{x}.array.size < LARGE', *same])}:",
        *check,
        f"            r = kernel(np, {', '.join(arrays)})",
        "            if r.__class__ is not ndarray:",
        "                r = np.asarray(r)",
        *[f"            {line}" for line in _layout(tensors) + _WRAP],
        f"            if mode and differentiable and ({' or '.join(f'{v}.autograd is not None' for v in tensors)}):",
        f"                return record.record(t, {', '.join(values)})",
        "            return t",
    ]


def _inplace_plain(tensors: list[str], plain: list[str]) -> str:
    x = tensors[0]
    dense = f"{x}.view_info is None and ({x}.memory is None or {x}.array.flags.c_contiguous)"  # no index names an element twice
    checks = [f"{t}.autograd is None" for t in tensors] + [dense, "RESULT is None"]
    return _plain(tensors, checks + [f"{x}.dtype is {y}.dtype" for y in tensors[1:]] + plain)


def _inplace_lines(tensors: list[str], plain: list[str], rest: str) -> list[str]:
    x = tensors[0]
    arrays = ", ".join(f"{t}.array" for t in tensors)
    return [
        f"    if {_inplace_plain(tensors, plain)}:",
        f"        if ambient.mode < 2 and {x}.dtype in DIRECT and {x}.array.size < LARGE:",
        "            try:",
        f"                ufunc({arrays}, out={x}.array)",
        "            except ValueError:",
        f"                return general(function, op, ({', '.join(tensors)}{rest},))",
        f"            {x}.version[0] += 1",
        f"            return {x}",
    ]


def _inplace_fast_lines(tensors: list[str], values: list[str], plain: list[str]) -> list[str]:
    if len(tensors) > 1:
        return []
    x = tensors[0]
    return [
        f"    if {_inplace_plain(tensors, plain)}:",
        f"        if ambient.mode < 2 and {x}.dtype in DIRECT and {x}.array.size < LARGE:",
        "            if check is not None:",
        f"                check({', '.join(values)})",
        f"            {x}.array[...] = kernel(np, {', '.join([f'{x}.array', *values[1:]])})",
        f"            {x}.version[0] += 1",
        f"            return {x}",
    ]


def _overload_lines(op: Operator, values: list[str], has_out: bool) -> list[str]:
    """Another overload takes the call where an argument is a Python number; plain calls go to its own wrapper."""
    functional = op.inplace_of or op
    names = {a.name: v for v, a in zip(values, op.schema.arguments, strict=True)}
    arguments = ", ".join(values)
    tail = ", out" if has_out else ""
    keyword = ", out=out" if has_out else ""
    lines = []
    for name in functional.options.get("overloads", {}):
        v = names[name]
        others = [f"{o}.__class__ in PLAIN" for o, a in zip(values, op.schema.arguments, strict=True) if a.is_tensor and o != v]
        lines += [
            f"    if {v}.__class__ in NUMBERS:",
            f"        if {' and '.join(['ambient.mode < 2', *others])}:",
            f"            return function_{name}({arguments}{keyword})",
            f"        return general(function, op_{name}, ({arguments},){tail})",
        ]
    return lines
