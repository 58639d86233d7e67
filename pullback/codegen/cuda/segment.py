"""A run of nodes as launches on a CUDA device: `Segment` with another printer and another machine.

What always holds: arguments that do not fit (another device, dtype, shape or strides) run as operators. One that begins at an
address from which vectors cannot be read is copied first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...capture.front.config import native as settings
from ...core.device import device
from ...core.modes import LISTENING, ambient, process
from ...core.tensor import CUDA, Tensor, wrap
from ...graph.node import Node
from ...ops.lowering.loops import Value
from ...runtime.cuda import Machine, Program, machine
from ...runtime.replays import WORTH, Replays
from ..segment import Segment, like, run_nodes, strict, view
from .calls import native, ready
from .lower import CudaLowering
from .printer import VECTOR
from .source import CudaSource, write

SMALL = 1 << 16  # bytes of an output that is kept for the next call


class CudaSegment(Segment):
    """Nodes that are one call of a launcher."""

    lowering = CudaLowering
    one_call = False
    keys = CUDA
    source: CudaSource

    def write(self, steps: list, inputs: list[Value], outputs: list, fusing: bool) -> CudaSource:
        return write(steps, inputs, outputs, fusing)

    def where(self) -> device:
        """The device of this segment's tensors."""
        return next(t.device for n in (*self.nodes, *self.inputs) for t in _tensors(n) if t.device.type == "cuda")

    def machine(self) -> Machine:
        return machine(self.device.index or 0)

    def build(self) -> None:
        self.device = self.where()
        self.on = self.machine()
        flags = ("--fmad=false",) if strict() else ()
        self.expected = [
            (v.dtype, v.shape, tuple([s * v.dtype.itemsize for s in v.strides])) for v in self.source.inputs
        ]
        self.program: Program = self.on.load(self.source, flags)
        if settings.cuda.graphs and len(self.source.plan.entries) >= WORTH:
            self.program.replays = Replays()
        self.in_c = native is not None and self.keys == CUDA and ready()
        self.kept: dict[int, list[list]] = {}  # by stream, and by output
        self.few = [b.size * b.dtype.itemsize <= SMALL for b in self.source.outputs]
        self.kinds = [(m.shape, np.dtype(m.dtype.numpy)) for m in self.makers]

    def run(self, values: dict) -> None:
        found = self.call([values[n] for n in self.given])
        if found is None:
            run_nodes(self.nodes, values)
        else:
            values.update(zip(self.results, found, strict=True))

    def call(self, tensors: list) -> list | None:
        """The values of `results`; None where an argument does not fit, and nothing was done."""
        if self.others or not self.all_fit(tensors):
            return None
        blanks = self.blanks()
        outs = [o if m.back is None else o.transpose(m.back) for m, o in zip(self.makers, blanks, strict=True)]
        if not self.empty:
            addresses, copies = self.addresses(tensors)
            addresses += [self.on.address(o) for o in outs]
            self.on.run(self.program, addresses, process.matmul_precision != "highest")
            del copies  # kept until all is in the stream
        result = [wrap(o, m.dtype, self.device) for m, o in zip(self.makers, outs, strict=True)]
        return [
            base if value is None else view(base, value)
            for kind, at, value in self.places
            for base in (tensors[at] if kind == "given" else result[at],)
        ]

    def blanks(self) -> list:
        """Arrays for the outputs. Small ones are those of a call before, where nobody has them any more."""
        if not self.in_c or process.cuda_captures:
            return self.on.blanks(self.kinds)
        kept = self.kept.setdefault(self.on.stream(), [[] for _ in self.kinds])
        return [
            self.on.blank_again(have, *kind) if few else self.on.blank(*kind)
            for have, kind, few in zip(kept, self.kinds, self.few, strict=True)
        ]

    def timed(self, repeats: int) -> list[float] | None:
        """The least seconds of each launch, on ones and zeros; None where it was not built, for lack of a device."""
        if not hasattr(self, "program") or self.empty:
            return None
        found = [like(n.meta["val"]).fill_(1 if n.meta["val"].dtype.is_floating_point else 0) for n in self.given]
        outs = self.on.blanks(self.kinds)
        return self.on.timed(self.program, [self.on.address(a) for a in (*[t._array for t in found], *outs)], repeats)

    @property
    def limits(self) -> dict[str, float]:
        return self.on.limits

    def all_fit(self, tensors: list) -> bool:
        if self.in_c and native.fits(tensors, self.expected, self.device, self.keys):
            return True
        return all(map(self.fits, tensors, self.expected))  # which forgives strides of single elements

    def addresses(self, tensors: list) -> tuple[list[int], list]:
        """Where the arguments are, or copies of those that begin between vectors."""
        result = native.addresses(tensors) if self.in_c else [self.on.address(t._array) for t in tensors]
        copies = []
        for k, at in enumerate(result):
            if at % VECTOR and tensors[k]._array.size:
                copies.append(self.on.aligned(tensors[k]._array))
                result[k] = self.on.address(copies[-1])
        return result, copies

    def direct(self, program) -> Callable:
        """A function that takes what a graph takes which is this segment and no more."""
        places = [program.placeholders.index(n) for n in self.given]
        which = {n: k for k, n in enumerate(self.results)}
        single = isinstance(program.output, Node)
        flat = (program.output,) if single else program.output
        wanted = [(True, which[n]) if n in which else (False, program.placeholders.index(n)) for n in flat]
        kind = None if single else type(program.output)

        def run(*args):
            found = self.call([args[k] for k in places]) if ambient.mode < LISTENING else None
            if found is None:
                return program.in_stages(*args)
            out = [found[k] if computed else args[k] for computed, k in wanted]
            return out[0] if kind is None else kind(out)

        return run

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


def _tensors(node: Node) -> list[Tensor]:
    value = node.meta.get("val")
    return [t for t in (value if isinstance(value, (tuple, list)) else (value,)) if isinstance(t, Tensor)]
