"""The text of an element-wise operator's plain case: lines that its generated wrapper runs before the general path.

In: an operator and the names of its wrapper's parameters. Out: source lines, and what they name. What always holds: the
lines return only where every tensor is a small plain CPU tensor and nothing listens; otherwise they fall through.

Two kinds of operators have a plain case: those whose kernel is one ufunc (`ufunc=`), and those whose kernel may be
called on arrays of one dtype and shape as they are (`fast=True`: float32 and float64; `fast="all"`: any), with Python
numbers for attributes; `check_plain=False` says that the operator's check has nothing to say there. A third kind of
lines chooses another overload where an argument is a Python number (`overloads={"other": remainder_scalar}`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from ...core import dtype as dtypes
from ...core.arrays import strided
from ...core.dtype import BOOL, COMPLEX, FLOAT, INT, dtype
from ...core.geometry import elementwise_strides
from ...core.objects import fresh_lines
from ...core.tensor import CUDA, Tensor
from ..system.operator import Operator

CATEGORIES = {
    "all": (BOOL, INT, FLOAT, COMPLEX), "number": (INT, FLOAT, COMPLEX), "float": (FLOAT, COMPLEX),
    "real": (BOOL, INT, FLOAT), "real_number": (INT, FLOAT), "real_float": (FLOAT,),
    "int": (BOOL, INT), "integer": (INT,),
}  # fmt: skip
NUMBERS = frozenset((int, float, bool, complex))
REALS = frozenset((int, float, bool))
COMPUTED = frozenset(d for d in dtypes.ALL if d.numpy is not None and not (d.is_floating_point and d.itemsize == 1))
_PLAIN_VALUES = {"Scalar": "REALS", "float": "REALS", "int": "REALS", "bool": "REALS", "str": "STRINGS"}
_WRAP = fresh_lines("RESULT or d")


def laid_out(made, arrays, xp=np):
    """A fresh result in the order of memory that its operands ask for, which is not always the array library's."""
    stride = _strides(made.shape, made.itemsize, arrays)
    if made.strides == stride or not made.size:
        return made
    out = blank(made.shape, made.dtype, arrays, xp)
    out[...] = made
    return out


def blank(shape: tuple, dtype: np.dtype, arrays, xp=np):
    """Memory for the result of an element-wise operator on some arrays."""
    size = 1
    for s in shape:
        size *= s
    strides = _strides(shape, dtype.itemsize, arrays)
    if xp is not np:
        return strided(xp.empty(size, dtype), shape, dtype, 0, strides)
    return np.ndarray(shape, dtype, np.empty(size, dtype), 0, strides)


