"""The plain case of element-wise operators: small plain CPU tensors, straight to the array library; large ones to a loop in C.

Two kinds of operators have one: those whose kernel is one ufunc (`ufunc=`), and those whose kernel may be called on
arrays of one dtype and shape as they are (`plain=KernelCase()`). A third kind of lines chooses another overload where an
argument is a Python number (`overloads={"other": remainder_scalar}`).
"""

from __future__ import annotations

import functools

import numpy as np

from ...core import dtype as dtypes
from ...core.dtype import FLOAT, dtype
from ...core.small import spread, written_once
from ..system.operator import Operator
from ..system.scalars import check_fits
from .kernels import half_kernel_of, half_loop_of, half_number_loop_of, has_loop, kernel_of, loop_of, straight_of
from .large import looped_dtypes, loops_of, over_all, shares
from .text import Call, PlainCase, all_of, attempt, block, finish, is_plain, live
from .ufuncs import CATEGORIES, COMPUTED, direct_dtypes, laid_out
from .views import is_unheard, may_have_history

__all__ = ["KernelCase", "lines_of", "names_of", "overload_lines"]

FLOATS = frozenset((dtypes.float32, dtypes.float64))
WHOLE = frozenset((dtypes.int64, dtypes.int32, dtypes.int16, dtypes.int8, dtypes.uint8))
NUMBERS = frozenset((int, float, bool, complex))
REALS = frozenset((int, float, bool))
_PLAIN_VALUES = {"Scalar": "REALS", "float": "REALS", "int": "WHOLES", "bool": "TRUTHS", "str": "STRINGS"}


def lines_of(call: Call) -> list[str]:
    """The plain case of an operator, or of its in-place form."""
    declared = call.op.declared
    lines: list[str] = []
    if call.inplace and declared.result is not None:
        return []
    if declared.ufunc is not None and len(call.tensors) <= 2:
        lines += _inplace_ufunc_lines(call) if call.inplace else [*_ufunc_lines(call), *_out_lines(call)]
    case = case_of(call.op)
    return lines + (case.lines(call) if case is not None else [])


def case_of(op: Operator) -> PlainCase | None:
    """The case that a declaration names, or that any kernel on floating-point arrays of one dtype and shape has by itself."""
    if op.declared.plain is not None:
        return op.declared.plain
    return AnyKernelCase() if AnyKernelCase.fits(op) else None


def names_of(op: Operator) -> dict:
    """What those lines name."""
    functional = op.inplace_of or op
    declared = functional.declared
    result = declared.result
    names = {
        "NUMBERS": NUMBERS, "REALS": REALS, "REALS_OR_NONE": REALS | {type(None)},
        "WHOLES": frozenset((int,)), "WHOLES_OR_NONE": frozenset((int, type(None))), "TRUTHS": frozenset((bool,)),
        "TRUTHS_OR_NONE": frozenset((bool, type(None))), "STRINGS": frozenset((str,)),
        "laid_out": laid_out, "written_once": written_once, "spread": spread, "is_unheard": is_unheard, "may_have_history": may_have_history, "ndarray": np.ndarray, "asarray": np.asarray, "BOOL": dtypes.bool, "record": functional,
        "RESULT": result if isinstance(result, dtype) else None,
        "FLOATS": FLOATS, "WHOLE": WHOLE, "HALVES": dtypes.reduced_precision, "F32": dtypes.float32.numpy, "MEET": MEET,
    }  # fmt: skip
    for name, other in declared.overloads.items():
        chosen, output = (other, "function") if op.inplace_of is None else (other.inplace, "inplace_function")
        names |= {f"op_{name}": chosen, f"function_{name}": getattr(other, output, None)}
    if declared.ufunc is not None:
        names |= {"ufunc": getattr(np, declared.ufunc), "DIRECT": direct_dtypes(functional)}
        names |= {"loop": loop_of(functional), "FLOAT32": dtypes.float32, "straight": straight_of(functional)}
        names |= {"half_loop": half_loop_of(functional), "half_number_loop": half_number_loop_of(functional)}
        names |= {"LOOPS": loops_of(functional), "over_all": over_all, "shares": shares}
    if declared.constant is not None:
        names["CONSTANT"] = {d: np.asarray(declared.constant, dtype=d.numpy) for d in names["DIRECT"]}
    case = case_of(functional)
    return names | (case.names(functional) if case is not None else {})


