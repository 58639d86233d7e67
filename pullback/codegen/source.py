"""One C file for the loops of a graph: kernels as functions, and an entry point that calls them in order.

In: a `Lowering`, the values that come in and those that must come out. Out: a `Source`: the text, the buffers that the caller
allocates, the size of the arena; for people, the kernels' functions alone, and in `kernels` what each of them computes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..capture.front.config import native as settings
from ..core import dtype as dtypes
from ..core.events import listeners
from ..core.modes import process
from ..ops.lowering.loops import Awaited, Buffer, Call, Convolved, Product, Routine, Sort, Started, Value
from ..runtime import paired, products
from .describe import describe
from .entry import Step, entry
from .fuse import Kernel, group, inline
from .landing import landed, sooner
from .memory import in_use, lifetimes, overwrites, plan
from .printers.c import Printed, Printer
from .printers.c_complex import COMPLEX
from .printers.c_prelude import PRELUDE
from .printers.c_scalars import C_TYPES
from .printers.c_sorts import sort_routines
from .schedule import Nest, schedule

NUMBERS = 1  # elements up to which steps that share nothing are one kernel
BLOCK_OF_PRODUCT = 32  # rows, or columns, of a product: threads share products by blocks
WORK_OF_SORT = 1 << 12  # elements that are worth another thread
ENOUGH_COLUMNS = 256  # to be shared even by more rows: no column is then laid out for the kernel by two threads
WORK_OF_PRODUCT = 1 << 20  # multiplications that are worth another thread


@dataclass
class Source:
    """See the module's docstring. The caller passes arrays for `inputs`, then for `outputs`."""

    text: str
    functions: list[str]
    inputs: list[Value]
    outputs: list[Buffer]
    landed: dict[Buffer, Buffer]  # outputs that lie in the memory of inputs, and so are none of `outputs`
    arena: int
    kernels: list[str]
    calls: list[Step]  # that run them
    routines: list[Routine]  # of other libraries, that it starts or awaits, in the order in which `bind` takes them
    items: list  # what `kernels` describes, where somebody listens (see `core.events`)
    in_use: list[int]  # the bytes that hold something while each of them runs, where somebody listens

    def text_of(self, k: int) -> str:
        """The function that a step runs, or the step itself."""
        name = f"void {self.calls[k].function}("
        return next((f for f in self.functions if name in f), str(self.calls[k]))


def write(
    steps: list,
    inputs: list[Value],
    outputs: list[Buffer],
    fusing: bool = True,
    landing: dict[Buffer, Buffer] | None = None,
) -> Source:
    """The C file of some steps. `inputs` are the values given, each on a buffer of its own. `landing`: outputs that may be written over
    inputs."""
    kept, landing = set(outputs), landing or {}
    steps = inline(steps, kept, landing) if fusing else [s.squeezed() if not isinstance(s, Call) else s for s in steps]
    order = group(sooner(steps, landing), fusing, NUMBERS, landing)
    readers = readers_of(order)
    bad = Buffer("bad", dtypes.int32, 1, "flag")
    printed: list[Printed | Call] = []
    flow: list[tuple[set[Buffer], set[Buffer]]] = []
    nests: dict[int, Nest] = {}
    for n, item in enumerate(order):
        if isinstance(item, Call):
            printed.append(item)
            flow.append(({item.buffer}, item.reads()))
            continue
        nest = schedule(item, needed_outside(item, n, readers, kept))
        nests[n] = nest
        result = Printer(nest, bad).print()
        printed.append(result)
        flow.append((nest.stored, {b for b in result.buffers if b is not bad} - nest.stored))
    given = {v.buffer for v in inputs}
    over = landed(landing, order, flow, nests)
    shared = _shared(flow, nests, given, kept, set(over.places))
    flow = [tuple({shared.get(b, b) for b in side} for side in step) for step in flow]  # type: ignore[misc]
    offsets, arena = plan(flow, given | kept)
    routines = list(dict.fromkeys(p.routine for p in printed if isinstance(p, (Started, Awaited))))
    functions, calls = _steps(printed, bad, routines)
    outputs = [b for b in outputs if b not in over.places]
    # Complex numbers may live between two steps of one loop alone, and in no buffer.
    numbers = COMPLEX if any(name in f for f in functions for name in ("c64", "c128")) else ""
    sorts = sort_routines({c.source.dtype for c in printed if isinstance(c, Sort)})
    text = PRELUDE + numbers + sorts + "\n" + "\n".join(functions) + "\n"
    text += entry(calls, inputs, outputs, offsets, shared, over)
    return Source(
        text, functions, inputs, outputs, over.places, arena, [describe(item) for item in order], calls, routines, order if listeners else [],
        in_use(flow, given | set(over.places), kept) if listeners else [],
    )  # fmt: skip


def readers_of(order: list) -> dict[Buffer, set[int]]:
    """Which kernels and products read a buffer, by number."""
    found: dict[Buffer, set[int]] = {}
    for n, item in enumerate(order):
        for step in item.steps if isinstance(item, Kernel) else (item,):
            for b in step.reads():
                found.setdefault(b, set()).add(n)
    return found


def needed_outside(kernel: Kernel, n: int, readers: dict[Buffer, set[int]], kept: set[Buffer]) -> set[Buffer]:
    """The buffers of a kernel that something else reads, or writes, too."""
    return {b for b in kernel.written if b in kept or len(b.writers) > 1 or readers.get(b, set()) - {n}}


