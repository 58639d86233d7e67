"""One CUDA file for the loops of a graph, and the plan of its run: launches and products in order.

In: steps, the values that come in and the buffers that must come out. Out: a `CudaSource`: the text, and `plan`, which
`runtime/launcher` runs without Python in between. A plan names buffers by slots: first those of inputs, then of outputs, then the
flag of indices out of bounds, then places in one arena.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...core import dtype as dtypes
from ...core.events import listeners
from ...ops.lowering.loops import Buffer, Call, Convolved, Launched, Product, Value
from ...runtime.launcher import MOST_ARGUMENTS, Plan
from ..describe import describe
from ..fuse import group, inline
from ..landing import landed, sooner
from ..memory import in_use, placed
from ..schedule import Nest, schedule
from ..sharing import Owners, pointing_alike, products_swapped, renamed, sharings
from ..source import matrix_of, needed_outside, readers_of
from .prelude import PRELUDE
from .printer import CudaPrinter, Launch

BESIDE = 1 << 14  # iterations of a kernel that takes less time than its launch


@dataclass
class CudaSource:
    """See the module's docstring. The caller passes addresses for `inputs`, then for `outputs`."""

    prelude: str  # what every file begins with
    names: list[str]
    functions: list[str]
    inputs: list[Value]
    outputs: list[Buffer]
    landed: dict[Buffer, Buffer]  # outputs that lie in the memory of inputs, and so are none of `outputs`
    plan: Plan
    kernels: list[str]
    items: list  # what `kernels` describes and `plan` runs, where somebody listens (see `core.events`)
    in_use: list[int]  # the bytes that hold something while each of them runs, where somebody listens

    @property
    def text(self) -> str:
        """All functions as one file."""
        return "\n".join([self.prelude, *self.functions])

    @property
    def arena(self) -> int:
        return self.plan.arena

    def text_of(self, k: int) -> str:
        """The function that an entry of the plan launches; of a product or convolution, what it is."""
        entry = self.plan.entries[k]
        if entry[0]:
            return f"{('cublasGemmStridedBatchedEx', 'cuDNN', 'cublasLtMatmul')[entry[0] - 1]}: {self.kernels[k]}"
        return self.functions[entry[1]]


Flow = list[tuple[set[Buffer], set[Buffer]]]  # what each entry writes and reads


def write(
    steps: list, inputs: list[Value], outputs: list[Buffer], fusing: bool = True, dropped: set[Buffer] | None = None,
    landing: dict[Buffer, Buffer] | None = None, own: set[Buffer] | None = None,
) -> CudaSource:  # fmt: skip
    """The CUDA file of some steps. `inputs` are the values that come in, each on a buffer of its own; those on `dropped` are nobody's
    after their last use, and those on `own` may be written over then. `landing`: outputs that may be written over inputs."""
    kept, fed, landing = set(outputs), {v.buffer for v in inputs}, landing or {}
    steps = inline(steps, kept, landing) if fusing else [s if isinstance(s, Call) else s.squeezed() for s in steps]
    order = group(sooner(steps, landing), fusing, BESIDE, landing, MOST_ARGUMENTS - 1)  # and the flag
    bad = Buffer("bad", dtypes.int32, 1, "flag")
    items, flow, nests = _launches(order, kept, bad)
    for n in products_swapped(items, flow, fed - (dropped or set()) | kept):
        order[n], order[n + 1] = order[n + 1], order[n]
        items[n], items[n + 1] = items[n + 1], items[n]
        flow[n], flow[n + 1] = flow[n + 1], flow[n]
    over = landed(landing, order, flow, {n: nest for n, (nest, _) in nests.items()}, grouped=True).places
    printed, found = {n: nest for n, (nest, _) in nests.items()}, []
    for parted in (True,) if dropped else (True, False) if over else (False,):
        owners = Owners(fed, own or set(), kept, over, parted)
        for memory in sharings(flow, printed, owners):
            shared = renamed(flow, memory)
            parts = placed(shared, fed | set(over), kept - set(over), (dropped or set()) - kept, parted)
            found.append((parts, memory, shared))
    parts, memory, shared = min(found, key=lambda way: way[0].most)
    memory = memory | over
    for n, (nest, needed) in nests.items():
        alike = pointing_alike(flow[n][0] | flow[n][1], memory)
        if alike:
            items[n] = CudaPrinter(nest, bad, needed, alike).launch()
    reused = tuple(k for k, v in enumerate(inputs) if own and v.buffer in own and v.buffer in set(memory.values()))
    outputs = [b for b in outputs if b not in over]
    offsets = parts.offsets
    slots = {b: k for k, b in enumerate([*[v.buffer for v in inputs], *outputs, bad, *offsets])}
    slots |= {b: slots[host] for b, host in memory.items()}
    names, functions, entries = _entries(items, slots)
    convolutions = [item.prepared for item in items if isinstance(item, Convolved)]
    plan = Plan(
        entries, len(inputs), len(outputs), list(offsets.values()), sum(parts.arenas), convolutions, reused=reused
    )
    if parts.cuts:
        dead = [tuple(k for k, v in enumerate(inputs) if v.buffer in gone) for gone in parts.dead]
        born = [tuple(k for k, b in enumerate(outputs) if b in new) for new in parts.born]
        plan = replace(plan, arenas=tuple(parts.arenas), stays=tuple(parts.stays), cuts=tuple(parts.cuts))
        plan = replace(plan, dead=tuple(dead), born=tuple(born))
    described = [describe(item) for item in order]
    heard = (order, in_use(shared, fed | set(over), kept)) if listeners else ([], [])
    more = dict.fromkeys(item.prelude for item in order if isinstance(item, Launched))
    text = "".join([PRELUDE, *more])
    return CudaSource(text, names, functions, inputs, outputs, over, plan, described, *heard)


