"""Kernels that are vectorised across rows, and kernels that add into computed places.

`print_lanes`: a block of `LANES` neighbouring rows goes through all phases side by side; what a row keeps (its sums, its values)
is an array of that many. `print_scatter`: loops in order, so that equal places add up one after the other.
"""

from __future__ import annotations

from ...ops.lowering.expressions import walk
from ...ops.lowering.loops import Compute
from ..schedule import Phase
from .c import GRAIN, LANE_BLOCK, LANES, Body, Printed, Printer, combine, ctype, initial, joined, wide
from .c_scalars import C_TYPES


class Lanes:
    """Prints a nest whose `lane` loop is innermost everywhere."""

    def __init__(self, printer: Printer):
        self.printer, self.nest = printer, printer.nest
        self.lines: list[str] = []

    def print(self) -> Printed:
        printer, nest = self.printer, self.nest
        lane = nest.lane_loop
        n = nest.dims[lane]
        blocks = -(-n // LANES)
        for number, phase in enumerate(nest.phases):
            self.phase(number, phase)
        if printer.checks:
            self.lines.append(f"if (bad) *{printer.pointer(printer.bad)} = 1;")
        others = [d for d in nest.outer if d != lane]
        head = [f"{C_TYPES[b.dtype]} *p{k} = a[{k}];" for k, b in enumerate(printer.buffers)]
        start = [
            f"const i64 from = t % {blocks}L * {LANES}L, width = {n}L - from < {LANES}L ? {n}L - from : {LANES}L;",
            *(printer.digits(others, f"t / {blocks}L") if others else []),
            *(["i32 bad = 0;"] if printer.checks else []),
        ]
        text = [*head, "for (i64 t = begin; t < end; t++) {", *start, *self.lines, "}"]
        range_ = blocks * nest.size(others)
        return printer.printed(text, range_, max(GRAIN // max(nest.cost() * LANES, 1), 1) if range_ > 1 else 0)

    def phase(self, number: int, phase: Phase) -> None:
        printer = self.printer
        for s in phase.rows:
            inside: list[str] = []
            value = Body(printer, inside, None, number).value(s.expr)
            name = printer.fresh("row")
            self.lines.append(f"{ctype(s)} {name}[{LANES}];")
            self.lines += self.lane_loop([*inside, f"{name}[l] = {value};", *self.store(s, value)])
            printer.names[s.buffer] = name
        if phase.elements:
            self.loop(number, phase.elements)

    def store(self, s: Compute, value: str) -> list[str]:
        printer = self.printer
        if s.buffer not in self.nest.stored:
            return []
        return [f"{printer.place(s.buffer, s.offset, s.strides)} = {value};"]

    def lane_loop(self, inside: list[str], clauses: str = "") -> list[str]:
        return [
            f"#pragma omp simd{clauses}", "for (i64 l = 0; l < width; l++) {", f"const i64 i{self.nest.lane} = from + l;",
            *inside, "}",
        ]  # fmt: skip

    def loop(self, number: int, steps: list[Compute]) -> None:
        printer, nest = self.printer, self.nest
        inside: list[str] = []
        body = Body(printer, inside, None, number)
        reduced: list[tuple[Compute, str]] = []
        for s in steps:
            value = body.value(s.expr)
            body.own[s.buffer] = value
            if s.reduce:
                part = printer.fresh("s")
                reduced.append((s, part))
                inside.append(f"{part}[l] = {combine(s, part + '[l]', value)};")
            else:
                inside += self.store(s, value)
        core = self.lane_loop(inside, " reduction(|:bad)" if body.checked else "")
        last = nest.inner[-1]
        n = nest.dims[last]
        starts = [
            *[f"{ctype(s)} {part}[{LANES}];" for s, part in reduced],
            *[f"for (i64 l = 0; l < {LANES}; l++) {part}[l] = {initial(s)};" for s, part in reduced],
        ]
        loop = [
            f"for (i64 block = 0; block < {n}L; block += {LANE_BLOCK}L) {{",
            f"const i64 stop = block + {LANE_BLOCK}L < {n}L ? block + {LANE_BLOCK}L : {n}L;",
            *starts,
            f"for (i64 i{last} = block; i{last} < stop; i{last}++) {{", *core, "}",
            *[f"for (i64 l = 0; l < {LANES}; l++) {part}t[l] = {combine(s, part + 't[l]', part + '[l]')};" for s, part in reduced],
            "}",
        ]  # fmt: skip
        totals = [
            *[f"{wide(s)} {part}t[{LANES}];" for s, part in reduced],
            *[f"for (i64 l = 0; l < {LANES}; l++) {part}t[l] = {initial(s)};" for s, part in reduced],
        ]
        self.lines += [*totals, *printer.nested(nest.inner[:-1], loop)]
        for s, part in reduced:
            self.lines.append(f"{ctype(s)} {part}[{LANES}];")
            self.lines += self.lane_loop([f"{part}[l] = {part}t[l];", *self.store(s, f"{part}[l]")])
            printer.names[s.buffer] = part


def print_lanes(printer: Printer) -> Printed:
    return Lanes(printer).print()


def print_scatter(printer: Printer) -> Printed:
    """A kernel of one step: `out[place] += value`, or met in another way, iteration after iteration."""
    nest = printer.nest
    (s,) = nest.steps
    found: list[str] = []
    index = Body(printer, found)
    places = [(index.checked_index(index.value(i), n), stride) for i, stride, n in s.scatter]
    lines: list[str] = []
    body = Body(printer, lines)
    value = body.value(s.expr)
    target = printer.place(s.buffer, s.offset, s.strides, places)
    lines.append(f"{target} = {value if s.meets == 'set' else joined(s.meets, s.expr.dtype, target, value)};")
    loops = [*nest.outer, *nest.inner]
    indexed = {d for i, _, _ in s.scatter for e in walk(i) for d in _loops_of(e)}
    fixed = bool(loops) and s.strides[loops[-1]] != 0 and loops[-1] not in indexed
    split = _private(s, loops, nest.dims, fixed)  # iterations of this loop write to places of their own
    text = lines if fixed else [*found, *lines]
    for d in reversed(loops):
        first, until = ("begin", "end") if d == split else ("0", f"{nest.dims[d]}L")
        text = [f"for (i64 i{d} = {first}; i{d} < {until}; i{d}++) {{", *text, "}"]
        if d == loops[-1] and fixed:  # one place for the whole loop
            text = [*found, f"#pragma omp simd{' reduction(|:bad)' if body.checked else ''}", *text]
    bad = f"if (bad) *{printer.pointer(printer.bad)} = 1;"
    head = [f"{C_TYPES[b.dtype]} *p{k} = a[{k}];" for k, b in enumerate(printer.buffers)]
    range_ = 1 if split is None else nest.dims[split]
    each = max(nest.cost() * nest.size(nest.outer) // range_, 1)
    grain = 0 if split is None else max(GRAIN // each, 1, 16 if split == loops[-1] and len(loops) > 1 else 1)
    return printer.printed([*head, "i32 bad = 0;", *text, bad], range_, grain)


def _private(s: Compute, loops: list[int], dims: list[int], fixed: bool) -> int | None:
    """A loop whose iterations never write to the same place: the first, or the last, of them."""
    if not loops:
        return None
    first, last = loops[0], loops[-1]
    rest = sum(s.strides[d] * (dims[d] - 1) for d in loops[1:]) + sum(t * (n - 1) for _, t, n in s.scatter)
    if s.strides[first] > rest:
        return first
    others = [s.strides[d] for d in loops[:-1]] + [t for _, t, n in s.scatter if n > 1]
    apart = s.strides[last] * dims[last]
    return last if fixed and all(t % apart == 0 for t in others) else None


def _loops_of(e) -> list[int]:
    if e.op == "index":
        return [e.args[0]]
    return [d for d, stride in enumerate(e.args[2]) if stride] if e.op == "load" else []
