"""Kernels whose iterations depend on each other: running sums, and additions into computed places.

A scan where memory runs across rows is a thread for each row; else it is a warp, which takes 32 elements at a time and carries
their total on. Additions are atomic, so the order in which floats are added is not fixed.
"""

from __future__ import annotations

from ..printers.c import combine, initial, wide
from ..printers.c_scalars import C_TYPES
from .groups import SHARED_BLOCK, WARP, functor
from .printer import CudaBody, CudaPrinter, Launch

NATIVE = ("f32", "f64", "i32", "u32", "i64")  # types that the device adds to by itself


def print_scatter(printer: CudaPrinter) -> Launch:
    """`out[place] += value`, or met in another way; a thread for each iteration."""
    nest = printer.nest
    (s,) = nest.steps
    printer.whole = True
    lines: list[str] = []
    body = CudaBody(printer, lines)
    places = [(body.checked_index(body.value(i), n), stride) for i, stride, n in s.scatter]
    value = body.value(s.expr)
    target = "&" + printer.place(s.buffer, s.offset, s.strides, places)
    name, kind = functor(s.meets, s.expr.dtype), C_TYPES[s.buffer.dtype]
    call = "add_to" if name == "Sum" and kind in NATIVE else f"meet<{name}<{kind}>>"
    lines.append(f"{call}({target}, ({kind}){value});")
    loops = [*nest.outer, *nest.inner]
    return printer.strided([*printer.digits(loops), *lines], nest.size(loops))


def print_scan(printer: CudaPrinter) -> Launch:
    nest = printer.nest
    (s,) = nest.steps
    printer.whole = True
    across = nest.lane is not None and s.strides[nest.lane] == 1
    return _thread_rows(printer) if across else _warp_rows(printer)


def _thread_rows(printer: CudaPrinter) -> Launch:
    nest = printer.nest
    (s,) = nest.steps
    lines: list[str] = []
    value = CudaBody(printer, lines).value(s.expr)
    place = printer.place(s.buffer, s.offset, s.strides)
    lines += [f"s = {combine(s, 's', value)};", f"{place} = s;"]
    for d in reversed(nest.inner):
        kind = printer.index_type
        lines = [f"for ({kind} i{d} = 0; i{d} < {nest.dims[d]}{printer.suffix}; i{d}++) {{", *lines, "}"]
    start = [*printer.digits(nest.outer), f"{wide(s)} s = {initial(s)};"]
    return printer.strided([*start, *lines], nest.size(nest.outer))


def _warp_rows(printer: CudaPrinter) -> Launch:
    nest = printer.nest
    (s,) = nest.steps
    n, rows, side = nest.size(nest.inner), nest.size(nest.outer), SHARED_BLOCK // WARP
    kind, suffix, total = printer.index_type, printer.suffix, wide(s)
    lines: list[str] = []
    value = CudaBody(printer, lines).value(s.expr)
    place = printer.place(s.buffer, s.offset, s.strides)
    how = f"{functor(str(s.reduce), s.expr.dtype)}<{total}>"
    whole = rows % side == 0
    text = [
        f"const {kind} place = blockIdx.x * ({kind}){side} + threadIdx.x / {WARP};",
        f"const {kind} row = {'place' if whole else f'place < {rows}{suffix} ? place : {rows - 1}{suffix}'};",
        *printer.digits(nest.outer, "row"),
        f"{total} carry = {initial(s)};",
        f"for ({kind} from = 0; from < {n}{suffix}; from += {WARP}) {{",
        f"const {kind} at = from + threadIdx.x % {WARP};",
        f"const {kind} j = at < {n}{suffix} ? at : {n - 1}{suffix};",
        *printer.digits(nest.inner, "j"),
        *lines,
        f"{total} x = at < {n}{suffix} ? ({total}){value} : ({total}){initial(s)};",
        f"x = {how}::of(carry, running<{how}>(x));",
        f"if (at < {n}{suffix}{'' if whole else f' && place < {rows}{suffix}'}) {place} = x;",
        "carry = from_last(x);",
        "}",
    ]
    return printer.function(text, -(-rows // side), SHARED_BLOCK)