def _finish(call: Call, tensors: list[str]) -> list[str]:
    """Lay out the result, wrap it, record the call."""
    dense = all_of(*[f"{t}._array.flags.c_contiguous" for t in tensors])
    order = [] if call.op.declared.contiguous else [f"{t}._array" for t in tensors]
    record = f"record.record(t, {call.given})" if call.op.differentiable else None
    dtype = "d" if call.op.declared.result is None else "RESULT or d"
    return [
        *block(f"if r.ndim > 1 and not ({dense}):", f"r = laid_out(r, [{', '.join(order)}])"),
        *finish(dtype, tensors, record),
    ]


# ---- one ufunc
def _ufunc(call: Call) -> str:
    """The ufunc of a call: one in C where there is one for the dtype."""
    half = "" if half_loop_of(call.op) is None else "half_loop if d in HALVES else "
    single = "" if loop_of(call.op) is None else "loop if d is FLOAT32 else "
    return f"({single}{half}ufunc)" if half or single else "ufunc"


def _number_ufunc(call: Call) -> str:
    """The ufunc of a call with a number."""
    return "ufunc" if half_loop_of(call.op) is None else "(half_loop if d in HALVES else ufunc)"


def _unary(call: Call, x: str, out: str) -> str:
    """The ufunc of one array, with the constant that the array library's takes beside it."""
    if call.op.declared.constant is None:
        return f"{_ufunc(call)}({x}._array, out={out})"
    other = f"ufunc(CONSTANT[d], {x}._array, out={out})"
    return other if loop_of(call.op) is None else f"loop({x}._array, out={out}) if d is FLOAT32 else {other}"


def _defaults(call: Call) -> list[str]:
    others = [v for v in call.values if v not in call.tensors and v not in call.fixed]
    return [f"{v} is default_{v}" for v in others] + call.no_out


def _ufunc_lines(call: Call) -> list[str]:
    x, *others = call.tensors
    first = [] if loop_of(call.op) is None or straight_of(call.op) is None else _straight_lines(call, "d is FLOAT32")
    if others:
        body = _binary_lines(call, x, others[0], first)
    else:
        body = [*first, f"r = {_unary(call, x, '...')}", *_finish(call, [x])]
    lines = block(f"if mode < 2 and d in DIRECT and {x}._array.size < LARGE:", *body)
    if loops_of(call.op):
        lines += block("elif mode < 2 and d in LOOPS:", *_large_lines(call, x, *others))
    return block(f"if {is_plain([x], *_defaults(call))}:", "mode = ambient.mode", f"d = {x}.dtype", *lines)


def _large_lines(call: Call, x: str, y: str | None = None) -> list[str]:
    """Many elements: a loop in C, which threads share."""
    done = finish(
        "d", [x] if y is None else [x, y], f"record.record(t, {call.given})" if call.op.differentiable else None
    )
    if y is None:
        return block(f"if shares({x}._array):", f"r = LOOPS[d]({x}._array)", *done)
    pair = block("if r is not None:", *done)
    lines = block(
        f"if {y}.__class__ in PLAIN:",
        *block(f"if {_is_alike(y)}:", f"r = over_all(LOOPS[d], {x}._array, {y}._array)", *pair),
    )
    if _takes_number(call.op, y):
        number = f"r = over_all(LOOPS[d], {x}._array, asarray({y}, dtype={x}._array.dtype))"
        alone = finish("d", [x], f"record.record(t, {call.given})" if call.op.differentiable else None)
        lines += block(f"elif {_number_fits(call, y)}:", number, *block("if r is not None:", *alone))
    return lines