def _launches(order: list, kept: set[Buffer], bad: Buffer) -> tuple[list, Flow, dict[int, tuple[Nest, set[Buffer]]]]:
    """What a plan runs, in order; what each item writes and reads; the loops of those that are printed, and what is needed of them."""
    readers = readers_of(order)
    items: list[Launch | Product | Convolved] = []
    flow: Flow = []
    nests: dict[int, tuple[Nest, set[Buffer]]] = {}
    for n, item in enumerate(order):
        if isinstance(item, (Product, Convolved)):
            items.append(item)
            flow.append(({item.buffer}, item.reads()))
            continue
        if isinstance(item, Launched):
            buffers = [v.buffer for v in (*item.sources, *item.targets)]
            items.append(Launch(item.text, buffers, item.grid, item.block))
            flow.append((item.writes(), item.reads()))
            continue
        assert not isinstance(item, Call), f"{type(item).__name__} is not lowered for CUDA"
        needed = needed_outside(item, n, readers, kept)
        nest = schedule(item, needed)
        nests[n] = nest, needed
        launch = CudaPrinter(nest, bad, needed).launch()
        items.append(launch)
        flow.append((nest.stored, {b for b in launch.buffers if b is not bad} - nest.stored))
    return items, flow, nests


def _entries(items: list, slots: dict[Buffer, int]) -> tuple[list[str], list[str], list[list[int]]]:
    """Names and texts of functions, equal ones once; and what a plan says of each launch and product."""
    names: dict[str, int] = {}
    functions, entries = [], []
    for item in items:
        if isinstance(item, Product):
            entries.append(_product(item, slots))
            continue
        if isinstance(item, Convolved):
            values = (item.first, item.second, item.target)
            places = [x for v in values for x in (slots[v.buffer], v.offset * v.dtype.itemsize)]
            entries.append([2, sum(e[0] == 2 for e in entries), *places])
            continue
        number = names.get(item.text)
        if number is None:
            number = names[item.text] = len(names)
            functions.append(item.text.replace("NAME", f"kernel{number}", 1))
        entries.append([0, number, item.grid, item.block, len(item.buffers), *[slots[b] for b in item.buffers]])
    return [f"kernel{k}" for k in range(len(names))], functions, entries


KINDS = {dtypes.float32: 0, dtypes.float64: 1, dtypes.float16: 2, dtypes.bfloat16: 14}  # as cudaDataType counts them


def _product(p: Product, slots: dict[Buffer, int]) -> list[int]:
    (ta, lda), (tb, ldb), (_, ldc) = (matrix_of(v) for v in (p.a, p.b, p.target))
    m, k = p.a.shape[-2:]
    n = p.b.shape[-1]
    batch = _batch(p)
    operands = [x for v in (p.a, p.b, p.target) for x in (slots[v.buffer], v.offset * v.dtype.itemsize, KINDS[v.dtype])]
    sizes = [v.dtype.itemsize for v in (p.a, p.b, p.target)]
    shared = [ta, tb, m, n, k, lda, ldb, ldc, *operands, *sizes]
    if p.bias is not None:
        return [3, *shared, slots[p.bias.buffer], p.bias.offset * p.bias.dtype.itemsize]
    return [1, *shared, len(batch), *[x for row in batch for x in row]]


def _batch(p: Product) -> list[list[int]]:
    """(size, strides of a, b and target) of the dimensions before a matrix, neighbours that run on into each other as one."""
    result: list[list[int]] = []
    strides = zip(p.a.strides[:-2], p.b.strides[:-2], p.target.strides[:-2], strict=True)
    for size, places in zip(p.target.shape[:-2], strides, strict=True):
        if size == 1:
            continue
        if result and all(before == s * size for before, s in zip(result[-1][1:], places, strict=True)):
            result[-1] = [result[-1][0] * size, *places]
        else:
            result.append([size, *places])
    return result