def _shared(
    flow: list, nests: dict[int, Nest], given: set[Buffer], kept: set[Buffer], over: set[Buffer]
) -> dict[Buffer, Buffer]:
    """Buffers that lie in the memory of another one, which is written where they are read for the last time. What is in `over` lies where
    something else was before."""
    spans = lifetimes(flow)
    shared: dict[Buffer, Buffer] = {}
    for n in sorted(nests, reverse=True):  # the last first: what takes over memory may have been taken over itself
        dying = {b for b in flow[n][1] if spans[b][1] == n and b not in given and b not in kept}
        fresh = {b for b in flow[n][0] if spans[b][0] == n} - over
        for old, target in overwrites(nests[n], dying, fresh).items():
            shared[old] = shared.get(target, target)
    return shared


def _steps(printed: list, bad: Buffer, routines: list[Routine]) -> tuple[list[str], list[Step]]:
    """Function texts, equal ones once, and what is to be run."""
    names: dict[str, str] = {}
    functions, steps = [], []
    for item in printed:
        if isinstance(item, Call):
            steps.append(_call(item, routines))
            continue
        name = names.get(item.text)
        if name is None:
            name = names[item.text] = f"kernel{len(names)}"
            functions.append(item.text.replace("NAME", name, 1))
        pointers = [
            (None, 0) if b is bad else (b, n * b.dtype.itemsize)
            for b, n in zip(item.buffers, item.offsets, strict=True)
        ]
        steps.append(Step(name, item.range, item.grain, pointers))
    return functions, steps


def _call(item: Call, routines: list[Routine]) -> Step:
    if isinstance(item, Product):
        return _product(item)
    if isinstance(item, Convolved):
        return _convolved(item)
    if isinstance(item, Sort):
        return _sort(item)
    if isinstance(item, Started):
        sides = [_at(item.source or item.target), _at(item.target)]
        return Step("STARTED", 0, routines.index(item.routine), sides, routine=True)
    if isinstance(item, Awaited):
        return Step("AWAITED", 0, -1, [_at(item.target)], routine=True)
    raise TypeError(f"{type(item).__name__} is not lowered for C")


def _at(v: Value) -> tuple[Buffer, int]:
    return v.buffer, v.offset * v.dtype.itemsize


def strict() -> bool:
    """Whether results must be those of single operators."""
    return settings.deterministic or getattr(process, "deterministic", False)


def matrix_of(v: Value) -> tuple[int, int]:
    """(transposed, leading dimension) of a matrix as BLAS reads it."""
    rows, columns = v.shape[-2:]
    s, t = v.strides[-2:]
    if (t == 1 or columns == 1) and (s >= columns or rows == 1):
        return 0, max(s, columns, 1) if rows > 1 else max(columns, 1)
    return 1, max(t, rows, 1) if columns > 1 else max(rows, 1)


def _in_one() -> bool:
    """Whether threads may not share a product: how BLAS rounds depends on what it is given at once. Products of our own do not, which compute
    all of them where results must not depend on threads."""
    return strict() and not (process.deterministic and products.available)


def _batch(p: Product) -> list[tuple[int, int, int, int]]:
    """Dimensions of a batch of products: a size, and the steps of both operands and of the result."""
    steps = zip(p.target.shape[:-2], p.a.strides[:-2], p.b.strides[:-2], p.target.strides[:-2], strict=True)
    return [row for row in steps if row[0] > 1]


def _paired(p: Product) -> Step:
    (ta, lda), (tb, ldb), (_, row) = (matrix_of(v) for v in (p.a, p.b, p.target))
    sizes = p.a.shape[-2], p.b.shape[-1], p.a.shape[-1]
    operands = (1, lda) if ta else (lda, 1), (1, ldb) if tb else (ldb, 1)
    numbers = paired.described(sizes, *operands, row, p.target.dtype is dtypes.float32, _batch(p))
    places = [_at(v) for v in (p.a, p.b, p.target if p.bias is None else p.bias, p.target)]
    return Step("paired_task", 1, 0, [*places, (None, 0)], numbers)


def _product(p: Product) -> Step:
    if p.a.dtype is dtypes.bfloat16:
        return _paired(p)
    letter = "s" if p.target.dtype is dtypes.float32 else "d"
    (ta, lda), (tb, ldb), (tc, ldc) = (matrix_of(v) for v in (p.a, p.b, p.target))
    m, k = p.a.shape[-2:]
    n = p.b.shape[-1]
    batch = _batch(p)
    by_columns = n > m or n >= ENOUGH_COLUMNS
    side, across = (n, m) if by_columns else (m, n)
    block = side if _in_one() else min(BLOCK_OF_PRODUCT, side)
    flat = [ta, tb, m, n, k, lda, ldb, ldc, len(batch), int(by_columns), block, *[x for row in batch for x in row]]
    count = math.prod(row[0] for row in batch) * -(-side // block)
    grain = max(WORK_OF_PRODUCT // max(block * across * k, 1), 1) if count > 1 else 0
    return Step(f"{letter}_task", count, grain, [_at(v) for v in (p.a, p.b, p.target)], tuple(flat))


def _convolved(c: Convolved) -> Step:
    x, w, y = [(c.first, c.second, c.target), (c.target, c.first, c.second), (c.first, c.target, c.second)][
        c.prepared[0]
    ]
    places = [_at(v) for v in (x, w, y, y if c.bias is None else c.bias)]
    return Step("convolve_task", 1, 0, [*places, (None, 0)], c.prepared)


def _sort(s: Sort) -> Step:
    rows = s.source.numel // s.source.shape[-1]
    grain = max(WORK_OF_SORT // s.source.shape[-1], 1) if rows > 1 else 0
    numbers = (s.source.shape[-1], int(s.descending), s.first, s.first + s.target.shape[-1])
    return Step(f"{C_TYPES[s.source.dtype]}_sort", rows, grain, [(s.buffer, 0), _at(s.source), (None, 0)], numbers)