def _is_alike(y: str) -> str:
    return f"d is {y}.dtype and not {y}._keys"


def _binary_lines(call: Call, x: str, y: str, first: list[str]) -> list[str]:
    few = (
        f"{x}._array.ndim < 3"  # dimensions: where there are more, the last may be short, and operands repeated inside
    )
    both = f"{_ufunc(call)}({x}._array, {y}._array, out=...) if {few} else {_ufunc(call)}(*spread({x}._array, {y}._array), out=...)"
    pair = [*first, *attempt(f"r = {both}", "ValueError", *_finish(call, [x, y]))]
    alike = block(f"if {_is_alike(y)} and {y}._array.size < LARGE:", *pair)
    lines = block(f"if {y}.__class__ in PLAIN:", *alike, *_meeting_lines(call, x, y))
    if _takes_number(call.op, y):
        lines += block(
            f"elif {_number_fits(call, y)}:",
            f"r = {_number_ufunc(call)}({x}._array, asarray({y}, dtype={x}._array.dtype), out=...)",
            *_finish(call, [x]),
        )
    if y in call.op.declared.wide and half_number_loop_of(call.op) is not None:
        lines += block(
            f"elif {_is_half_number(y)}:",
            f"r = half_number_loop({x}._array, asarray({y}, dtype=F32), out=...)",
            *_finish(call, [x]),
        )
    return lines


def _meeting_lines(call: Call, x: str, y: str) -> list[str]:
    """Arrays of two dtypes of which one has room for the other, none of them without dimensions: both in that one."""
    if not isinstance(call.op.declared.promote, str):
        return []
    lines = attempt(
        f"r = {_ufunc(call)}({x}._array.astype(d.numpy, copy=False), {y}._array.astype(d.numpy, copy=False), out=...)",
        "ValueError",
        *_finish(call, [x, y]),
    )
    few = all_of(f"not {y}._keys", f"{y}._array.size < LARGE", f"{x}._array.ndim", f"{y}._array.ndim")
    meet = block(f"if (meet := MEET.get((d, {y}.dtype))) in DIRECT:", "d = meet", *lines, f"d = {x}.dtype")
    return block(f"elif {few}:", *meet)


def _meetings() -> dict[tuple[dtype, dtype], dtype]:
    """Where two dtypes meet: those of floating point, or one of them and integers."""
    singles = {(h, f): f for h in dtypes.reduced_precision for f in FLOATS}
    wholes = {(f, w): f for f in FLOATS for w in WHOLE}
    found = singles | wholes | {(dtypes.float32, dtypes.float64): dtypes.float64}
    return found | {(b, a): d for (a, b), d in found.items()}


MEET = _meetings()


def _number_fits(call: Call, y: str) -> str:
    """The condition that a Python number may be rounded to the dtype before the ufunc sees it; one that all integers hold is one of them."""
    floating = "d in FLOATS" if y in call.op.declared.wide else "d.category == 2"
    number = f"{floating} and ({y}.__class__ is float or {y}.__class__ is int)"
    return f"({number} or {y}.__class__ is int and d in WHOLE and 0 <= {y} < 128)"


def _is_half_number(y: str) -> str:
    return f"d in HALVES and ({y}.__class__ is float or {y}.__class__ is int)"


def _takes_number(op: Operator, name: str) -> bool:
    """Whether the ufunc itself may be given a Python number: it is allowed, and no other overload is meant for it."""
    if name in op.declared.overloads and op.differentiable:
        return False
    allowed = op.declared.numbers
    return allowed is None or name in allowed


