"""Kernels with reductions: each row to a group of threads.

A group is a part of a warp (short rows), a block (long ones), or, where memory runs across rows, the threads of a block that have
the same place in their warps: then 32 neighbouring rows are read side by side. Each pass goes over the row once; its members' sums
are then put together so that every member has the total. Short rows are kept in registers from one pass to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...core import dtype as dtypes
from ...ops.lowering.loops import Compute
from ..printers.c import ctype, initial, wide
from ..printers.c_scalars import C_TYPES
from ..schedule import Phase
from .printer import CudaBody, CudaPrinter, Elements, Launch

WARP, LARGEST = 32, 1024
SHARED_BLOCK = 128  # threads of a block that has several rows
KEPT = 32  # elements of a row that one thread keeps in registers
IN_FLIGHT = 4  # vectors of a longer row that one thread reads before it looks at the first
UNROLLED = 16  # vectors of a row that one thread goes through without a loop
RECOMPUTED = 60  # cost up to which an element of a long row is computed again rather than written and read
PRECISE = 64  # additions in a chain that are still made in single precision
HOW = {"sum": "Sum", "prod": "Prod", "any": "Any", "all": "All", "max": "Max", "min": "Min", "logaddexp": "Logaddexp"}


def ceiling(n: int) -> int:
    """The next power of two."""
    return 1 << max(n - 1, 0).bit_length()


def functor(how: str, d) -> str:
    """The type that joins two values of a dtype."""
    return HOW[{"sum": "any", "prod": "all"}.get(how, how) if d is dtypes.bool else how]


@dataclass
class Group:
    """Who works on a row: how many, the function that joins what they have, the lines that say which row is theirs."""

    members: int
    join: str
    head: list[str]
    live: str
    grid: int
    block: int


def print_rows(printer: CudaPrinter) -> Launch:
    return Rows(printer).print()


class Rows:
    """Prints one nest; see the module's docstring."""

    def __init__(self, printer: CudaPrinter):
        self.printer, self.nest = printer, printer.nest
        printer.whole = False
        self.length = self.nest.size(self.nest.inner)
        if self.nest.lane is None:
            printer.vector = printer.choose_vector(self.nest.dims[self.nest.inner[-1]])
        self.group = self._across() if self.nest.lane is not None else self._along()
        self.vectors = -(-self.length // printer.vector // self.group.members)  # that one member goes through
        self._keep()
        self.lines: list[str] = []
        self.body = CudaBody(printer, self.lines)

    def _along(self) -> Group:
        kind, suffix = self.printer.index_type, self.printer.suffix
        rows, pieces = self.nest.size(self.nest.outer), self.length // self.printer.vector
        if self.length <= KEPT * WARP:
            n = min(ceiling(pieces), WARP)
            side = SHARED_BLOCK // n
            grid, whole = -(-rows // side), rows % side == 0
            head = [
                f"const {kind} place = blockIdx.x * ({kind}){side} + threadIdx.x / {n};",
                f"const i32 member = threadIdx.x % {n};",
                f"const {kind} row = {'place' if whole else f'place < {rows}{suffix} ? place : {rows - 1}{suffix}'};",
                *self.printer.digits(self.nest.outer, "row"),
            ]
            return Group(n, f"over_lanes<{n}, ", head, "" if whole else f"place < {rows}{suffix}", grid, SHARED_BLOCK)
        n = min(max(ceiling(-(-pieces // 4)), 2 * WARP), LARGEST)
        head = [f"const {kind} row = blockIdx.x;", "const i32 member = threadIdx.x;"]
        head += self.printer.digits(self.nest.outer, "row")
        return Group(n, f"over_block<{n // WARP}, ", head, "", rows, n)

    def _across(self) -> Group:
        kind, suffix, lane = self.printer.index_type, self.printer.suffix, self.nest.lane_loop
        n = self.nest.dims[lane]
        others = [d for d in self.nest.outer if d != lane]
        blocks, warps = -(-n // WARP), min(ceiling(-(-self.length // 8)), WARP)
        whole = n % WARP == 0
        column = f"blockIdx.x % {blocks} * ({kind}){WARP} + threadIdx.x % {WARP}"
        head = [
            f"const {kind} place = {column};",
            f"const {kind} i{lane} = {'place' if whole else f'place < {n}{suffix} ? place : {n - 1}{suffix}'};",
            f"const i32 member = threadIdx.x / {WARP};",
            f"const {kind} row = blockIdx.x / {blocks};",
            *self.printer.digits(others, "row"),
        ]
        live = "" if whole else f"place < {n}{suffix}"
        return Group(warps, f"over_warps<{warps}, ", head, live, blocks * self.nest.size(others), WARP * warps)

    def _keep(self) -> None:
        """Elements that later passes need again: in registers where they are few, else computed again or in memory."""
        nest, written = self.nest, self.printer.written
        later = {
            b
            for s in nest.steps
            for b in s.reads()
            if b in nest.home and not self.printer.at_row(written[b]) and nest.home[s.buffer] > nest.home[b]
        }
        again = later & (nest.stored | nest.scratch)  # others are cheap, and computed again
        nest.stored, nest.scratch = nest.stored - (later - self.printer.needed), set()
        if self.vectors <= UNROLLED and self.vectors * self.printer.vector <= KEPT:
            nest.scratch = again
        else:
            nest.stored |= {b for b in again if written[b].expr.cost > RECOMPUTED}

    def print(self) -> Launch:
        printer, nest = self.printer, self.nest
        for phase in nest.phases:
            self.phase(phase)
        room = self.vectors * printer.vector
        kept = [f"{C_TYPES[b.dtype]} {printer.names[b]}[{room}];" for b in sorted(nest.scratch, key=lambda b: b.name)]
        return printer.function([*self.group.head, *kept, *self.lines], self.group.grid, self.group.block)

    def phase(self, phase: Phase) -> None:
        for s in phase.rows:
            self.printer.names[s.buffer] = self.body.value(s.expr)
            self.store_row(s)
        if phase.elements:
            self.loop(phase.elements)

    def store_row(self, s: Compute) -> None:
        if s.buffer in self.nest.stored:
            printer = self.printer
            place = printer.place(s.buffer, s.offset, s.strides)
            condition = " && ".join(["member == 0", *([self.group.live] if self.group.live else [])])
            self.lines.append(f"if ({condition}) {place} = {printer.names[s.buffer]};")

    def loop(self, steps: list[Compute]) -> None:
        """One pass over the elements of a row, and the totals of what it reduces."""
        printer = self.printer
        long = self.vectors * printer.vector > PRECISE
        parts = {id(s): printer.fresh("s") for s in steps if s.reduce}
        kinds = {id(s): wide(s) if long else ctype(s) for s in steps if s.reduce}
        inside = Elements(printer, self.body, self.group.live).print(steps, parts)
        for s in steps:
            if s.reduce:
                self.lines.append(f"{kinds[id(s)]} {parts[id(s)]} = {initial(s)};")
        self.lines += self.around(inside)
        for s in steps:
            if s.reduce:
                part, kind = parts[id(s)], kinds[id(s)]
                total = printer.fresh("s")
                join = f"{self.group.join}{functor(s.reduce, s.expr.dtype)}<{kind}>>({part})"
                self.lines.append(f"const {ctype(s)} {total} = {join};")
                printer.names[s.buffer] = total
                self.store_row(s)

    def around(self, inside: list[str]) -> list[str]:
        """The loop of one member over its vectors of a row."""
        printer, n, members = self.printer, self.length, self.group.members
        kind, suffix, vector = printer.index_type, printer.suffix, printer.vector
        digits = printer.digits(self.nest.inner, "j")
        step = f"(k * {members} + member) * {vector}" if vector > 1 else f"k * {members} + member"
        if self.vectors > UNROLLED:
            first = f"member * {vector}" if vector > 1 else "member"
            return [
                f"#pragma unroll {IN_FLIGHT}",
                f"for ({kind} j = {first}; j < {n}{suffix}; j += {members * vector}{suffix}) {{",
                *digits,
                *inside,
                "}",
            ]
        exact = self.vectors * members * vector == n
        return [
            "#pragma unroll",
            f"for (i32 k = 0; k < {self.vectors}; k++) {{",
            f"const {kind} j = {step};",
            "{" if exact else f"if (j < {n}{suffix}) {{",
            *digits,
            *inside,
            "}",
            "}",
        ]
