"""The entry point of a C file: what it runs is a table, so that a step more is a line of numbers and no code.

In: `Step`s, each a function and the places that it works on; the values that come in; the buffers that go out; where the others lie.
Out: C text. The entry point checks what it is given, then runs the table from top to bottom. A compiler reads a thousand rows in
the time of a kernel, so what a program costs to build is what its distinct kernels cost, however often they are called: loops that were
unrolled, and layers, are rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..ops.lowering.loops import Buffer, Value
from .landing import Landed


@dataclass
class Step:
    """One row: a function of the file, or (`routine`) what is done with one of another library; its range and grain; for each pointer a buffer and a number
    of bytes, `None` for the flag of indices out of bounds; and `numbers`, to which a last pointer is."""

    function: str
    range: int
    grain: int
    pointers: Sequence[tuple[Buffer | None, int]]
    numbers: tuple[int, ...] = ()
    routine: bool = False

    def __str__(self) -> str:
        named = ["bad" if b is None else f"{b.name} + {n}" if n else b.name for b, n in self.pointers]
        return f"{self.function}({', '.join([*named, *map(str, self.numbers)])})"


# What other libraries do: `bind` hands over the engine's two functions, then the description of each routine. A row for one has no
# function; its grain is the number of the routine that it starts, or less than any where it awaits one.
ROUTINES = """
#define STARTED 0
#define AWAITED 0
static void *const *routines;
void bind(void *const *table) { routines = table; }
static i64 begin_or_await(i64 k, void *const *a) {
    if (k < 0) return ((i64 (*)(void *))routines[1])(a[0]);
    return ((i64 (*)(void *, const void *, void *))routines[0])(routines[2 + k], a[0], a[1]);
}
"""
RUN = "run(s->f, s->n, s->grain, a);"
RUN_OR_ROUTINE = "if (s->f) run(s->f, s->n, s->grain, a); else if ((wrong = begin_or_await(s->grain, a))) break;"
# Whoever times rows defines these (see `report.kernels`).
TIMERS = """
#ifndef BEGUN
#define BEGUN(k)
#define DONE(k)
#endif
"""


@dataclass
class Memory:
    """Where buffers are: those of inputs and outputs by their places among the arguments, others in the arena, by bytes."""

    arguments: list[Buffer]
    offsets: dict[Buffer, int]
    shared: dict[Buffer, Buffer]  # lies where another one does
    numbers: dict[tuple[int, ...], int] = field(default_factory=dict)  # where each list begins
    length: int = 0

    def __post_init__(self) -> None:
        self.bases = {b: k for k, b in enumerate(self.arguments)}

    def pointer(self, buffer: Buffer | None, distance: int) -> tuple[int, int]:
        """The number of a base, and bytes from there."""
        if buffer is None:
            return len(self.arguments) + 1, 0
        buffer = self.shared.get(buffer, buffer)
        base = self.bases.get(buffer)
        return (base, distance) if base is not None else (len(self.arguments), self.offsets[buffer] + distance)

    def pointers(self, step: Step) -> list[tuple[int, int]]:
        found = [self.pointer(*p) for p in step.pointers]
        if step.numbers:
            at = self.numbers.get(step.numbers)
            if at is None:
                at = self.numbers[step.numbers] = self.length
                self.length += len(step.numbers)
            found.append((len(self.arguments) + 2, 8 * at))
        return found


def entry(
    steps: list[Step], inputs: list[Value], outputs: list[Buffer], offsets: dict, shared: dict, over: Landed
) -> str:
    """The tables, and the function that runs them."""
    memory = Memory([*[v.buffer for v in inputs], *outputs], offsets, shared | over.places)
    written = set(over.places.values())
    places = [memory.pointers(s) for s in steps]
    routines = any(s.routine for s in steps)
    arguments, most = len(memory.arguments), max(map(len, places), default=1)
    rows = [f"{{{s.function}, {s.range}, {s.grain}, {len(p)}}}" for s, p in zip(steps, places, strict=True)]
    lines = [
        "i32 bad = 0;",
        f"char *base[{arguments + 3}]; void *a[{max(most, 1)}];",
        f"i64 wrong = take(t, expected, {len(inputs)}, {arguments}, base);",
        "if (wrong) return wrong;",
        f"base[{arguments}] = arena; base[{arguments + 1}] = (char *)&bad; base[{arguments + 2}] = (char *)numbers;",
        "threads = n;",
        "const int before = begin_products();",
        "const i64 *at = places;",
        f"for (const step_t *s = steps; s < steps + {len(steps)}; s++) {{",
        *(
            [] if over.first is None else [f"    if (bad && s == steps + {over.first}) break;"]
        ),  # nothing is written over yet
        "    at = pointers(at, s->count, base, a);",
        "    BEGUN(s - steps)",
        f"    {RUN_OR_ROUTINE if routines else RUN}",
        "    DONE(s - steps)",
        "}",
        "end_products(before);",
        "return wrong ? wrong : bad ? -1 : 0;",
    ]
    return "".join([
        ROUTINES if routines else "",
        TIMERS,
        table("const step_t steps", rows),
        table("const i64 places", [", ".join(f"{b}, {n}" for b, n in row) for row in places if row]),
        table("const i64 numbers", [", ".join(map(str, row)) for row in memory.numbers]),
        table("const i64 expected", [", ".join(map(str, fit(v, v.buffer in written))) for v in inputs]),
        "long entry(void *t, char *arena, long n) {\n" + "\n".join(f"    {line}" for line in lines) + "\n}\n",
    ])  # fmt: skip


def fit(v: Value, written: bool) -> Iterable[int]:
    """What an array must be like: bytes of an element (less than none where it is written), then rank, shape and strides in bytes."""
    return v.dtype.itemsize * (-1 if written else 1), len(v.shape), *v.shape, *[s * v.dtype.itemsize for s in v.strides]


def table(name: str, rows: list[str]) -> str:
    """A constant array. One of nothing has a row too: C knows no empty ones."""
    return f"static {name}[] = {{\n" + ",\n".join(f"    {row}" for row in rows or ["0"]) + "\n};\n"