# ---- a kernel
class KernelCase(PlainCase):
    """The kernel is called on small plain arrays of one dtype and shape as they are, with Python numbers for attributes.

    `dtypes` is `"float"` (float32 and float64) or `"all"`; with `check=False` the check has nothing to say of such calls.
    """

    __slots__ = ("dtypes", "check")

    def __init__(self, dtypes: str = "float", check: bool = True):
        self.dtypes, self.check = dtypes, check

    def lines(self, call: Call) -> list[str]:
        checked = self.check and call.op.declared.check is not None
        checks = [f"check({call.given})"] if checked else []
        return _inplace_kernel_lines(call, checks) if call.inplace else _kernel_lines(call, checks)

    def others(self, op: Operator) -> frozenset[dtype]:
        """The dtypes but floating-point ones for which the kernel is called."""
        return frozenset()

    def names(self, op: Operator) -> dict:
        direct = COMPUTED if self.dtypes == "all" else FLOATS
        looped = {"LOOPED": looped_dtypes(op), "shares": shares}
        half = {"half_kernel": half_kernel_of(op), "rounded": rounded, "fitted": fitted}
        own = {"DIRECT_KERNEL": direct, "OTHER_KERNEL": self.others(op)}
        return {
            "kernel": kernel_of(op),
            "straight": straight_of(op),
            "check": op.declared.check,
            **own,
            **looped,
            **half,
        }


class AnyKernelCase(KernelCase):
    """A kernel of which nothing is promised: its result may be of another dtype, or one of its operands, or a view of it."""

    __slots__ = ()

    @staticmethod
    def fits(op: Operator) -> bool:
        declared, arguments = op.declared, op.schema.arguments
        simple = isinstance(declared.promote, str) and isinstance(declared.supports, str) and not declared.contiguous
        if op.kernel is None or not simple or FLOAT not in CATEGORIES[declared.supports] or len(op.schema.returns) > 1:
            return False
        if callable(declared.result) and any(declared.result(d) is not d for d in FLOATS):
            return False
        values = [a for a in arguments if not a.is_tensor]
        tensors = [a for a in arguments if a.is_tensor]
        operands = declared.operands or [a.name for a in tensors]
        alike = all(not a.is_list and not a.optional for a in tensors) and {a.name for a in tensors} == set(operands)
        return bool(tensors) and alike and all(a.base in _PLAIN_VALUES and not a.is_list for a in values)

    def others(self, op: Operator) -> frozenset[dtype]:
        declared = op.declared
        if op.native is not None or declared.promote != "promote" or callable(declared.result):
            return frozenset()
        numbers = {a.name for a in op.schema.arguments if not a.is_tensor}
        if not numbers.isdisjoint((*(declared.operands or ()), *declared.fitting)):
            return frozenset()  # which may be none of the dtype's
        known = CATEGORIES[declared.supports]
        return frozenset(d for d in COMPUTED if d.category in known and d.category != FLOAT)

    def lines(self, call: Call) -> list[str]:
        if call.inplace:
            return []
        checks = [f"check({call.given})"] if call.op.declared.check is not None else []
        arrays = " or ".join(f"r is {t}._array" for t in call.tensors)
        own = [
            *block(f"if r.dtype != {_result_dtype(call)}:", f"r = r.astype({_result_dtype(call)})"),
            *block(f"elif r.base is not None or {arrays}:", 'r = r.copy(order="K")'),
        ]
        return _kernel_lines(call, checks, own, integers=True)

    def names(self, op: Operator) -> dict:
        result = op.declared.result
        return super().names(op) | {
            "RESULT_NUMPY": result.numpy if isinstance(result, dtype) else None,
        }  # fmt: skip


def _result_dtype(call: Call) -> str:
    fixed = isinstance(call.op.declared.result, dtype)
    return "RESULT_NUMPY" if fixed else f"{call.tensors[0]}._array.dtype"


def _values_are_plain(call: Call) -> list[str]:
    attributes = [(v, a) for v, a in call.arguments if not a.is_tensor and v not in call.fixed]
    return [f"{v}.__class__ in {_PLAIN_VALUES[a.base]}{'_OR_NONE' * a.optional}" for v, a in attributes] + call.no_out


def _masks(call: Call) -> list[str]:
    """Tensors that take no part in promotion: they must be boolean."""
    operands = call.op.declared.operands
    return [v for v, a in call.arguments if operands and a.is_tensor and a.name not in operands]