def _strides(shape: tuple, itemsize: int, arrays) -> tuple:
    operands = [(a.shape, tuple([s // a.itemsize for s in a.strides])) for a in arrays if a.ndim]
    return tuple([s * itemsize for s in elementwise_strides(shape, operands or [((), ())])])


def ufunc_of(op: Operator, values: list, result: np.dtype):
    """`call(arrays, out)` by the ufunc alone, where that is the whole operator on arrays of this dtype, else None."""
    declared = op.declared
    arguments = op.schema.arguments
    first = next((v for v in values if isinstance(v, np.ndarray)), None)
    if declared.ufunc is None or first is None or dtypes.by_numpy[first.dtype] not in direct_dtypes(op):
        return None
    if result != first.dtype and declared.result is not dtypes.bool:
        return None
    if any(not a.is_tensor and not _is_default(a, v) for a, v in zip(arguments, values, strict=True)):
        return None
    ufunc = getattr(np, declared.ufunc)
    constant = [np.asarray(declared.constant, dtype=first.dtype)] if declared.constant is not None else []
    return lambda pieces, out: ufunc(*[p for p in pieces if isinstance(p, np.ndarray)], *constant, out=out)


def _is_default(argument, value) -> bool:
    return argument.has_default and not isinstance(value, np.ndarray) and value == argument.default


@dataclass
class Call:
    """What the lines of one wrapper are made from."""

    op: Operator  # the functional operator
    inplace: bool
    values: list[str]  # parameter names, in schema order
    has_out: bool

    @property
    def arguments(self) -> list:
        return list(zip(self.values, self.op.schema.arguments, strict=True))

    @property
    def tensors(self) -> list[str]:
        return [v for v, a in self.arguments if a.is_tensor]

    @property
    def masks(self) -> list[str]:
        """Tensors that take no part in promotion: they must be boolean."""
        operands = self.op.declared.operands
        return [v for v, a in self.arguments if operands and a.is_tensor and a.name not in operands]

    @property
    def no_out(self) -> list[str]:
        return ["out is None"] if self.has_out else []


def lines_of(op: Operator, values: list[str], has_out: bool) -> list[str]:
    """All lines of the plain case of an operator, or of its in-place twin."""
    call = Call(op.inplace_of or op, op.inplace_of is not None, values, has_out)
    declared = call.op.declared
    lines: list[str] = []
    if call.inplace and declared.result is not None:
        return _overload_lines(call)
    if declared.ufunc is not None and len(call.tensors) <= 2:
        lines += _inplace_ufunc_lines(call) if call.inplace else _ufunc_lines(call)
    if declared.fast:
        lines += _inplace_kernel_lines(call) if call.inplace else _kernel_lines(call)
    return lines + _overload_lines(call)


def names_of(op: Operator) -> dict:
    """What those lines name."""
    functional = op.inplace_of or op
    declared = functional.declared
    result = declared.result
    names = {
        "NUMBERS": NUMBERS, "REALS": REALS, "REALS_OR_NONE": REALS | {type(None)}, "STRINGS": frozenset((str,)),
        "laid_out": laid_out, "ndarray": np.ndarray, "asarray": np.asarray, "BOOL": dtypes.bool, "record": functional,
        "RESULT": result if isinstance(result, dtype) else None, "differentiable": functional.differentiable,
    }  # fmt: skip
    for name, other in declared.overloads.items():
        chosen, made = (other, "function") if op.inplace_of is None else (other.inplace, "inplace_function")
        names |= {f"op_{name}": chosen, f"function_{name}": getattr(other, made, None)}
    if declared.ufunc is not None:
        names |= {"ufunc": getattr(np, declared.ufunc), "DIRECT": direct_dtypes(functional)}
    if declared.constant is not None:
        names["CONSTANT"] = {d: np.asarray(declared.constant, dtype=d.numpy) for d in names["DIRECT"]}
    if declared.fast:
        direct = COMPUTED if declared.fast == "all" else frozenset((dtypes.float32, dtypes.float64))
        names |= {"kernel": functional.kernel, "DIRECT_KERNEL": direct, "check": declared.check}
    return names


@cache
def direct_dtypes(op: Operator) -> frozenset:
    """The dtypes for which the ufunc alone is right."""
    by_default = "float" if op.declared.promote == "int_to_float" else op.declared.supports
    accepted = CATEGORIES[op.declared.direct or by_default]
    direct = {d for d in COMPUTED if d.category in accepted}
    result = op.declared.result
    if result is not None and not isinstance(result, dtype):  # depends on the operand: real results of complex ones
        direct = {d for d in direct if not d.is_complex}
    return frozenset(direct)


def ufunc_writes(op: Operator, target: Tensor, args: tuple) -> bool:
    """Whether `ufunc(..., out=target)` is the whole in-place operator for these arguments."""
    declared, d = op.declared, target.dtype
    if (
        declared.ufunc is None
        or declared.constant is not None
        or declared.result is not None
        or d not in direct_dtypes(op)
        or target.keys & ~CUDA
        or declared.operands
        or declared.dense_writes
        and not target.array.flags.c_contiguous
    ):
        return False
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if not argument.is_tensor:
            if not argument.has_default or value != argument.default:
                return False
        elif isinstance(value, Tensor):
            if value.dtype is not d or value.keys & ~CUDA or not _fits(value.array.shape, target.array.shape):
                return False
        elif d.category != FLOAT or value.__class__ not in (int, float):
            return False
    return True


def _fits(shape: tuple, into: tuple) -> bool:
    lead = len(into) - len(shape)
    return lead >= 0 and all(s == 1 or s == n for s, n in zip(shape, into[lead:], strict=True))


def _plain(tensors: list[str], *more: str) -> str:
    return " and ".join([*[c for t in tensors for c in (f"{t}.__class__ in PLAIN", f"not {t}.keys")], *more])


def _finish(call: Call, tensors: list[str], depth: int) -> list[str]:
    """Lay out the result, wrap it, record the call."""
    pad = "    " * depth
    dense = " and ".join(f"{t}.array.flags.c_contiguous" for t in tensors)
    live = " or ".join(f"{t}.autograd is not None" for t in tensors)
    order = [] if call.op.declared.contiguous else [f"{t}.array" for t in tensors]
    lines = [
        f"if r.ndim > 1 and not ({dense}):",
        f"    r = laid_out(r, [{', '.join(order)}])",
        *_WRAP,
    ]
    if call.op.differentiable:
        lines += [f"if mode and ({live}):", f"    return record.record(t, {', '.join(call.values)})"]
    return [pad + line for line in [*lines, "return t"]]


# ---- one ufunc
def _defaults(call: Call) -> list[str]:
    return [f"{v} is default_{v}" for v in call.values if v not in call.tensors] + call.no_out


def _ufunc_lines(call: Call) -> list[str]:
    x, *others = call.tensors
    head = [
        f"    if {_plain([x], *_defaults(call))}:",
        "        mode = ambient.mode",
        f"        d = {x}.dtype",
        f"        if mode < 2 and d in DIRECT and {x}.array.size < LARGE:",
    ]
    if not others:
        return [*head, f"            r = ufunc({x}.array{_constant(call)}, out=...)", *_finish(call, [x], 3)]
    y = others[0]
    lines = [
        *head,
        f"            if {y}.__class__ in PLAIN:",
        f"                if d is {y}.dtype and not {y}.keys and {y}.array.size < LARGE:",
        "                    try:",
        f"                        r = ufunc({x}.array, {y}.array, out=...)",
        "                    except ValueError:",
        f"                        return general(function, op, ({', '.join(call.values)},))",
        *_finish(call, [x, y], 5),
    ]
    if _takes_number(call.op, y):
        lines += [
            f"            elif d.category == 2 and ({y}.__class__ is float or {y}.__class__ is int):",
            f"                r = ufunc({x}.array, asarray({y}, dtype={x}.array.dtype), out=...)",
            *_finish(call, [x], 4),
        ]
    return lines


def _constant(call: Call) -> str:
    """A number that is the ufunc's other operand (`constant=0`), as arrays by dtype."""
    return ", CONSTANT[d]" if call.op.declared.constant is not None else ""


def _takes_number(op: Operator, name: str) -> bool:
    """Whether the ufunc itself may be given a Python number: it is allowed, and no other overload is meant for it."""
    if name in op.declared.overloads and op.differentiable:
        return False
    allowed = op.declared.numbers
    return allowed is None or name in allowed


# ---- a kernel
def _values_are_plain(call: Call) -> list[str]:
    attributes = [(v, a) for v, a in call.arguments if not a.is_tensor]
    return [f"{v}.__class__ in {_PLAIN_VALUES[a.base]}{'_OR_NONE' * a.optional}" for v, a in attributes] + call.no_out


def _alike(call: Call) -> tuple[str, list[str]]:
    """The tensor whose dtype counts, and what must hold of the others: one dtype (masks: boolean), one shape."""
    masks = call.masks
    first = next(t for t in call.tensors if t not in masks)
    same = []
    for t in call.tensors:
        if t != first:
            same += [f"{t}.dtype is {'BOOL' if t in masks else 'd'}", f"{t}.array.shape == {first}.array.shape"]
    return first, same


def _kernel_call(call: Call) -> str:
    arrays = [f"{v}.array" if v in call.tensors else v for v in call.values]
    return f"kernel(np, {', '.join(arrays)})"


def _check_lines(call: Call, depth: int) -> list[str]:
    checked = call.op.declared.check is not None and call.op.declared.check_plain
    return ["    " * depth + f"check({', '.join(call.values)})"] if checked else []


def _kernel_lines(call: Call) -> list[str]:
    first, same = _alike(call)
    return [
        f"    if {_plain(call.tensors, *_values_are_plain(call))}:",
        "        mode = ambient.mode",
        f"        d = {first}.dtype",
        f"        if {' and '.join(['mode < 2', 'd in DIRECT_KERNEL', f'{first}.array.size < LARGE', *same])}:",
        *_check_lines(call, 3),
        f"            r = {_kernel_call(call)}",
        "            if r.__class__ is not ndarray:",
        "                r = np.asarray(r)",
        *_finish(call, call.tensors, 3),
    ]


# ---- in place
def _writable(call: Call, tensors: list[str], direct: str) -> str:
    """Memory that is written once by each element, and a history that need not be kept: none, or recording is off."""
    x = tensors[0]
    no_history = " and ".join([*[f"{t}.autograd is None" for t in tensors], f"{x}.view_info is None"])
    recording = f"(mode == 0 or mode == 1 and {no_history})"
    apart = "".join(f" and {y}.memory is not {x}.memory" for y in tensors[1:])
    memory = f"({x}.memory is None or {x}.array.flags.c_contiguous{apart})"
    return f"{recording} and d in {direct} and {x}.array.size < LARGE and {memory}"


def _inplace_ufunc_lines(call: Call) -> list[str]:
    x, *others = call.tensors
    head = [f"    if {_plain([x], *_defaults(call))}:", "        mode = ambient.mode", f"        d = {x}.dtype"]
    done = [f"            {x}.version[0] += 1", f"            return {x}"]
    if not others:
        write = f"            ufunc({x}.array{_constant(call)}, out={x}.array)"
        dense = f" and {x}.array.flags.c_contiguous" if call.op.declared.dense_writes else ""
        return [*head, f"        if {_writable(call, [x], 'DIRECT')}{dense}:", write, *done]
    y = others[0]
    lines = [
        *head,
        f"        if {_plain([y])} and {y}.dtype is d and {_writable(call, [x, y], 'DIRECT')}:",
        "            try:",
        f"                ufunc({x}.array, {y}.array, out={x}.array)",
        "            except ValueError:",
        f"                return general(function, op, ({', '.join(call.values)},))",
        *done,
    ]
    if _takes_number(call.op, y):
        number = f"({y}.__class__ is float or {y}.__class__ is int)"
        lines += [
            f"        if {number} and d.category == 2 and {_writable(call, [x], 'DIRECT')}:",
            f"            ufunc({x}.array, asarray({y}, dtype={x}.array.dtype), out={x}.array)",
            *done,
        ]
    return lines


def _inplace_kernel_lines(call: Call) -> list[str]:
    first, same = _alike(call)
    if first != call.tensors[0]:
        return []
    return [
        f"    if {_plain(call.tensors, *_values_are_plain(call))}:",
        "        mode = ambient.mode",
        f"        d = {first}.dtype",
        f"        if {' and '.join([_writable(call, call.tensors, 'DIRECT_KERNEL'), *same])}:",
        *_check_lines(call, 3),
        f"            {first}.array[...] = {_kernel_call(call)}",
        f"            {first}.version[0] += 1",
        f"            return {first}",
    ]


# ---- another overload
def _overload_lines(call: Call) -> list[str]:
    """Another overload takes the call where an argument is a Python number; plain calls go to its own wrapper."""
    names = {a.name: v for v, a in call.arguments}
    arguments = ", ".join(call.values)
    lines = []
    for name in call.op.declared.overloads:
        v = names[name]
        others = [
            f"{o}.__class__ in PLAIN"
            for o in call.tensors
            if o != v and o not in map(names.get, call.op.declared.overloads)
        ]
        lines += [
            f"    if {v}.__class__ in NUMBERS:",
            f"        if {' and '.join(['ambient.mode < 2', *others])}:",
            f"            return function_{name}({arguments}{', out=out' * call.has_out})",
            f"        return general(function, op_{name}, ({arguments},){', out' * call.has_out})",
        ]
    return lines
