"""What is seen while a profile runs: a flat list of spans, in the order in which they began.

Calls of operators, backward nodes and `record_function` blocks come in while `modes.PROFILE` is set; `Span`s with
their times go out. Spans of one thread nest: closing one closes whatever was opened inside it and left open (an
error, an annotation that was never ended). A recorder belongs to the thread that started it. With the bit off,
nothing of this module is reached.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable
from time import perf_counter_ns

from ...core import modes
from ...core.layers import above
from ...core.modes import ambient
from ...core.node import AccumulateGrad, Node, next_sequence
from ...core.tensor import LAYOUTS, Tensor
from ...ops.system import dispatch as dispatching
from ...ops.system.operator import Operator

FUNCTION, BACKWARD, USER = 0, 1, 7  # scopes, numbered as PyTorch does
EVALUATE = "autograd::engine::evaluate_function: "

_HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_numbers = itertools.count(1)
_thread = threading.local()


def thread_number() -> int:
    """A small number for the current thread: 1 for the first that is ever profiled."""
    try:
        return _thread.number
    except AttributeError:
        _thread.number = next(_numbers)
        return _thread.number


class Span:
    """One call, node or annotation, from `start` to `end` (nanoseconds; 0 while it is open)."""

    __slots__ = (
        "name", "overload", "start", "end", "thread", "scope", "parent", "mark", "sequence", "forward_thread",
        "shapes", "dtypes", "stack", "memory", "flops",
    )  # fmt: skip

    def __init__(self, name: str, thread: int, scope: int, parent: Span | None, overload: str = ""):
        self.name, self.overload, self.thread, self.scope, self.parent = name, overload, thread, scope, parent
        self.start = self.end = 0
        self.mark = 0  # an operator's: nodes numbered above it were made by this call
        self.sequence = -1
        self.forward_thread = 0
        self.shapes: list = []
        self.dtypes: list = []
        self.stack: list = []
        self.memory = 0
        self.flops = 0


class Recorder:
    """Collects the spans of one thread."""

    def __init__(self, shapes: bool = False, memory: bool = False, stack: bool = False, flops: bool = False):
        self.shapes, self.memory, self.stack, self.flops = shapes, memory, stack, flops
        self.spans: list[Span] = []
        self.open: list[Span] = []
        self.threads: dict[int, int] = {}  # sequence number of a node -> the thread that recorded it
        self.collecting = True
        self.start = self.end = 0

    def __enter__(self) -> Recorder:
        if ambient.recorders:
            raise RuntimeError("Profiler is already enabled on this thread")
        ambient.recorders.append(self)
        ambient.switch(modes.PROFILE, self.collecting)
        self.start = perf_counter_ns()
        return self

    def __exit__(self, *exc) -> None:
        if self.open:
            self.finish(self.open[0])
        self.end = perf_counter_ns()
        ambient.switch(modes.PROFILE, False)
        ambient.recorders.remove(self)

    def collect(self, on: bool) -> None:
        """Pause or go on; spans that are open keep their time."""
        self.collecting = on
        ambient.switch(modes.PROFILE, on)

    # ---- spans
    def begin(self, name: str, scope: int = FUNCTION, overload: str = "") -> Span:
        span = Span(name, thread_number(), scope, self.open[-1] if self.open else None, overload)
        if self.stack:
            span.stack = user_frames()
        self.spans.append(span)
        self.open.append(span)
        span.start = perf_counter_ns()
        return span

    def finish(self, span: Span) -> None:
        """Close a span, and those inside it that are still open; one that is closed already stays as it is."""
        now = perf_counter_ns()
        if span.end or span not in self.open:
            return
        while True:
            top = self.open.pop()
            top.end = now
            if top.parent is not None:  # an operator states its own in the end; nodes and annotations hold the sum
                top.parent.memory += top.memory
            if top is span:
                return

    # ---- calls
    def call(self, op: Operator, args: tuple):
        """Run an operator inside a span."""
        span = self.begin(f"{op.namespace}::{op.name}", overload="" if op.overload == "default" else op.overload)
        if self.flops:
            span.flops = op.declared.flops(*args) if op.declared.flops is not None and op.body is None else 0
        return self._run_call(span, args, dispatching.dispatch, op, args, modes.PROFILE)

    def apply(self, cls: type, args: tuple, kwargs: dict, run):
        """Run a custom function (by `run(cls, args, kwargs)`) inside a span of its name."""
        return self._run_call(self.begin(cls.__name__), args, run, cls, args, kwargs)

    def _run_call(self, span: Span, args: tuple, run, *inputs):
        span.mark = next_sequence()
        if self.shapes:
            span.shapes, span.dtypes = [shape_of(a) for a in args], [dtype_of(a) for a in args]
        try:
            out = run(*inputs)
            self.note_results(span, args, out)
            return out
        finally:
            self.finish(span)

    def note_results(self, span: Span, args: tuple, out) -> None:
        """What the results say: the node that was recorded, and the memory that is new."""
        results = [t for t in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(t, Tensor)]
        if self.memory:
            span.memory = fresh_bytes(results, args)
        if span.sequence >= 0:
            return
        for t in results:
            a = t._autograd
            if a is not None and a.edge is not None and a.edge[0].sequence > span.mark:
                return self.note_node(span, a.edge[0].sequence)

    def note_node(self, span: Span | None, sequence: int) -> None:
        """A composite call bears the number of the first node that was made inside it."""
        self.threads[sequence] = span.thread
        while span is not None and span.mark and span.sequence < 0:
            span.sequence = sequence
            span = span.parent

    # ---- backward nodes
    def run(self, node: Node, gs: list, run):
        """Run a node (by `run(node, gs)`) inside its two spans: its evaluation by the engine, and itself."""
        name = "torch::autograd::AccumulateGrad" if isinstance(node, AccumulateGrad) else node.name()
        outer = self._begin_node(node, EVALUATE + name, FUNCTION)
        span = self._begin_node(node, name, BACKWARD)
        if self.shapes:
            span.shapes, span.dtypes = [shape_of(g) for g in gs], [dtype_of(g) for g in gs]
        try:
            return run(node, gs)
        finally:
            self.finish(outer)

    def _begin_node(self, node: Node, name: str, scope: int) -> Span:
        span = self.begin(name, scope)
        if not isinstance(node, AccumulateGrad):
            span.sequence = node.sequence
            span.forward_thread = self.threads.get(node.sequence, 0)
        return span


# ---- facts about arguments and results
def shape_of(value) -> list:
    """The shape of a tensor as a list, a list of them for lists of tensors, [] for anything else."""
    if isinstance(value, Tensor):
        return list(value.shape)
    if isinstance(value, (tuple, list)) and any(isinstance(v, Tensor) for v in value):
        return [shape_of(v) for v in value]
    return []


def dtype_of(value) -> str:
    """What kind of thing an argument is, in the words of PyTorch's traces."""
    if isinstance(value, Tensor):
        return _CTYPES.get(value.dtype.name, value.dtype.name)
    if isinstance(value, (tuple, list)):
        return "TensorList" if any(isinstance(v, Tensor) for v in value) else "ScalarList"
    return "Scalar" if isinstance(value, (int, float, complex)) else ""


