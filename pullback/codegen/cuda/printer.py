"""Kernels as CUDA functions: `extern "C" __global__ void kernel(buffers...)`, a launch of a fixed grid each.

In: a `Nest` (see `schedule`). Out: `Launch`: text that names its buffers `p0`, `p1`, ..., so that kernels of the same text are one
function; the grid and the block. Which threads run what: `Flat` (element-wise: a vector of neighbours to each thread), `Rows` and
its kin (`groups`: a row to a group of threads, in which sums are shuffled together).

What always holds: one element is read and written by the same thread in every pass over a row, so passes need no barrier between
them; pointers are `__restrict__`, and `const` where they are only read, but for those of buffers that share memory (`together`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...core.dtype import dtype
from ...ops.lowering.expressions import Expr, walk
from ...ops.lowering.loops import Buffer, Compute
from ..printers.c import Body, Printer, combine, indented
from ..printers.c_scalars import C_TYPES
from ..schedule import Nest

THREADS = 256  # of a block of an element-wise kernel
BLOCKS = 1 << 20  # of an element-wise kernel at most: threads then go through several vectors
VECTOR, WIDEST = 16, 8  # bytes, and elements, that a thread reads at once
SMALL = 1 << 31  # elements up to which places are counted in 32 bits


@dataclass
class Launch:
    """A kernel's function, its text with `NAME` for its name; the buffers it is called with; how many threads run it."""

    text: str
    buffers: list[Buffer]
    grid: int
    block: int


