"""What each kernel of a native program moves, computes and takes.

In: a `codegen` program that was compiled while somebody listened. Out: a `Kernel` for each of its loops and products: C or CUDA
text, the user's lines behind it, bytes, operations, why it was not joined with those before it, and its time beside what the machine,
or the device, could do.
"""

from __future__ import annotations

import ctypes
import functools
import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..codegen.segment import Segment, deterministic_flags
from ..codegen.source import Source
from ..core.threads import thread_count
from ..graph import Node
from ..ops.lowering.loops import Buffer, Call, Convolved, Launched, Product
from ..runtime.build import build
from ..runtime.cpu import Library, arena
from .places import line_of

# Before the text of a program: what it does around each of its steps (see `codegen.entry`).
TIMED = """#include <time.h>
double spent[{count}];
static double now_(void) {{ struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }}
#define BEGUN(k) const double begun = now_();
#define DONE(k) spent[k] = now_() - begun;
"""
REPEATS = 5


@dataclass
class Kernel:
    """`lines`: (file, line) of the user's code; `nodes`: those of the graph that it computes."""

    what: str
    text: str
    nodes: list[str]
    lines: list[tuple[str, int]]
    moved: int  # bytes read and written once
    operations: int  # arithmetic on elements
    seconds: float | None = None
    share: float | None = None  # of the machine's limit: bandwidth or arithmetic, whichever binds
    bound: str = ""
    apart: list[str] = field(default_factory=list)  # kernels that it was not joined with, and why


def kernels_of(program: Any) -> list[Kernel]:
    """The kernels of a program, timed on inputs of the right shapes."""
    return [kernel for segment in program.segments for kernel in _of_segment(segment)]


def _of_segment(segment: Segment) -> list[Kernel]:
    source = segment.source
    stored = {b for item in source.items for b in _written(item)}
    seconds = measure(segment, source) if isinstance(source, Source) else segment.timed(REPEATS)
    best = limits() if isinstance(source, Source) or seconds is None else segment.limits
    found = []
    for k, item in enumerate(source.items):
        nodes = _nodes_behind(item, segment, stored)
        lines = list(dict.fromkeys(place for n in nodes if (place := line_of(n)) is not None))
        kernel = Kernel(
            source.kernels[k], source.text_of(k), [n.name for n in nodes], lines, _moved(item), _operations(item), apart=_apart(source, item)
        )  # fmt: skip
        if seconds is not None:
            kernel.seconds = seconds[k]
            kernel.share, kernel.bound = share_of_limit(kernel, best)
        found.append(kernel)
    return found


def _apart(source: Any, item: Any) -> list[str]:
    """Which kernels an item was not joined with, in words."""
    if isinstance(item, Call):
        return []
    return [f"{source.kernels[n].partition(chr(10))[0]}: {why}" for n, why in item.apart]


def _written(item: Any) -> set[Buffer]:
    return item.writes() if isinstance(item, Call) else {s.buffer for s in item.steps}


def _read(item: Any) -> set[Buffer]:
    if isinstance(item, Call):
        return item.reads()
    return {b for s in item.steps for b in s.reads()} - _written(item)


def _moved(item: Any) -> int:
    return sum(b.size * b.dtype.itemsize for b in _written(item) | _read(item))


def _operations(item: Any) -> int:
    if isinstance(item, Product):
        return 2 * math.prod(item.target.shape) * item.a.shape[-1]
    if isinstance(item, (Convolved, Launched)):
        return item.work
    if isinstance(item, Call):
        return 0
    return sum(math.prod(s.dims) * max(s.expr.cost, 1) for s in item.steps)


def _nodes_behind(item: Any, segment: Segment, stored: set[Buffer]) -> list[Node]:
    """The nodes that a kernel computes: those whose results it stores, and what is written into them on the way."""
    written = _written(item)
    found: dict[Node, None] = {}
    left = [n for n in segment.nodes if segment.buffers.get(n) in written]
    inside = set(segment.nodes)
    while left:
        node = left.pop()
        if node in found:
            continue
        found[node] = None
        for i in node.all_input_nodes:
            if i in inside and (segment.buffers.get(i) not in stored or segment.buffers.get(i) in written):
                left.append(i)
    return [n for n in segment.nodes if n in found]


# ---- time
def measure(segment: Segment, source: Source) -> list[float] | None:
    """The least seconds of each kernel over a few runs, on ones and zeros of the right shapes; None where it cannot be told."""
    if segment.empty or not source.calls:
        return None
    library = Library(build(TIMED.format(count=len(source.calls)) + source.text, deterministic_flags()))
    spent = (ctypes.c_double * len(source.calls)).in_dll(library.handle, "spent")
    arrays = tuple(_stand_in(v) for v in source.inputs) + tuple(m.make() for m in segment.makers)
    memory = arena(source.arena)
    best = [math.inf] * len(source.calls)
    for _ in range(REPEATS):
        if library.call(arrays, memory.ctypes.data, thread_count()):
            return None  # an index out of bounds, or strides that no stand-in has
        best = [min(a, b) for a, b in zip(best, spent, strict=True)]
    return best


def _stand_in(value: Any) -> np.ndarray:
    """An array of a value's geometry: ones, or zeros where it may hold indices."""
    kind = value.dtype.numpy
    span = 1 + sum((n - 1) * s for n, s in zip(value.shape, value.strides, strict=True) if n > 0)
    flat = np.zeros(max(span, 1), kind) if np.dtype(kind).kind in "iub" else np.ones(max(span, 1), kind)
    strides = [s * flat.itemsize for s in value.strides]
    return np.lib.stride_tricks.as_strided(flat, value.shape, strides)


@functools.cache
def limits() -> dict[str, float]:
    """What this machine does at best: bytes a second of a large copy, operations a second of a product."""
    source, target = np.ones(1 << 23, np.float32), np.empty(1 << 23, np.float32)
    a = np.ones((512, 512), np.float32)
    copying = min(_timed(lambda: np.copyto(target, source)) for _ in range(REPEATS))
    product = min(_timed(lambda: a @ a) for _ in range(REPEATS))
    return {"bytes a second": 2 * source.nbytes / copying, "operations a second": 2 * 512**3 / product}


def _timed(f: Any) -> float:
    begun = time.perf_counter()
    f()
    return time.perf_counter() - begun


def share_of_limit(kernel: Kernel, best: dict[str, float]) -> tuple[float, str]:
    """The least time that the machine could take, by what was taken; and what sets it."""
    by_memory, by_work = kernel.moved / best["bytes a second"], kernel.operations / best["operations a second"]
    bound = "memory" if by_memory >= by_work else "arithmetic"
    return max(by_memory, by_work) / max(kernel.seconds or 0.0, 1e-9), bound