_CTYPES = {
    "float32": "float", "float64": "double", "int64": "long int", "int32": "int", "int16": "short int",
    "int8": "signed char", "uint8": "unsigned char", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def fresh_bytes(results: list[Tensor], args: tuple) -> int:
    """Bytes of the results that are neither an argument nor a view of something older."""
    known = {id(a) for a in args}
    return sum(
        t.numel() * t.dtype.itemsize
        for t in results
        if id(t) not in known and t._view_info is None and not t._keys & LAYOUTS and not t.is_meta
    )


def user_frames() -> list[str]:
    """The frames that called, innermost first, without those of this package."""
    frames, frame = [], sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith((_HOME, "<")):
            frames.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return frames


# ---- the seams
def current() -> Recorder | None:
    """The recorder of this thread, if one is collecting."""
    return ambient.recorders[-1] if ambient.mode & modes.PROFILE and ambient.recorders else None


def _profiled(op: Operator, args: tuple):
    """The seam `profiled`. What began inside a profile may bring the bit back after its end."""
    if not ambient.recorders:
        ambient.switch(modes.PROFILE, False)
        return dispatching.dispatch(op, args)
    return ambient.recorders[-1].call(op, args)


def _profiled_function(cls: type, args: tuple, kwargs: dict, call: Callable):
    """The seam `profiled_function`: a custom function."""
    recorder = current()
    return call(cls, args, kwargs) if recorder is None else recorder.apply(cls, args, kwargs, call)


def _run_profiled(node: Node, gs: list, run: Callable):
    """The seam `run_profiled`: a node of a backward."""
    recorder = current()
    return run(node, gs) if recorder is None else recorder.run(node, gs, run)


above.profiled = _profiled
above.profiled_function = _profiled_function
above.run_profiled = _run_profiled
