"""A run of nodes as launches on a CUDA device: `Segment` with another printer and another machine.

What always holds: arguments that do not fit (another device, dtype, shape or strides) run as operators. One that begins at an
address from which vectors cannot be read is copied first.
"""

from __future__ import annotations

import numpy as np

from ...capture.front.config import native as settings
from ...core.device import device
from ...core.modes import process
from ...core.tensor import CUDA, Tensor, wrap
from ...graph.node import Node
from ...ops.lowering.loops import Value
from ...runtime.cuda import Machine, Program, machine
from ...runtime.replays import WORTH, Replays
from ..segment import Segment, run_nodes, strict, view
from .lower import CudaLowering
from .printer import VECTOR
from .source import CudaSource, write


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
        self.kinds = [(m.shape, np.dtype(m.dtype.numpy)) for m in self.makers]

    def run(self, values: dict) -> None:
        tensors = [values[n] for n in self.given]
        if self.others or not all(map(self.fits, tensors, self.expected)):
            run_nodes(self.nodes, values)
            return
        blanks = self.on.blanks(self.kinds)
        outs = [o if m.back is None else o.transpose(m.back) for m, o in zip(self.makers, blanks, strict=True)]
        if not self.empty:
            arrays = [t._array for t in tensors]
            addresses = [self.on.address(a) for a in arrays]
            copies = []  # kept until all is in the stream
            for k, at in enumerate(addresses):
                if at % VECTOR and arrays[k].size:
                    copies.append(self.on.aligned(arrays[k]))
                    addresses[k] = self.on.address(copies[-1])
            addresses += [self.on.address(o) for o in outs]
            self.on.run(self.program, addresses, process.matmul_precision != "highest")
        result = [wrap(o, m.dtype, self.device) for m, o in zip(self.makers, outs, strict=True)]
        for node, (kind, at, value) in zip(self.results, self.places, strict=True):
            base = tensors[at] if kind == "given" else result[at]
            values[node] = base if value is None else view(base, value)

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