def _alike(call: Call, integers: bool = False) -> tuple[str, list[str], list[str]]:
    """The tensor whose dtype counts, and what must hold of the others: one dtype (masks: boolean); and that all are of one shape.

    With `integers`, others may also be of integers, which floats promote to their own dtype."""
    masks = _masks(call)
    first = next(t for t in call.tensors if t not in masks)
    kinds, shapes = [], []
    for t in call.tensors:
        if t != first:
            kind = f"{t}.dtype is BOOL" if t in masks else f"{t}.dtype is d"
            kinds.append(f"({kind} or {t}.dtype in WHOLE)" if integers and t not in masks else kind)
            shapes.append(f"{t}._array.shape == {first}._array.shape")
    return first, kinds, shapes


def _kernel_call(call: Call, integers: bool = False) -> str:
    first = call.tensors[0]
    cast = f"({{0}}._array if {{0}}.dtype is d else {{0}}._array.astype({first}._array.dtype))"
    form = cast if integers and not _masks(call) else "{0}._array"
    arrays = [(form if v != first else "{0}._array").format(v) if v in call.tensors else v for v in call.values]
    return f"kernel(np, {', '.join(arrays)})"


def _kernel_lines(call: Call, checks: list[str], own: list[str] | tuple = (), integers: bool = False) -> list[str]:
    """The kernel on small arrays, which may broadcast, and on large ones that threads share; then halves, by loops in C alone."""
    integers = integers and not _masks(call)
    first, kinds, shapes = _alike(call, integers)
    arrays = ", ".join(f"{t}._array" for t in call.tensors)
    size = all_of(*[f"{t}._array.size < LARGE" for t in call.tensors])
    if looped_dtypes(call.op):
        size = f"({size} or {all_of('d in LOOPED', *shapes, f'shares({arrays})')})"
    done = [*block("if r.__class__ is not ndarray:", "r = np.asarray(r)"), *own, *_finish(call, call.tensors)]
    run = f"r = {_kernel_call(call, integers)}"
    # arrays that do not broadcast: the error is the general path's
    tried = [*_straight_lines(call), *(attempt(run, "ValueError", *done) if shapes else [run, *done])]
    lines = block(f"if {all_of('mode < 2', 'd in DIRECT_KERNEL', *kinds, size)}:", *checks, *tried)
    lines += _half_kernel_lines(call, checks)
    if case_of(call.op).others(call.op):  # type: ignore[union-attr]
        small = all_of(*[f"{t}._array.size < LARGE" for t in call.tensors])
        lines += block(f"elif {all_of('mode < 2', 'd in OTHER_KERNEL', *_alike(call)[1], small)}:", *checks, *tried)
    plain = is_plain(call.tensors, *_values_are_plain(call))
    return block(f"if {plain}:", "mode = ambient.mode", f"d = {first}.dtype", *lines)


def _straight_lines(call: Call, condition: str = "") -> list[str]:
    """A function in C is asked first, where the kernel is a loop and what it gives is of the result's dtype: it knows of few elements."""
    if straight_of(call.op) is None:
        return []
    values = [f"{v}._array" if v in call.tensors else v for v in call.values]
    record = (
        block(f"if {live(call.tensors)}:", f"return record.record(t, {call.given})") if call.op.differentiable else []
    )
    asked = [f"t = straight({', '.join(values)})", *block("if t is not None:", *record, "return t")]
    return block(f"if {condition}:", *asked) if condition else asked


def _half_kernel_lines(call: Call, checks: list[str]) -> list[str]:
    """The same for bfloat16 and float16, where loops in C take them."""
    if half_kernel_of(call.op) is None or _masks(call):
        return []
    values, narrow = [], call.op.declared.fitting
    operands = call.op.declared.operands or ()
    for v, a in call.arguments:
        if v in call.tensors:
            values.append(f"{v}._array")
        elif a.name in narrow or a.name in operands and a.name not in call.op.declared.wide:
            values.append(f"({v} if {v} is None else {'fitted' if a.name in narrow else 'rounded'}({v}, d))")
        else:
            values.append(v)
    _, kinds, _ = _alike(call)
    size = all_of(*[f"{t}._array.size < LARGE" for t in call.tensors])
    tried = attempt(
        f"r = half_kernel(np, {', '.join(values)})",
        "ValueError",
        *block(
            "if r is not None:",
            *block("if r.__class__ is not ndarray:", "r = np.asarray(r)"),
            *_finish(call, call.tensors),
        ),
    )
    return block(f"elif {all_of('mode < 2', 'd in HALVES', *kinds, size)}:", *checks, *tried)


