"""Graphs whose sizes are symbols: native code for each set of sizes that comes, as long as there are few.

`Sized(module, compile_static)` looks at the sizes of its arguments; for new ones it traces the graph again with numbers in place
of symbols and compiles that. Sizes in loops are then constants, which the C compiler uses. Numbers that are only computed with are
none of these sizes: native code reads them (see `numbers`). After `native.size_limit` sets of
sizes, calls with further ones run operator by operator.
"""

from __future__ import annotations

from collections.abc import Callable

from ..capture.fake.mode import FakeTensorMode
from ..capture.front.config import native as settings
from ..capture.shapes import ShapeEnv
from ..capture.shapes.questions import free_unbacked_symbols
from ..capture.trace.make_fx import make_fx
from ..core.logs import logger
from ..core.modes import LISTENING, ambient, process
from ..core.tensor import Tensor
from ..graph.module import GraphModule
from .landing import WRITTEN
from .numbers import loose, parted


def is_symbolic(value) -> bool:
    """Whether a value of a trace is, or has, a symbolic size."""
    if isinstance(value, Tensor):
        return any(n.__class__ is not int for n in value._array.shape)
    return hasattr(value, "is_symbolic") or isinstance(value, (int, float))


def symbolic_inputs(module: GraphModule) -> list[int]:
    """Which arguments have sizes that are not known, or are numbers."""
    values = [n.meta.get("val") for n in module.graph.nodes if n.op == "placeholder"]
    return [k for k, v in enumerate(values) if is_symbolic(v)]


def _hangs_on_data(node) -> bool:
    """Whether a node reads a number off a tensor, or has a size that data decides."""
    return getattr(node.target, "name", "") == "_local_scalar_dense" or bool(
        free_unbacked_symbols(node.meta.get("val", ()))
    )


class Sized:
    """A graph with symbolic sizes, as native code per set of sizes. `known`: what is compiled, by sizes."""

    def __init__(self, module: GraphModule, watched: list[int], compile_static: Callable):
        self.module, self.compile_static = module, compile_static
        self.given = [n for n in module.graph.nodes if n.op == "placeholder"]
        numbers = loose(module)
        self.loose = {k for k, n in enumerate(self.given) if n in numbers}  # native code reads them
        self.watched = [k for k in watched if k not in self.loose]
        self.known: dict[tuple, Callable] = {}
        self.decided_by_data = any(map(_hangs_on_data, module.graph.nodes))

    def __call__(self, *args):
        if ambient.mode >= LISTENING:
            return self.module(*args)
        result = self.known.get(self._key(args))
        if result is None:
            result = self._specialised(args)
            self.known[self._key(args)] = result
        return result(*args)

    def _key(self, args: tuple) -> tuple:
        sizes = [
            (a._array.shape, a._array.strides, a._keys) if isinstance(a, Tensor) else a
            for a in (args[k] for k in self.watched)
        ]
        return process.deterministic, *sizes

    def _specialised(self, args: tuple) -> Callable:
        tensors = [a for a in args if isinstance(a, Tensor)]
        if len(self.known) >= settings.size_limit or any(t._keys for t in tensors):
            return self.module
        try:
            while True:
                static = self._static(args)
                if not self.loose:
                    return self.compile_static(static)
                given = [n for n in static.graph.nodes if n.op == "placeholder"]
                split = parted(static, {given[k] for k in self.loose})
                apart = {k for k in self.loose if given[k] in split.told_apart()}
                if not apart:
                    return split.called(self.compile_static(split.module), self.module)
                self.watched, self.loose = sorted({*self.watched, *apart}), self.loose - apart
                self.known.clear()
        except NotImplementedError as error:  # a size that depends on data
            logger("perf_hints").debug("no native code for these sizes: %s", error)
            return self.module

    def _static(self, args: tuple) -> GraphModule:
        """The graph for sizes like these."""
        if not self.watched:
            return self.module
        given = [self.given[k].meta["val"] if k in self.loose else a for k, a in enumerate(args)]
        if self.decided_by_data:  # what data decides is a symbol still
            mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv(), static_shapes=True)
            given = [mode.from_tensor(a) if isinstance(a, Tensor) else a for a in given]
        result = make_fx(self.module, tracing_mode="fake")(*given)
        if WRITTEN in self.module.meta:  # arguments and results are where they were
            result.meta[WRITTEN] = self.module.meta[WRITTEN]
        return result
