"""A run of nodes as launches on a CUDA device: `Segment` with another printer and another machine.

What always holds: arguments that do not fit (another device, dtype, shape or strides) run as operators. One that begins at an
address from which vectors cannot be read is copied first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...capture.front.config import native as settings
from ...core.device import device
from ...core.modes import LISTENING, ambient, process
from ...core.tensor import CUDA, Tensor, wrap
from ...graph.node import Node
from ...ops.lowering.loops import Value
from ...runtime.cuda import Machine, Program, machine
from ...runtime.launcher import launcher
from ...runtime.numbers import Numbers
from ...runtime.replays import WORTH, Replays
from ..segment import Segment, like, run_nodes, view
from ..source import strict
from .calls import native, ready
from .lower import CudaLowering, is_hosted
from .printer import VECTOR
from .source import CudaSource, write

SMALL = 1 << 16  # bytes of an output that is kept for the next call
MOST_SLOTS, MOST_TENSORS = 192, 24  # addresses of a program, and its inputs and outputs, that the extension takes


class CudaSegment(Segment):
    """Nodes that are one call of a launcher."""

    lowering = CudaLowering
    one_call = False
    keys = CUDA
    source: CudaSource

    def write(self, steps: list, inputs: list[Value], outputs: list, fusing: bool) -> CudaSource:
        if settings.triton.cudagraphs:  # memory stays where it is
            return write(steps, inputs, outputs, fusing, None, self.landing)
        marked = lambda mark: {v.buffer for n, v in zip(self.given, inputs, strict=True) if n.meta.get(mark)}
        return write(steps, inputs, outputs, fusing, marked("saved"), self.landing, marked("own"))

    def ordered(self, inputs: list[Node]) -> list[Node]:
        """Numbers that lie on the host come last: they travel with each run."""
        return sorted(inputs, key=self.is_hosted)

    def is_hosted(self, node: Node) -> bool:
        return is_hosted(node.meta.get("val"))

    def where(self) -> device:
        """The device of this segment's tensors."""
        return next(t.device for n in (*self.nodes, *self.inputs) for t in _tensors(n) if t.device.type == "cuda")

    def machine(self) -> Machine:
        return machine(self.device.index or 0)

    def begin(self) -> Callable[[], Any]:
        self.device = self.where()
        self.on = self.machine()
        self.flags = ("--fmad=false",) if strict() else ()
        self.graphs, self.kept_memory = settings.cuda.graphs, settings.triton.cudagraphs
        self.building = self.on.begin(self.source, self.flags)
        return self.building

    def build(self) -> None:
        (self.building or self.begin())()
        self.there = sum(
            not self.is_hosted(n) for n in self.given
        )  # how many arguments are on the device: the first ones
        self.expected = [
            (v.dtype, v.shape, tuple([s * v.dtype.itemsize for s in v.strides]))
            for v in self.source.inputs[: self.there]
        ]
        self.hosted = [v.dtype for v in self.source.inputs[self.there :]]
        self.told = Numbers(self.on, len(self.hosted)) if self.hosted else None
        over = set(self.source.landed.values())
        self.written = [k for k, v in enumerate(self.source.inputs) if v.buffer in over]
        self.program: Program = self.on.load(self.source, self.flags)
        if self.graphs and len(self.source.plan.entries) >= WORTH:
            self.program.replays = Replays()
        stable = self.kept_memory and self.program.replays is not None
        self.program.arenas = {} if stable else None
        self.in_c = native is not None and self.keys == CUDA and ready()
        self.kept: dict[int, list[list]] = {}  # by stream, and by output
        self.few = [stable or b.size * b.dtype.itemsize <= SMALL for b in self.source.outputs]
        self.kinds = [(m.shape, np.dtype(m.dtype.numpy)) for m in self.makers]
        few = self.in_c and self.program.replays is None
        returned = {at for kind, at, _ in self.places if kind == "given"}
        self.freed = [[k for k in dead if k not in returned] for dead in ((), *self.source.plan.dead)]
        self.in_one = self.native_call(tuple(range(len(self.given))), tuple(self.news)) if few else None

    def run(self, values: dict) -> None:
        tensors = [values[n] for n in self.given]
        if not self.callable_with(tensors):
            run_nodes(self.nodes, values)
            return
        if self.program.parts or self.source.plan.reused:
            for n in self.dying:  # whatever of it is an argument is now in `tensors` alone
                values.pop(n, None)
        values.update(zip(self.results, self.called(tensors), strict=True))

    def callable_with(self, tensors: list) -> bool:
        """Whether arguments are what was compiled for."""
        if self.hosted:
            numbers = zip(tensors[self.there :], self.hosted, strict=True)
            if not all(not t._keys and t.dtype is d and not t._array.shape for t, d in numbers):
                return False
            tensors = tensors[: self.there]
        return not self.others and self.all_fit(tensors)

    def called(self, tensors: list) -> list:
        """The values of `results`. Arguments that are not needed any more leave the list before the call ends."""
        if self.in_one is not None:
            result = native.run(self.in_one, tensors)
            if result is not NotImplemented:
                return list(result)
        parted = not self.empty and self.on.has_parts(self.program)
        blanks = [None] * len(self.kinds) if parted else self.blanks(range(len(self.kinds)))
        if not self.empty:
            shared = [k for k in self.source.plan.reused if not self.on.is_alone(tensors, k)]
            addresses, copies = self.addresses(tensors[: self.there] if self.hosted else tensors, shared)
            if self.told is not None:
                addresses += self.told.told([t._array for t in tensors[self.there :]])
            inputs = len(addresses)
            addresses += [0 if o is None else self.on.address(o) for o in blanks]

            def begin(part: int) -> None:
                for k in self.freed[part]:
                    tensors[k] = None
                born = self.source.plan.born[part]
                for k, array in zip(born, self.blanks(born), strict=True):
                    blanks[k], addresses[inputs + k] = array, self.on.address(array)

            reduced = process.matmul_precision != "highest"
            self.on.run(self.program, addresses, reduced, begin if parted else None)
            for k in self.written:  # over a copy
                if k in copies:
                    self.on.put_back(tensors[k]._array, copies[k])
            del copies  # kept until all is in the stream
        outs = [o if m.back is None else o.transpose(m.back) for m, o in zip(self.makers, blanks, strict=True)]
        news = [wrap(o, m.dtype, self.device) for m, o in zip(self.makers, outs, strict=True)]
        return [
            base if value is None else view(base, value)
            for kind, at, value in self.places
            for base in (tensors[at] if kind == "given" else news[at],)
        ]

    @property
    def news(self) -> list[int]:
        """Which outputs the results are that are new tensors, and no views of one."""
        return [at for kind, at, value in self.places if kind != "given" and value is None]

    def native_call(self, inputs: tuple, many: tuple | None, pack: Any = None, recorder: Any = None) -> Any:
        """The program as a call of the extension: `inputs` are places among its arguments, `many` the outputs that are the tuple that
        comes back, if one does. None where a result is no new tensor of its own, or there are too many of them."""
        on, plan, program = self.on, self.source.plan, self.program
        slots = plan.inputs + plan.outputs + 1 + len(plan.offsets)
        if self.others or self.empty or len(self.news) != len(self.places) or slots > MOST_SLOTS:
            return None
        if self.hosted or self.written or plan.reused:
            return None
        if len(inputs) + len(self.makers) > MOST_TENSORS:
            return None
        outputs = tuple([(m.shape, np.dtype(m.dtype.numpy), m.back, m.dtype) for m in self.makers])
        numbers = (
            0, 0, 0, _address(launcher()), plan.numbers.ctypes.data, len(plan.entries), plan.arena,
            plan.places.ctypes.data, len(plan.offsets), ctypes.addressof(program.functions), ctypes.addressof(program.api),
            on.flag.ctypes.data, on.flag_address,
        )  # fmt: skip
        handle = on.handle if plan.uses_products else None
        extra = None if program.convolutions is None else partial(_told, on, program)
        return native.call(
            (program, plan, on), inputs, (), outputs, many, pack, recorder, None, self.device, self.device.keys, on.memory, handle,
            _reduced, extra, on.check, None, b"", numbers,
        )  # fmt: skip

    def blanks(self, which: Sequence[int]) -> list:
        """Arrays for some outputs. Small ones are those of a call before, where nobody has them any more; all of them, where graphs were
        asked for, so that addresses come again."""
        if not self.in_c or process.cuda_captures:
            return self.on.blanks([self.kinds[k] for k in which])
        kept = self.kept.setdefault(self.on.stream(), [[] for _ in self.kinds])
        return [
            self.on.blank_again(kept[k], *self.kinds[k]) if self.few[k] else self.on.blank(*self.kinds[k])
            for k in which
        ]

    def timed(self, repeats: int) -> list[float] | None:
        """The least seconds of each launch, on ones and zeros; None where it was not built, for lack of a device."""
        if not hasattr(self, "program") or self.empty:
            return None
        found = [like(n.meta["val"]).fill_(1 if n.meta["val"].dtype.is_floating_point else 0) for n in self.given]
        addresses = [self.on.address(t._array) for t in found[: self.there]]
        addresses += self.told.told([t._array for t in found[self.there :]]) if self.told is not None else []
        outs = self.on.blanks(self.kinds)
        return self.on.timed(self.program, addresses + [self.on.address(a) for a in outs], repeats)

    @property
    def limits(self) -> dict[str, float]:
        return self.on.limits

    def all_fit(self, tensors: list) -> bool:
        if self.in_c and native.fits(tensors, self.expected, self.device, self.keys):
            return True
        return all(map(self.fits, tensors, self.expected))  # which forgives strides of single elements

    def addresses(self, tensors: list, shared: Sequence[int]) -> tuple[list[int], dict[int, Any]]:
        """Where the arguments are, or copies of those that begin between vectors, or would be written over while somebody else has them
        (`shared`), by their number."""
        result = native.addresses(tensors) if self.in_c else [self.on.address(t._array) for t in tensors]
        copies = {}
        for k, at in enumerate(result):
            if (at % VECTOR or k in shared) and tensors[k]._array.size:
                copies[k] = self.on.aligned(tensors[k]._array)
                result[k] = self.on.address(copies[k])
        return result, copies

    def direct(self, program) -> Callable:
        """A function that takes what a graph takes which is this segment and no more."""
        consume = self.consuming(program)
        return lambda *args: consume(list(args))

    def consuming(self, program) -> Callable:
        """The same of a list, which is empty when arguments that are not needed any more are let go of."""
        places = [program.placeholders.index(n) for n in self.given]
        which = {n: k for k, n in enumerate(self.results)}
        single = isinstance(program.output, Node)
        flat = (program.output,) if single else program.output
        wanted = [(True, which[n]) if n in which else (False, program.placeholders.index(n)) for n in flat]
        passed = [k for computed, k in wanted if not computed]
        kind = None if single else type(program.output)

        def consume(args: list):
            tensors = [args[k] for k in places]
            if ambient.mode >= LISTENING or not self.callable_with(tensors):
                del tensors
                return program.staged(args)
            same = {k: args[k] for k in passed}
            args.clear()
            found = self.called(tensors)
            out = [found[k] if computed else same[k] for computed, k in wanted]
            return out[0] if kind is None else kind(out)

        return consume

    def fits(self, t: Tensor, expected: tuple) -> bool:
        """Whether an argument is what was compiled for."""
        d, shape, strides = expected
        a = t._array
        if t.dtype is not d or t.device is not self.device or t._keys != self.keys or a.shape != shape:
            return False
        found = a.strides
        return (
            found == strides
            or 0 in shape
            or all(n == 1 or s == w for n, s, w in zip(shape, found, strides, strict=True))
        )


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _told(on: Machine, program: Program, stream: int) -> tuple:
    """What the launcher must know of convolutions: (its address, itself)."""
    found = on.convolving(program, stream)
    return ctypes.addressof(found), found


def _reduced() -> bool:
    return process.matmul_precision != "highest"


def _tensors(node: Node) -> list[Tensor]:
    value = node.meta.get("val")
    return [t for t in (value if isinstance(value, (tuple, list)) else (value,)) if isinstance(t, Tensor)]