@functools.lru_cache(256)
def _rounded(value, d: dtype) -> float:
    return float(np.asarray(value, d.numpy))


def rounded(value, d: dtype) -> float:
    """A number as half precision has it."""
    return _rounded(value, d) if value else float(value)  # zeros are equal, whatever their sign


def fitted(value, d: dtype) -> float:
    """The same of one that must fit."""
    if not -448 <= value <= 448:  # which both hold
        check_fits(value, d)
    return rounded(value, d)


# ---- in place
def _writable(tensors: list[str], direct: str, size: str = "<") -> str:
    """Of the first tensor: memory that is written once by each element, and a history that need not be kept: none, or recording is off."""
    x = tensors[0]
    written = f"({x}._autograd is None and {x}._view_info is None or is_unheard({x}))"
    read = [f"({t}._autograd is None or not may_have_history({t}))" for t in tensors[1:]]
    recording = f"(mode == 0 or mode == 1 and {all_of(written, *read)})"
    apart = "".join(f" and {y}._memory is not {x}._memory" for y in tensors[1:])
    memory = f"({x}._memory is None or written_once({x}._array){apart})"
    return f"{recording} and d in {direct} and {x}._array.size {size} LARGE and {memory}"


def _inplace_ufunc_lines(call: Call) -> list[str]:
    x, *others = call.tensors
    head = [f"if {is_plain([x], *_defaults(call))}:", "mode = ambient.mode", f"d = {x}.dtype"]
    done = [f"{x}._counter[0] += 1", f"return {x}"]
    if not others:
        write = _unary(call, x, f"{x}._array")
        dense = [f"{x}._array.flags.c_contiguous"] if call.op.declared.dense_writes else []
        return block(*head, *block(f"if {all_of(_writable([x], 'DIRECT'), *dense)}:", write, *done))
    y = others[0]
    pair = attempt(f"{_ufunc(call)}({x}._array, {y}._array, out={x}._array)", "ValueError", *done)
    lines = block(f"if {is_plain([y], f'{y}.dtype is d', _writable([x, y], 'DIRECT'))}:", *pair)
    if loops_of(call.op):
        alike = [f"{y}.dtype is d", f"{y}._array.shape == {x}._array.shape", _writable([x, y], "LOOPS", ">=")]
        shared = is_plain([y], *alike, f"shares({x}._array, {y}._array)")
        lines += block(f"if {shared}:", f"LOOPS[d]({x}._array, {y}._array, out={x}._array)", *done)
    if isinstance(
        call.op.declared.promote, str
    ):  # of two dtypes that meet: computed in that one, rounded to the first's
        met = all_of(
            "d.category == 2", f"(meet := MEET.get((d, {y}.dtype))) in DIRECT", f"{x}._array.ndim and {y}._array.ndim"
        )
        wide = f"r = {_ufunc(call)}({x}._array.astype(meet.numpy, copy=False), {y}._array.astype(meet.numpy, copy=False), out=...)"
        write = block(f"if r.shape == {x}._array.shape:", f"{x}._array[...] = r", *done)
        met_lines = [
            "kept = d",
            "d = meet",
            *attempt(wide, "ValueError", *write),
            "d = kept",
        ]
        lines += block(f"if {is_plain([y], met, _writable([x, y], 'DIRECT'))}:", *met_lines)
    if _takes_number(call.op, y):
        lines += block(
            f"if {all_of(_number_fits(call, y), _writable([x], 'DIRECT'))}:",
            f"{_number_ufunc(call)}({x}._array, asarray({y}, dtype={x}._array.dtype), out={x}._array)",
            *done,
        )
    if y in call.op.declared.wide and half_number_loop_of(call.op) is not None:
        lines += block(
            f"if {all_of(_is_half_number(y), _writable([x], 'DIRECT'))}:",
            f"half_number_loop({x}._array, asarray({y}, dtype=F32), out={x}._array)",
            *done,
        )
    return block(*head, *lines)