class CudaPrinter(Printer):
    """Prints one nest. Names and expressions are those of the C printer."""

    shifts = False

    def __init__(self, nest: Nest, bad: Buffer, needed: set[Buffer], together: frozenset[Buffer] = frozenset()):
        super().__init__(nest, bad)
        self.needed = needed  # buffers that someone outside reads
        self.together = together  # buffers that lie in the memory of others
        sizes = [math.prod(nest.dims), *[e.args[0].size for s in nest.steps for e in s.loads()]]
        self.wide = max([*sizes, *[s.buffer.size for s in nest.steps]], default=0) >= SMALL
        self.index_type, self.suffix = ("i64", "L") if self.wide else ("i32", "")
        self.vector = 1  # neighbours that one thread computes

    def address(self, offset: int, strides, indirect: Sequence[tuple[str, int]] = ()) -> str:
        parts = [
            f"i{d}" if s == 1 else f"i{d}*{s}{self.suffix}"
            for d, s in enumerate(strides)
            if s and self.nest.dims[d] != 1
        ]
        parts += [i if s == 1 else f"{i}*{s}L" for i, s in indirect]
        if offset or not parts:
            parts.append(f"{offset}{self.suffix}")
        return " + ".join(parts)

    def digits(self, loops: list[int], rest: str = "t") -> list[str]:
        """Indices of loops from the number of an iteration; the last one named `base` where neighbours are counted on from it."""
        if not loops:
            return []
        kind, lines = self.index_type, []
        names = {d: f"i{d}" for d in loops}
        if self.vector > 1 and loops[-1] == self.along:
            names[loops[-1]] = "base"
        if len(loops) == 1:
            return [f"const {kind} {names[loops[0]]} = {rest};"]
        remaining = rest
        for d in reversed(loops[1:]):
            n = f"{self.nest.dims[d]}{self.suffix}"
            after = self.fresh("r")
            lines += [
                f"const {kind} {names[d]} = {remaining} % {n};",
                f"const {kind} {after} = {remaining} / {n};",
            ]
            remaining = after
        return [*lines, f"const {kind} {names[loops[0]]} = {remaining};"]

    @property
    def along(self) -> int:
        """The loop that neighbours are counted along."""
        return ([*self.nest.outer, *self.nest.inner])[-1]

    def read(self, e: Expr) -> bool:
        """Whether an element is read from memory, rather than known from this kernel."""
        source = self.written.get(e.args[0])
        return source is None or (not self.at_row(source) and e.args[0] in self.nest.stored)

    def choose_vector(self, length: int) -> int:
        """How many neighbours along the innermost loop a thread computes: memory is then read and written in vectors."""
        d = self.along
        steps = [s for p in self.nest.phases for s in p.elements]
        stores = [s for s in steps if s.buffer in self.nest.stored | self.nest.scratch and not s.reduce]
        loads = [e for s in steps for e in s.loads() if self.read(e) and e.args[2][d] == 1]
        if any(s.strides[d] != 1 for s in stores) or not (stores or loads):
            return 1
        sizes = [s.buffer.dtype.itemsize for s in stores] + [e.dtype.itemsize for e in loads]
        n = min(VECTOR // min(sizes), WIDEST)
        while n > 1 and (length % n or not all(_aligned(s.strides, s.offset, d, n) for s in stores)):
            n //= 2
        return max(n, 1)

    def in_vectors(self, e: Expr) -> bool:
        """Whether a load takes the neighbours of a thread at once."""
        if self.vector == 1 or not self.read(e) or e.args[2][self.along] != 1:
            return False
        if not _aligned(e.args[2], e.args[1], self.along, self.vector):
            return False
        return all(stride % self.vector == 0 and not self.varies(i) for i, stride, _ in e.args[3])

    def varies(self, e: Expr) -> bool:
        """Whether an expression differs between neighbours, or is of what this kernel computes."""
        return any(
            x.op == "index"
            and x.args[0] == self.along
            or x.op == "load"
            and (x.args[2][self.along] != 0 or x.args[0] in self.written)
            for x in walk(e)
        )

    def first(self, address: str) -> str:
        """An address at the first of a thread's neighbours."""
        return re.sub(rf"\bi{self.along}\b", "base", address)

    def row_value(self, buffer: Buffer) -> str:
        return self.names[buffer]

    def registers(self, buffer: Buffer) -> str:
        """An element of a row that its thread keeps from one pass to the next."""
        name = self.names.setdefault(buffer, f"row{len(self.names)}")
        return f"{name}[k]" if self.vector == 1 else f"{name}[k * {self.vector} + v]"

    def pack(self, d: dtype) -> str:
        return f"pack<{C_TYPES[d]}, {self.vector}, {min(VECTOR, self.vector * d.itemsize)}>"

    def function(self, lines: list[str], grid: int, block: int) -> Launch:
        flag = ["i32 bad = 0;"] if self.checks else []
        end = [f"if (bad) *{self.pointer(self.bad)} = 1;"] if self.checks else []
        written = self.nest.stored | {self.bad} | {s.buffer for s in self.nest.steps if s.alone}
        parameters = ", ".join(
            f"{'' if b in written else 'const '}{C_TYPES[b.dtype]} *{'' if b in self.together else '__restrict__ '}p{k}"
            for k, b in enumerate(self.buffers)
        )
        head = f'extern "C" __global__ void __launch_bounds__({block}) NAME({parameters}) {{'
        return Launch("\n".join([head, *indented([*flag, *lines, *end]), "}\n"]), list(self.buffers), grid, block)

    def launch(self) -> Launch:
        from .groups import print_rows
        from .ordered import print_scan, print_scatter

        if any(s.scan for s in self.nest.steps):
            return print_scan(self)
        if any(s.scatter for s in self.nest.steps):
            return print_scatter(self)
        if any(s.reduce for s in self.nest.steps):
            return print_rows(self)
        return self.flat()

    # ---- element-wise
    def flat(self) -> Launch:
        """All iterations, a vector of neighbours to each thread."""
        nest = self.nest
        self.whole = True
        loops = [*nest.outer, *nest.inner]
        if loops:
            self.vector = self.choose_vector(nest.dims[loops[-1]])
        count = nest.size(loops) // self.vector
        steps = [s for p in nest.phases for s in p.elements]
        at = f"(t * {self.vector})" if self.vector > 1 else "t"
        lines = [*self.digits(loops, at), *Elements(self).print(steps)]
        return self.strided(lines, count)

    def strided(self, lines: list[str], count: int) -> Launch:
        """Lines for each `t` below a count, shared by the threads of a grid."""
        blocks = max(-(-count // THREADS), 1)
        kind, suffix = self.index_type, self.suffix
        first = f"blockIdx.x * ({kind}){THREADS} + threadIdx.x"
        if blocks <= BLOCKS:
            guard = f"if (t < {count}{suffix}) {{" if count % THREADS else "{"
            text = [f"const {kind} t = {first};", guard, *lines, "}"]
        else:
            blocks = BLOCKS
            text = [
                f"for (i64 t_ = {first}; t_ < {count}L; t_ += {BLOCKS * THREADS}L) {{",
                f"const {kind} t = t_;",
                *lines,
                "}",
            ]
        return self.function(text, blocks, THREADS)


class Elements:
    """The work of one thread at one vector of neighbours: what is read in vectors before, what is written in vectors after."""

    def __init__(self, printer: CudaPrinter, outside: Body | None = None, live: str = ""):
        self.printer, self.live = printer, live  # `live`: the condition under which a thread may write
        self.before: list[str] = []
        self.after: list[str] = []
        self.inside: list[str] = []
        self.first = CudaBody(printer, self.before, outside)
        self.body = CudaBody(printer, self.inside, outside, self)
        self.packs: dict[Expr, str] = {}

    def print(self, steps: list[Compute], parts: dict[int, str] | None = None) -> list[str]:
        """Lines for the steps of a pass; `parts` are the names, by id, of what steps that reduce have come to so far."""
        for s in steps:
            value = self.body.value(s.expr)
            self.body.own[s.buffer] = value
            if parts and id(s) in parts:
                part = parts[id(s)]
                self.inside.append(f"{part} = {combine(s, part, value)};")
                continue
            if s.buffer in self.printer.nest.scratch:
                self.inside.append(f"{self.printer.registers(s.buffer)} = {value};")
            if s.buffer in self.printer.nest.stored:
                self.store(s, value)
        n = self.printer.vector
        if n == 1:
            return [*self.before, *self.inside, *self.after]
        loop = [
            f"for (i32 v = 0; v < {n}; v++) {{",
            f"const {self.printer.index_type} i{self.printer.along} = base + v;",
        ]
        return [*self.before, "#pragma unroll", *loop, *self.inside, "}", *self.after]

    def store(self, s: Compute, value: str) -> None:
        printer = self.printer
        place = printer.place(s.buffer, s.offset, s.strides)
        guard = f"if ({self.live}) " if self.live else ""
        if printer.vector == 1:
            self.inside.append(f"{guard}{place} = {value};")
            return
        name, kind = printer.fresh("y"), printer.pack(s.buffer.dtype)
        self.before.append(f"{kind} {name};")
        self.inside.append(f"{name}.at[v] = {value};")
        self.after.append(f"{guard}*({kind} *)&{printer.first(place)} = {name};")

    def packed(self, e: Expr) -> str:
        """The name of a vector of neighbours, read before they are looked at one by one."""
        name = self.packs.get(e)
        if name is None:
            printer, (buffer, offset, strides, indirect) = self.printer, e.args
            places = [(self.first.checked_index(self.first.value(i), n), stride) for i, stride, n in indirect]
            place = printer.first(printer.place(buffer, offset, strides, places))
            kind = printer.pack(e.dtype)
            const = "const " if buffer not in printer.nest.stored else ""
            name = self.packs[e] = printer.fresh("x")
            self.before.append(f"const {kind} {name} = *({const}{kind} *)&{place};")
        return name


class CudaBody(Body):
    """As the C printer's; vectors are read by `elements`, and what later passes need again is in registers."""

    def __init__(
        self, printer: CudaPrinter, lines: list[str], outside: Body | None = None, elements: Elements | None = None
    ):
        super().__init__(printer, lines, outside)
        self.cuda, self.elements = printer, elements

    def _compute(self, e: Expr) -> str:
        return f"(i64)i{e.args[0]}" if e.op == "index" else super()._compute(e)

    def _load(self, e: Expr) -> str:
        buffer = e.args[0]
        source = self.cuda.written.get(buffer)
        if source is not None and not self.cuda.at_row(source):
            if buffer in self.own:
                return self.own[buffer]
            if buffer in self.cuda.nest.scratch:
                return self._assign(e.dtype, self.cuda.registers(buffer))
        if self.elements is not None and self.cuda.in_vectors(e):
            return self._assign(e.dtype, f"{self.elements.packed(e)}.at[v]")
        return super()._load(e)


def _aligned(strides, offset: int, along: int, n: int) -> bool:
    """Whether vectors of `n` neighbours begin at multiples of `n`."""
    return offset % n == 0 and all(s % n == 0 for d, s in enumerate(strides) if d != along)
