"""Kernels as C functions: `void kernel(i64 begin, i64 end, void *const *a)`, a range of the outer loops each.

In: a `Nest` (see `schedule`). Out: text that names its buffers `a[0]`, `a[1]`, ...: kernels of the same text are one function,
called with different pointers. Innermost loops are `omp simd`. Sums are over blocks of at most `BLOCK` elements, whose sums
are added in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core import dtype as dtypes
from ...ops.lowering.expressions import Expr
from ...ops.lowering.loops import Buffer, Compute
from ..schedule import Nest, Phase
from .c_scalars import C_TYPES, number, operation

BLOCK, LANES, LANE_BLOCK = 4096, 64, 128
GRAIN = 1 << 16  # additions that are worth another thread
INITIAL = {"sum": "0", "prod": "1", "any": "0", "all": "1"}
CLAUSES = {"sum": "+", "prod": "*", "any": "|", "all": "&"}


@dataclass
class Printed:
    """A kernel's function: its text with `NAME` for its name, the buffers it is called with, from which element on, the range and
    the grain."""

    text: str
    buffers: list[Buffer]
    offsets: list[int]
    range: int
    grain: int


class Printer:
    """Prints one nest."""

    shifts = True  # whether a function can be called with a pointer into a buffer

    def __init__(self, nest: Nest, bad: Buffer):
        self.nest, self.bad = nest, bad
        self.buffers: dict[Buffer, tuple[int, int]] = {}  # the number of its pointer, and the element that it points to
        self.written = {s.buffer: s for s in nest.steps}
        self.count = 0
        self.names: dict[Buffer, str] = {}  # row values and results of reductions
        self.checks = False
        self.inner = set(nest.inner)
        # nothing is taken out of the inner loop
        self.whole = nest.lane is not None or any(s.alone for s in nest.steps)
        self.deep: dict[Expr, bool] = {}

    # ---- names
    def pointer(self, b: Buffer) -> str:
        """The name of the pointer to a buffer."""
        return f"p{self.buffers.setdefault(b, (len(self.buffers), 0))[0]}"

    def place(self, b: Buffer, offset: int, strides: Sequence[int], indirect: Sequence[tuple[str, int]] = ()) -> str:
        """An element of a buffer. Pointers are to where the first one that was printed begins: the same loops over another part of a
        buffer are the same text."""
        number, base = self.buffers.setdefault(b, (len(self.buffers), offset if self.shifts else 0))
        return f"p{number}[{self.address(offset - base, strides, indirect)}]"

    def fresh(self, letter: str = "v") -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def address(self, offset: int, strides, indirect: Sequence[tuple[str, int]] = ()) -> str:
        parts = [f"i{d}" if s == 1 else f"i{d}*{s}L" for d, s in enumerate(strides) if s and self.nest.dims[d] != 1]
        parts += [i if s == 1 else f"{i}*{s}L" for i, s in indirect]
        if offset or not parts:
            parts.append(f"{offset}L")
        return " + ".join(parts)

    def at_row(self, s: Compute) -> bool:
        return id(s) in self.nest.rows or s.reduce is not None

    def row_value(self, buffer: Buffer) -> str:
        """What a row keeps: a number, or one for each of the rows side by side."""
        return self.names[buffer] if self.nest.lane is None else f"{self.names[buffer]}[l]"

    # ---- expressions
    def is_deep(self, e: Expr) -> bool:
        """Whether an expression differs from element to element of a row."""
        if self.whole:
            return True
        found = self.deep.get(e)
        if found is None:
            if e.op == "index":
                found = e.args[0] in self.inner
            elif e.op == "load":
                source = self.written.get(e.args[0])
                found = any(e.args[2][d] for d in self.inner) if source is None or not self.at_row(source) else False
                found = found or any(self.is_deep(i) for i, _, _ in e.args[3])
                if source is not None and not self.at_row(source):
                    found = True
            else:
                found = any(self.is_deep(a) for a in e.children)
            self.deep[e] = found
        return found

    def print(self) -> Printed:
        if any(s.scan for s in self.nest.steps):
            from .c_scans import print_scan

            return print_scan(self)
        if self.nest.lane is not None:
            from .c_lanes import print_lanes

            return print_lanes(self)
        if any(s.scatter for s in self.nest.steps):
            from .c_lanes import print_scatter

            return print_scatter(self)
        return self._rows()

    # ---- along rows
    def _rows(self) -> Printed:
        nest = self.nest
        flat = not nest.outer  # one loop: the range is its own
        single = flat and len(nest.phases) == 1 and not any(s.reduce for s in nest.steps) and len(nest.inner) == 1
        lines: list[str] = []
        body = Body(self, lines)
        for n, phase in enumerate(nest.phases):
            self.phase(n, phase, body, single)
        if self.checks:
            lines.append(f"if (bad) *{self.pointer(self.bad)} = 1;")
        head = [f"{C_TYPES[b.dtype]} *p{k} = a[{k}];" for k, b in enumerate(self.buffers)]
        scratch = [
            f"{C_TYPES[b.dtype]} {self.names[b]}[{nest.size(nest.inner)}];"
            for b in sorted(nest.scratch, key=lambda b: b.name)
        ]
        flag = ["i32 bad = 0;"] if self.checks else []
        if flat:
            text = [*head, *scratch, *flag, *lines]
        else:
            text = [
                *head,
                *scratch,
                "for (i64 t = begin; t < end; t++) {",
                *self.digits(nest.outer),
                *flag,
                *lines,
                "}",
            ]
        range_ = nest.dims[nest.inner[0]] if single else nest.size(nest.outer)
        each = max(nest.cost(), 1) if not single else max(nest.cost() // max(range_, 1), 1)
        return self.printed(text, range_, max(GRAIN // each, 1) if range_ > 1 else 0)

    def printed(self, lines: list[str], range_: int, grain: int) -> Printed:
        text = "static void NAME(i64 begin, i64 end, void *const *a) {\n" + "\n".join(indented(lines)) + "\n}\n"
        return Printed(text, list(self.buffers), [base for _, base in self.buffers.values()], range_, grain)

    def digits(self, loops: list[int], rest: str = "t") -> list[str]:
        """Indices of the outer loops from the number of an iteration."""
        if len(loops) == 1:
            return [f"const i64 i{loops[0]} = {rest};"]
        lines = [f"i64 r = {rest};"]
        for d in reversed(loops[1:]):
            lines += [f"const i64 i{d} = r % {self.nest.dims[d]}L; r /= {self.nest.dims[d]}L;"]
        return [*lines, f"const i64 i{loops[0]} = r;"]

    def phase(self, n: int, phase: Phase, body: Body, single: bool) -> None:
        for s in phase.rows:
            name = body.value(s.expr)
            self.names[s.buffer] = name
            if s.buffer in self.nest.stored:
                body.lines.append(f"{self.place(s.buffer, s.offset, s.strides)} = {name};")
        if phase.elements:
            self.loop(n, phase.elements, body, single)

    def loop(self, n: int, steps: list[Compute], body: Body, single: bool) -> None:
        """One pass over the elements of a row."""
        nest = self.nest
        inside: list[str] = []
        element = Body(self, inside, body, n)
        reduced: list[tuple[Compute, str]] = []
        for s in steps:
            value = element.value(s.expr)
            element.own[s.buffer] = value
            if s.reduce:
                part = self.fresh("s")
                reduced.append((s, part))
                inside.append(f"{part} = {combine(s, part, value)};")
                continue
            if s.buffer in nest.stored:
                inside.append(f"{self.place(s.buffer, s.offset, s.strides)} = {value};")
            elif s.buffer in nest.scratch:
                self.names.setdefault(s.buffer, self.fresh("row"))
                inside.append(f"{self.names[s.buffer]}[i{nest.inner[-1]}] = {value};")
        clauses = "".join(f" reduction({clause(s)}:{part})" for s, part in reduced)
        if element.checked:
            clauses += " reduction(|:bad)"
            self.checks = True
        body.lines += self.around(inside, clauses, reduced, single)
        for s, part in reduced:
            self.names[s.buffer] = part
            if s.buffer in nest.stored:
                body.lines.append(f"{self.place(s.buffer, s.offset, s.strides)} = {part};")

    def around(self, inside: list[str], clauses: str, reduced: list, single: bool) -> list[str]:
        """The loops around the body of a pass."""
        nest = self.nest
        if not nest.inner:
            return [*[f"{ctype(s)} {part} = {initial(s)};" for s, part in reduced], *inside]
        last, n = nest.inner[-1], nest.dims[nest.inner[-1]]
        first, until = ("begin", "end") if single else ("0", f"{n}L")
        simple = len(nest.inner) == 1 and n <= BLOCK
        starts = [f"{ctype(s)} {part} = {initial(s)};" for s, part in reduced]
        if simple or not reduced:
            loop = [
                f"#pragma omp simd{clauses}",
                f"for (i64 i{last} = {first}; i{last} < {until}; i{last}++) {{",
                *inside,
                "}",
            ]
            return [*starts, *self.nested(nest.inner[:-1], loop)]
        totals = [f"{wide(s)} {part}t = {initial(s)};" for s, part in reduced]
        loop = [
            f"for (i64 block = 0; block < {n}L; block += {BLOCK}L) {{",
            f"const i64 stop = block + {BLOCK}L < {n}L ? block + {BLOCK}L : {n}L;",
            *starts,
            f"#pragma omp simd{clauses}",
            f"for (i64 i{last} = block; i{last} < stop; i{last}++) {{", *inside, "}",
            *[f"{part}t = {combine(s, part + 't', part)};" for s, part in reduced],
            "}",
        ]  # fmt: skip
        ends = [f"const {ctype(s)} {part} = {part}t;" for s, part in reduced]
        return [*totals, *self.nested(nest.inner[:-1], loop), *ends]

    def nested(self, loops: list[int], lines: list[str]) -> list[str]:
        for d in reversed(loops):
            lines = [f"for (i64 i{d} = 0; i{d} < {self.nest.dims[d]}L; i{d}++) {{", *lines, "}"]
        return lines


class Body:
    """Lines of a block, and the names of the expressions that are computed in it. What does not vary goes to `outside`."""

    def __init__(self, printer: Printer, lines: list[str], outside: Body | None = None, phase: int = 0):
        self.printer, self.lines, self.outside, self.phase = printer, lines, outside, phase
        self.memo: dict[Expr, str] = {}
        self.own: dict[Buffer, str] = {}  # elements that this pass has computed
        self.checked = False

    def value(self, e: Expr) -> str:
        """The name of an expression's value, computed here or outside."""
        if e.op == "const":
            return number(e.args[0], e.dtype)
        if self.outside is not None and not self.printer.is_deep(e):
            return self.outside.value(e)
        name = self.memo.get(e)
        if name is None:
            name = self.memo[e] = self._compute(e)
        return name

    def _compute(self, e: Expr) -> str:
        if e.op == "load":
            return self._load(e)
        if e.op == "index":
            return f"i{e.args[0]}"
        text = operation(e, [self.value(a) for a in e.args])
        return self._assign(e.dtype, text)

    def _assign(self, d, text: str) -> str:
        name = self.printer.fresh()
        kind = "i32" if d is dtypes.bool else C_TYPES[d]
        self.lines.append(f"const {kind} {name} = {text};")
        return name

    def _load(self, e: Expr) -> str:
        printer = self.printer
        buffer, offset, strides, indirect = e.args
        source = printer.written.get(buffer)
        if source is not None:
            if printer.at_row(source):
                return printer.row_value(buffer)
            if buffer in self.own:
                return self.own[buffer]
            if buffer in printer.nest.scratch:
                return self._assign(e.dtype, f"{printer.names[buffer]}[i{printer.nest.inner[-1]}]")
            if buffer not in printer.nest.stored:
                value = self.own[buffer] = self.value(source.expr)  # cheap: computed again in this pass
                return value
        places = []
        for index, stride, size in indirect:
            places.append((self.checked_index(self.value(index), size), stride))
        return self._assign(e.dtype, printer.place(buffer, offset, strides, places))

    def checked_index(self, name: str, size: int | None) -> str:
        """An index that is within bounds; one that was not is noted, and the caller finds out."""
        if size is None:
            return name
        self.checked = True
        self.printer.checks = True
        result = self.printer.fresh()
        self.lines.append(f"const i64 {result} = (u64){name} < {size}UL ? {name} : 0;")
        self.lines.append(f"bad |= (u64){name} >= {size}UL;")
        return result


