"""A run of nodes as one native call, and a run of nodes as operators.

`Segment(nodes, wanted)` lowers nodes, writes their C and, after `build`, runs it: `run(values)` reads the values of its inputs and
adds those of `wanted`. `Operators(nodes)` does the same by calling the operators. Where a call of a segment does not fit, its
nodes run as operators.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..capture.front.config import native as settings
from ..core.events import listeners
from ..core.storage import storage_of, window
from ..core.tensor import Tensor, stride_of, view_of, wrap
from ..core.threads import thread_count
from ..graph.node import Node, map_arg
from ..ops.lowering import NotLowerable
from ..ops.lowering.expressions import forget
from ..ops.lowering.loops import Awaited, Buffer, Engine, Routine, Started, Value
from ..ops.system.operator import Operator, find
from ..runtime.build import begin
from ..runtime.cpu import Library
from ..runtime.rooms import Rooms
from .landing import buffers_of
from .lower import Lowering, is_number
from .source import strict, write


class Operators:
    """Nodes that run as they are."""

    def __init__(self, nodes: list[Node]):
        self.nodes = nodes
        self.dying: Sequence[Node] = ()  # values that nobody needs after it

    def run(self, values: dict) -> None:
        for node, last in zip(self.nodes, self.last_uses, strict=True):
            run_nodes([node], values)
            for n in last:
                values.pop(n, None)

    @functools.cached_property
    def last_uses(self) -> list[list[Node]]:
        """Per node, what nobody needs after it."""
        last = {i: n for n in self.nodes for i in (n, *n.all_input_nodes)}
        return [[i for i in self.dying if last.get(i) is n] for n in self.nodes]


def run_nodes(nodes: list[Node], values: dict) -> None:
    for node in nodes:
        if shape_only(node) and node.args[0] not in values:
            t = node.args[0].meta["val"]
            stand_in = like(t)
            values[node] = node.target(stand_in, *map_arg(node.args[1:], lambda n: values[n]), **node.kwargs)
            continue
        args = map_arg(node.args, lambda n: values[n])
        kwargs = map_arg(node.kwargs, lambda n: values[n])
        if node.op == "call_function":
            values[node] = node.target(*args, **kwargs)
        else:
            values[node] = getattr(args[0], node.target)(*args[1:], **kwargs)


def shape_only(node: Node) -> bool:
    """Whether a node looks at nothing of its first argument but its shape, so that it need not wait for it."""
    op = node.target
    return isinstance(op, Operator) and op.declared.reads_shape_only and isinstance(node.args[0], Node)


def like(t: Tensor) -> Tensor:
    """A tensor of the geometry of another, on its device, with nothing in it."""
    shape, strides, d = t._array.shape, stride_of(t), t.dtype
    if t.device.type != "cpu":
        return find("empty_strided.default")(shape, strides, dtype=d, device=t.device)
    span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if n)
    flat = np.empty(span, d.numpy)
    return wrap(np.lib.stride_tricks.as_strided(flat, shape, [s * d.itemsize for s in strides]), d)


class Written(Protocol):
    """What the source of a segment says of itself, in whichever language."""

    inputs: list[Value]
    outputs: list[Buffer]
    kernels: list[str]
    functions: list[str]
    items: list

    @property
    def text(self) -> str: ...

    def text_of(self, k: int) -> str: ...

    @property
    def arena(self) -> int: ...


class Segment:
    """Nodes that are one native call."""

    lowering = Lowering
    rooms: Rooms  # set by `build`
    one_call = True  # whether a graph that is one segment can be called by a function written for it: see `runner`
    dying: Sequence[Node] = ()  # values that nobody needs after it

    def __init__(
        self,
        nodes: list[Node],
        wanted: list[Node],
        lowered: Lowering | None = None,
        landing: dict[Node, Node] | None = None,
    ):
        self.nodes, self.wanted = nodes, wanted
        self.library: Library | None = None
        self.building: Callable[[], Any] | None = None  # waits for the compiler
        inside = set(nodes)
        self.inputs = self.ordered(list(dict.fromkeys(i for n in nodes for i in n.all_input_nodes if i not in inside)))
        lowering = lowered or lower_nodes(self.inputs, nodes, self.lowering)
        values = lowering.values
        self.given = [n for n in self.inputs if isinstance(values[n], Value)]
        self.numbers = {k: values[n].dtype for k, n in enumerate(self.given) if is_number(n)}
        self.results = [n for n in wanted if isinstance(values[n], Value)]
        self.others = [
            n for n in wanted if not isinstance(values[n], Value)
        ]  # sequences of values, taken apart elsewhere
        fed = {values[n].buffer for n in self.given}
        result = list(dict.fromkeys(values[n].buffer for n in self.results if values[n].buffer not in fed))
        # results that may be written over inputs
        self.landing = buffers_of(landing, values, self.results, self.given) if landing else {}
        self.source = self.write(lowering.steps, [values[n] for n in self.given], result, settings.max_fusion)
        over: dict[Buffer, Buffer] = getattr(self.source, "landed", {})
        on: dict[Buffer, list[Value]] = {b: [] for b in result if b not in over}
        for n in self.results:
            on.get(values[n].buffer, []).append(values[n])
        self.makers = [Maker(b, found) for b, found in on.items()]
        homes = {m.buffer: ("made", k, m.value) for k, m in reversed([*enumerate(self.makers)])}
        homes |= {values[n].buffer: ("given", k, values[n]) for k, n in reversed([*enumerate(self.given)])}
        self.places = [place_of(values[n], homes, over) for n in self.results]
        self.threads: Callable | None = (lambda: settings.cpp.threads) if settings.cpp.threads > 0 else None
        self.empty = not lowering.steps
        self.routines: list[Routine] = list(getattr(self.source, "routines", ()))
        self.engine: Engine | None = self.routines[0].engine if self.routines else None
        started, awaited = ({s.buffer for s in lowering.steps if isinstance(s, kind)} for kind in (Started, Awaited))
        self.open_ended = bool(started - awaited)  # whether something that it starts is awaited elsewhere
        self.lost: list = []  # memory of calls that failed, to which something that was started may still write
        self.buffers = {n: values[n].buffer for n in nodes if isinstance(values[n], Value)} if listeners else {}

    def ordered(self, inputs: list[Node]) -> list[Node]:
        """The inputs in the order in which they are passed."""
        return inputs

    def write(self, steps: list, inputs: list[Value], outputs: list[Buffer], fusing: bool) -> Written:
        return write(steps, inputs, outputs, fusing, self.landing)

    def begin(self) -> Callable[[], Any]:
        """Let the compiler begin; what comes back, and `build`, wait for it."""
        self.building = begin(self.source.text, deterministic_flags()) if not self.empty else lambda: None
        return self.building

    def build(self) -> None:
        self.rooms = Rooms(self, self.source.arena)
        if not self.empty:
            self.library = Library((self.building or self.begin())())
        if self.library is not None and self.engine is not None:
            self.library.bind([self.engine.begin, self.engine.await_, *[r.address for r in self.routines]])

    def timed(self, repeats: int) -> list[float] | None:
        """The least seconds of each kernel over some runs, where segments of this kind can tell."""
        return None

    @property
    def limits(self) -> dict[str, float]:
        """Bytes and operations a second of the device that it runs on, at best; asked for where kernels were timed."""
        raise NotImplementedError

    def direct(self, program: Any) -> Callable:
        """A function for a graph that is this segment alone, where segments of this kind can be called so."""
        raise NotImplementedError

    def consuming(self, program: Any) -> Callable[[list], Any]:
        """The same of a list of arguments, which it may empty."""
        raise NotImplementedError

    def ready(self, *arrays: Any) -> bool:
        """Whether what other libraries do in it can be called now."""
        return self.engine is None or self.engine.ready(self.routines, arrays)

    def failed(self, code: int, *memory: Any) -> None:
        """Raise what must not be made good by running operators: something was started, and would be a second time."""
        if self.engine is None or code > 0:
            return
        self.lost.append(memory)
        if code == -1:
            raise IndexError("index out of range in a compiled graph, which holds collectives and so is not run again")
        self.engine.failed(code)

    def run(self, values: dict) -> None:
        tensors = [values[n] for n in self.given]
        for k, d in self.numbers.items():
            tensors[k] = wrap(np.array(tensors[k], d.numpy), d)
        if self.others or any(
            t._keys or t.dtype is not v.dtype for t, v in zip(tensors, self.source.inputs, strict=True)
        ) or not self.ready(*[t._array for t in tensors]):  # fmt: skip
            run_nodes(self.nodes, values)
            return
        outs = [m.make() for m in self.makers]
        if not self.empty:
            if self.library is None:
                raise RuntimeError("a segment runs after it was built")
            here = self.rooms.take()
            wrong = self.library.call((*[t._array for t in tensors], *outs), here[1], (self.threads or thread_count)())
            if wrong:
                self.failed(wrong, here, outs)
            self.rooms.give(here)
            if wrong:
                run_nodes(self.nodes, values)
                return
            if self.engine is not None:
                self.engine.done(tuple(outs) if self.open_ended else ())
        result = [None if o is None else m.wrap(o) for m, o in zip(self.makers, outs, strict=True)]
        for node, (kind, at, value) in zip(self.results, self.places, strict=True):
            base: Any = tensors[at] if kind == "given" else result[at]
            values[node] = base if value is None else view(base, value)


def deterministic_flags() -> tuple[str, ...]:
    """Without products and sums in one rounding, where results must be those of single operators."""
    return ("-ffp-contract=off",) if strict() else ()


def lower_nodes(inputs: list[Node], nodes: list[Node], kind: type[Lowering]) -> Lowering:
    """The loops of some nodes, given others: all of them have some."""
    forget()
    lowering = kind()
    for result in (*map(lowering.input, inputs), *map(lowering.run_node, nodes)):
        assert not isinstance(result, NotLowerable), result.reason
    return lowering


class Maker:
    """Allocates an output: in the layout of one of the values on it, so that this one needs no view."""

    def __init__(self, buffer: Buffer, values: list[Value]):
        self.buffer = buffer
        self.dtype = buffer.dtype
        whole = [v for v in values if not v.offset and v.numel == buffer.size and is_dense(v)]
        flat = Value(buffer, (buffer.size,))
        self.value = min(whole, key=lambda v: v.strides != Value(buffer, v.shape).strides, default=flat)
        order = sorted(range(len(self.value.shape)), key=lambda d: (-self.value.strides[d], d))
        self.shape = tuple(self.value.shape[d] for d in order)
        back = tuple(int(k) for k in np.argsort(order))
        self.back = None if back == tuple(range(len(back))) else back

    def make(self):
        result = np.empty(self.shape, self.dtype.numpy)
        return result if self.back is None else result.transpose(self.back)

    def wrap(self, array) -> Tensor:
        return wrap(array, self.dtype)


def is_dense(v: Value) -> bool:
    """Whether a value covers its memory without gaps, in some order of its dimensions."""
    expected = 1
    for s, n in sorted((s, n) for s, n in zip(v.strides, v.shape, strict=True) if n != 1):
        if s != expected:
            return False
        expected *= n
    return True


def place_of(
    v: Value, homes: dict[Buffer, tuple[str, int, Value]], over: dict[Buffer, Buffer]
) -> tuple[str, int, Value | None]:
    """What a result is: ("given" or "made", number, the window on it or None). `over`: what lies where an input was."""
    kind, k, whole = homes[over.get(v.buffer, v.buffer)]
    return kind, k, None if v.buffer in over or same(whole, v) else v


def same(a: Value, b: Value) -> bool:
    return a.shape == b.shape and a.strides == b.strides and a.offset == b.offset


def view(t: Tensor, v: Value) -> Tensor:
    """A window on a tensor's memory."""
    offset = t._offset + v.offset
    return view_of(t, window(storage_of(t), t.dtype, v.shape, v.strides, offset), t.dtype, offset)