def _out_lines(call: Call) -> list[str]:
    """`out=` of the dtype and shape of the result, in memory apart: the ufunc writes there."""
    if not call.has_out or call.op.declared.result is not None or call.op.declared.check_out is not None:
        return []
    x, *others = call.tensors
    given = ["out", x, *others]
    alike = ["out.dtype is d", f"out._array.shape == {x}._array.shape", *[f"{y}.dtype is d" for y in others]]
    done = ["out._counter[0] += 1", "return out"]
    arrays = ", ".join(f"{t}._array" for t in (x, *others))
    run = f"{_ufunc(call)}({arrays}, out=out._array)" if others else _unary(call, x, "out._array")
    small = attempt(run, "ValueError", *done) if others else [run, *done]
    lines = block(f"if {all_of(_writable(given, 'DIRECT'), *alike)}:", *small)
    if loops_of(call.op):
        shapes = [f"{y}._array.shape == {x}._array.shape" for y in others]
        all_in_rows = f"shares(out._array, {arrays})"
        large = all_of(_writable(given, "LOOPS", ">="), *alike, *shapes, all_in_rows)
        lines += block(f"if {large}:", f"LOOPS[d]({arrays}, out=out._array)", *done)
    defaults = [c for c in _defaults(call) if c not in call.no_out]
    plain = all_of(call.one_out, is_plain(given, *defaults))
    return block(f"if {plain}:", "mode = ambient.mode", f"d = {x}.dtype", *lines)


def _inplace_kernel_lines(call: Call, checks: list[str]) -> list[str]:
    first, kinds, _ = _alike(call)
    if first != call.tensors[0] or call.op.inplace is not None and call.op.inplace.native is not None:
        return []  # the last plain case asks a function in C
    small = block(
        f"if {all_of(_writable(call.tensors, 'DIRECT_KERNEL'), *kinds)}:",
        *checks,
        *attempt(
            f"r = {_kernel_call(call)[:-1]}{', out=' + first + '._array' if has_loop(call.op) else ''})",
            "ValueError",
            *block(
                f"if r is {first}._array or r.shape == {first}._array.shape:",
                *block(f"if r is not {first}._array:", f"{first}._array[...] = r"),
                f"{first}._counter[0] += 1",
                f"return {first}",
            ),
        ),
    )
    plain = is_plain(call.tensors, *_values_are_plain(call))
    return block(f"if {plain}:", "mode = ambient.mode", f"d = {first}.dtype", *small)


# ---- another overload
def overload_lines(call: Call) -> list[str]:
    """Another overload takes the call where an argument is a Python number; plain calls go to its own function."""
    names = {a.name: v for v, a in call.arguments}
    absent = {v: f" or {v} is None" for v, a in call.arguments if a.optional}
    overloads = call.op.declared.overloads
    lines = []
    for name in overloads:
        v = names[name]
        numbers = set(map(names.get, overloads))  # these may be numbers as well
        others = [
            f"({o}.__class__ in PLAIN or {o}.__class__ in NUMBERS{absent.get(o, '')})"
            if o in numbers
            else f"{o}.__class__ in PLAIN"
            for o in call.tensors
            if o != v
        ]
        plain = f"return function_{name}({call.given}{', **rest' * call.has_out})"
        lines += block(
            f"if {v}.__class__ in NUMBERS:",
            *block(f"if {all_of('ambient.mode < 2', *others)}:", plain),
            f"return general(function, op_{name}, ({call.given},){', out' * call.has_out})",
        )
    return lines
