"""CUDA graphs: work on a stream that is captured once and run again by one call, under PyTorch's names.

`CUDAGraph` captures and replays; `graph` captures what a block does; `make_graphed_callables` does it with functions and modules,
forward and backward. What is captured runs on the memory that it was captured on: inputs are written in place before a replay,
results are read from the tensors that the capture gave. Memory comes from a pool that lives as long as its graphs.

Random numbers differ from replay to replay: during a capture the default generator of the device counts from a place that is read
when the graph runs, and which a replay sets. A draw from another generator raises, unless it was registered.
"""

from __future__ import annotations

import gc
import itertools
import weakref
from typing import TYPE_CHECKING, Any

from ..core.device import indexed
from ..core.modes import process
from ..core.random import generator_of
from .absent import DeviceObject, on_device, require_device
from .devices import synchronize
from .memory import empty_cache
from .streams import Stream, current_stream

if TYPE_CHECKING:
    from ..core.random_philox import CapturedDraws, PhiloxGenerator

MODES = ("global", "thread_local", "relaxed")
Handle = tuple[int, int]
_numbers = itertools.count(1)


class Pool:
    """Memory of graphs. `handle` is its name."""

    known: weakref.WeakValueDictionary[Handle, Pool] = weakref.WeakValueDictionary()

    def __init__(self, handle: Handle):
        self.handle, self.memory = handle, require_device().cuda.MemoryPool()
        Pool.known[handle] = self

    @classmethod
    def of(cls, handle: Handle | None) -> Pool:
        """The pool of a handle; a new one for None, and where no graph has it any more."""
        found = cls.known.get(handle) if handle is not None else None
        return found or cls(handle or new_handle())


def new_handle() -> Handle:
    return 0, next(_numbers)


@on_device
def graph_pool_handle(cupy) -> Handle:
    """A name for a pool that several graphs may share."""
    return new_handle()


@on_device
def is_current_stream_capturing(cupy) -> bool:
    """Whether work on the stream in use is being captured."""
    return bool(cupy.cuda.get_current_stream().is_capturing())


class CUDAGraph(DeviceObject):
    """A captured sequence of kernels."""

    def __init__(self, keep_graph: bool = False):
        self._graph: Any = None
        self._pool: Pool | None = None
        self._capturing: tuple | None = None
        self._generators: list[PhiloxGenerator] = []
        self._draws: list[tuple[PhiloxGenerator, CapturedDraws]] = []

    def register_generator_state(self, generator: PhiloxGenerator) -> None:
        """Let a generator, besides the default one, be drawn from during the capture."""
        self._generators.append(generator)

    def capture_begin(self, pool: Handle | None = None, capture_error_mode: str = "global") -> None:
        """Capture what comes on the stream in use. The pool must grow meanwhile, so that the mode is always "relaxed"."""
        from ..core.random_philox import CapturedDraws

        cupy = require_device()
        if capture_error_mode not in MODES:
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        if self._graph is not None or self._capturing is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        stream = cupy.cuda.get_current_stream()
        if stream.ptr == cupy.cuda.Stream.null.ptr:
            raise RuntimeError("CUDA graphs must be captured on a non-default stream.")
        self._pool = Pool.of(pool)
        generators = {id(g): g for g in (generator_of(indexed("cuda")), *self._generators)}.values()
        self._draws = [(g, CapturedDraws()) for g in generators]
        allocating = cupy.cuda.using_allocator(self._pool.memory.malloc)
        allocating.__enter__()
        try:
            stream.begin_capture(cupy.cuda.runtime.streamCaptureModeRelaxed)
        except BaseException:
            allocating.__exit__(None, None, None)
            raise
        self._capturing = (stream, allocating)
        process.cuda_captures += 1
        for generator, draws in self._draws:
            generator.capture = draws

    def capture_end(self) -> None:
        """The end of a capture; nothing of it has run yet."""
        if self._capturing is None:
            raise RuntimeError("capture_end() was called, and no capture has begun")
        stream, allocating = self._capturing
        self._capturing = None
        process.cuda_captures -= 1
        for generator, _ in self._draws:
            generator.capture = None
        allocating.__exit__(None, None, None)
        self._draws = [(g, d) for g, d in self._draws if d.count]
        self._graph = stream.end_capture()

    def replay(self) -> None:
        """Run what was captured, on the stream in use."""
        if self._graph is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        for generator, draws in self._draws:
            generator.advance_for(draws)
        self._graph.launch(stream=require_device().cuda.get_current_stream())

    def reset(self) -> None:
        """Forget what was captured."""
        self._graph, self._pool, self._draws = None, None, []

    def pool(self) -> Handle:
        """The handle of the pool that the graph's memory is from, for another capture to share."""
        if self._pool is None:
            raise RuntimeError("CUDAGraph.pool() was called without a preceding successful capture.")
        return self._pool.handle


class graph:
    """Captures what a block does into a `CUDAGraph`, on a stream of its own."""

    default_capture_stream: Stream | None = None

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Handle | None = None,
        stream: Stream | None = None,
        capture_error_mode="global",
    ):
        if stream is None and graph.default_capture_stream is None:
            graph.default_capture_stream = Stream()
        self.stream = stream or graph.default_capture_stream
        self.cuda_graph, self.pool, self.mode = cuda_graph, pool, capture_error_mode

    def __enter__(self) -> None:
        synchronize()
        gc.collect()
        empty_cache()
        assert self.stream is not None
        self.stream.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.mode)
        except BaseException:
            self.stream.__exit__()
            raise

    def __exit__(self, *exc) -> None:
        assert self.stream is not None
        try:
            self.cuda_graph.capture_end()
        finally:
            self.stream.__exit__()


def captured(function, pool: Handle) -> tuple[Any, Any]:
    """(what a function gives, a function that does its work again on the same memory)."""
    result = CUDAGraph()
    with graph(result, pool=pool):
        out = function()
    return out, result.replay


def side_stream(function) -> None:
    """Run a function on another stream, which waits for this one and is waited for."""
    here, other = current_stream(), Stream()
    other.wait_stream(here)
    with other:
        function()
    here.wait_stream(other)
    synchronize()