def ctype(s: Compute) -> str:
    return C_TYPES[s.expr.dtype] if s.expr.dtype is not dtypes.bool else "i32"


def wide(s: Compute) -> str:
    if s.reduce not in ("sum", "prod"):
        return ctype(s)
    return {dtypes.float32: "f64", dtypes.complex64: "c128"}.get(s.expr.dtype, ctype(s))


def initial(s: Compute) -> str:
    if s.reduce in INITIAL:
        return INITIAL[s.reduce]
    d = s.expr.dtype
    if d.is_floating_point:
        return "INF" if s.reduce == "min" else "-INF"  # of logaddexp as of max
    bits = d.itemsize * 8
    if d is dtypes.bool:
        return "0" if s.reduce == "max" else "1"
    low = -(1 << bits - 1) if d.is_signed else 0
    high = (1 << bits - 1) - 1 if d.is_signed else (1 << bits) - 1
    return number(low if s.reduce == "max" else high, d)


def clause(s: Compute) -> str:
    if s.reduce in CLAUSES:
        return CLAUSES[s.reduce]
    return f"n{s.reduce}" if s.expr.dtype.is_floating_point else s.reduce


def combine(s: Compute, total: str, value: str) -> str:
    """The new total."""
    return joined(str(s.reduce), s.expr.dtype, total, value)


def joined(how: str, d, total: str, value: str) -> str:
    """Two values of a dtype as one: their sum, product, ..."""
    if d is dtypes.bool:
        how = {"sum": "any", "prod": "all"}.get(how, how)
    if how in CLAUSES:
        return f"{total} {CLAUSES[how]} {value}"
    if d.is_floating_point:
        return f"{'f' if d is dtypes.float32 else 'd'}_{how}({total}, {value})"
    return f"{total} {'>' if how == 'max' else '<'} {value} ? {total} : {value}"


def indented(lines: list[str]) -> list[str]:
    depth, out = 1, []
    for line in lines:
        depth -= line.startswith("}")
        out.append("    " * depth + line if not line.startswith("#") else line)
        depth += line.endswith("{")
    return out
