"""Kernels of running sums and their kin: one step, whose loops along the scan go in order.

Rows are independent, so that threads share them. Where memory runs across rows, `LANES` of them go side by side. Running sums
of single precision are in double precision.
"""

from __future__ import annotations

from .c import GRAIN, LANES, Body, Printed, Printer, combine, initial, wide
from .c_scalars import C_TYPES

ROWS = 4  # that go side by side where memory runs along them: each waits for its own last sum only


def print_scan(printer: Printer) -> Printed:
    nest = printer.nest
    lines, side = _one_row(printer) if nest.lane is None else _rows_beside(printer)
    flag, bad = (["i32 bad = 0;"], [f"if (bad) *{printer.pointer(printer.bad)} = 1;"]) if printer.checks else ([], [])
    head = [f"{C_TYPES[b.dtype]} *p{k} = a[{k}];" for k, b in enumerate(printer.buffers)]
    text = [*head, *flag, "for (i64 t = begin; t < end; t++) {", *lines, "}", *bad]
    rows = 1 if nest.lane is None else nest.dims[nest.lane]
    range_ = nest.size(nest.outer) // rows * -(-rows // side)
    return printer.printed(text, range_, max(GRAIN // max(nest.cost() * side, 1), 1) if range_ > 1 else 0)


def _step(printer: Printer, total: str) -> list[str]:
    """One iteration: the new total, stored."""
    (s,) = printer.nest.steps
    lines: list[str] = []
    value = Body(printer, lines).value(s.expr)
    place = printer.place(s.buffer, s.offset, s.strides)
    return [*lines, f"{total} = {combine(s, total, value)};", f"{place} = {total};"]


def _one_row(printer: Printer) -> tuple[list[str], int]:
    nest = printer.nest
    (s,) = nest.steps
    digits = printer.digits(nest.outer) if nest.outer else []
    return [*digits, f"{wide(s)} s = {initial(s)};", *printer.nested(nest.inner, _step(printer, "s"))], 1


def _rows_beside(printer: Printer) -> tuple[list[str], int]:
    """Rows of the lane side by side: in vectors where memory runs across them, else as many as hide each other's delays."""
    nest, lane = printer.nest, printer.nest.lane_loop
    (s,) = nest.steps
    n, across = nest.dims[lane], s.strides[lane] == 1
    side = LANES if across else ROWS
    blocks = -(-n // side)
    others = [d for d in nest.outer if d != lane]
    body = [f"const i64 i{lane} = from + l;", *_step(printer, "s[l]"), "}"]
    some = ["for (i64 l = 0; l < width; l++) {", *body]
    if across:
        loops = printer.nested(nest.inner, [f"#pragma omp simd{' reduction(|:bad)' if printer.checks else ''}", *some])
    else:
        full = [f"#pragma GCC unroll {side}", f"for (i64 l = 0; l < {side}; l++) {{", *body]
        loops = [f"if (width == {side}) {{", *printer.nested(nest.inner, full), "}"]
        loops += [f"if (width != {side}) {{", *printer.nested(nest.inner, some), "}"] if n % side else []
    return [
        *(printer.digits(others, f"t / {blocks}L") if others else []),
        f"const i64 from = t % {blocks}L * {side}L, width = {n}L - from < {side}L ? {n}L - from : {side}L;",
        f"{wide(s)} s[{side}];",
        f"for (i64 l = 0; l < {side}; l++) s[l] = {initial(s)};",
        *loops,
    ], side
