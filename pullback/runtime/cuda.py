"""CUDA source to a function on a device, and what a plan needs to run there.

`cubin(text, architecture)` is NVRTC's work, kept on disk by content, options, architecture and NVRTC's version (see `cache`), so that
another process builds nothing. `machine(index)` is a device: it loads functions, allocates, and runs plans (see `launcher`) on the
stream in use. CuPy finds the libraries, has the memory and the handles; launches and products go straight to the driver and cuBLAS.

An index out of bounds in a kernel sets a flag in memory that host and device share. It is looked at before each run, and when the
host has waited for the device (`core.arrays.check_devices`): what a kernel found is raised, in PyTorch's words, before numbers that
came of it are seen on the host.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from sys import getrefcount
from typing import Any

import numpy as np

from ..core.arrays import device_checks
from ..core.cupy_library import device_count, loaded_library
from ..core.modes import process
from . import epilogues
from .build import Background, CompileFailed, NoCompiler
from .cache import cached
from .cudnn import Convolutions
from .launcher import Api, Plan, launcher
from .replays import Replays

ALONE = 3  # references to what its owner, a variable and an argument have
MOST_KEPT = 3  # arrays for one output
OPTIONS = ("--std=c++17",)
_ANYWHERE = contextlib.nullcontext()
TOGETHER = 16  # functions that are compiled as one file
WORKSPACE = 32 << 20  # bytes that products in a graph may use, as cuBLAS wants on large devices
OUT_OF_BOUNDS = (
    "CUDA error: device-side assert triggered\n"
    "An index was out of bounds, in an operator or a compiled graph that ran on the device; results since then are not to be used. "
    "Run the same on the CPU to see where."
)


def cubin(text: str, architecture: str, flags: tuple[str, ...] = ()) -> bytes:
    """Machine code of a CUDA source, for `sm_90` and its like."""
    from cupy_backends.cuda.libs import nvrtc

    options = (f"--gpu-architecture={architecture}", *OPTIONS, *flags)
    key = "\0".join(("cubin", text, *options, str(nvrtc.getVersion())))

    def make(folder: Path, target: Path) -> None:
        target.write_bytes(_compiled(nvrtc, text, options))

    return cached(key, make).read_bytes()


def _compiled(nvrtc, text: str, options: tuple[str, ...]) -> bytes:
    program = nvrtc.createProgram(text, "pullback.cu", (), ())
    try:
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError as error:
            raise CompileFailed(f"NVRTC: {error}\n{nvrtc.getProgramLog(program)[:4000]}") from error
        return nvrtc.getCUBIN(program)
    finally:
        nvrtc.destroyProgram(program)


class Part:
    """Entries of a plan between two cuts, and its graphs, where some are wanted."""

    def __init__(self, plan: Plan):
        self.plan, self.replays = plan, Replays()


class Program:
    """The functions of a source on a device, and the plan that calls them by `api`. `owner` keeps them loaded; `replays` are its
    graphs, where some are wanted."""

    def __init__(self, plan: Plan, functions: list[int], api: Api, owner: object = None):
        self.plan, self.api, self.owner = plan, api, owner
        self.replays: Replays | None = None
        self.arenas: dict[int, Any] | None = None  # by stream, where they are kept from one run to the next
        self.parts: list[Part] = [Part(part) for part in plan.parts()] if plan.cuts else []
        self.convolutions = Convolutions(plan.convolutions) if plan.convolutions else None
        self.functions = (ctypes.c_void_p * max(len(functions), 1))(*functions)


class Machine:
    """A CUDA device. Arrays are CuPy's."""

    def __init__(self, index: int):
        import cupy

        self.cupy, self.index = cupy, index
        self.as_strided = cupy.lib.stride_tricks.as_strided
        here = cupy.cuda.Device(index)
        with here:
            self.architecture = f"sm_{here.compute_capability}"
            cupy.cuda.device.get_cublas_handle()  # loads cuBLAS
            self.shared, flag = _shared_flag(cupy)
            self.side = cupy.cuda.Stream(non_blocking=True)  # on which graphs are captured
        self.flag, self.flag_address = np.frombuffer(flag, np.int32), self.shared.ptr
        self.memory, self.handle = cupy.cuda.alloc, cupy.cuda.device.get_cublas_handle
        self.api = Api(*_addresses())
        self.kernels: dict[str, Any] = {}
        self.rooms: dict[int, Any] = {}  # memory that convolutions may use, by stream
        self.outgrown: list = []
        self.workspaces: dict[int, Any] = {}  # of graphs with products, by the stream that they run on
        device_checks.append(self.check)

    def begin(self, source: Any, flags: tuple[str, ...]) -> Callable[[], Any]:
        """Let NVRTC begin with a source; what comes back waits for it. `load` finds the machine code on disk then."""
        return Background(lambda: self.codes(source, flags)).result

    def codes(self, source: Any, flags: tuple[str, ...]) -> list[tuple[bytes, list[str]]]:
        """Machine code and the names of its functions, part by part."""
        parts = _parts(source)
        with ThreadPoolExecutor(max(min(len(parts), os.cpu_count() or 1), 1)) as pool:
            codes = list(pool.map(lambda part: cubin(part[0], self.architecture, flags), parts))
        return [(code, names) for code, (_, names) in zip(codes, parts, strict=True)]

    def load(self, source: Any, flags: tuple[str, ...]) -> Program:
        """The program of a `CudaSource`."""
        functions: list[Any] = []
        modules = []
        with self.cupy.cuda.Device(self.index):
            for code, names in self.codes(source, flags):
                modules.append(self.loaded(code))
                functions += [modules[-1].get_function(name) for name in names]
        return Program(source.plan, [f.ptr for f in functions], self.api, (modules, functions))

    def function(self, text: str, name: str) -> Any:
        """One kernel of a source."""
        with self.cupy.cuda.Device(self.index):
            return self.loaded(cubin(text, self.architecture)).get_function(name)

    def together(self, text: str, names: tuple[str, ...]) -> tuple[list[int], Api, Any]:
        """(addresses of the kernels of a source, what a launcher calls them by, what keeps them loaded)."""
        with self.in_use():
            module = self.loaded(cubin(text, self.architecture))
            functions = [module.get_function(name) for name in names]
        return [f.ptr for f in functions], self.api, (module, functions)

    def stream(self) -> int:
        return self.cupy.cuda.get_current_stream().ptr

    def kernel(self, text: str, name: str) -> Any:
        """As `function`, which is called once for each text."""
        found = self.kernels.get(text)
        if found is None:
            found = self.kernels[text] = self.function(text, name)
        return found

    def start(self, function: Any, grid: int, block: int, arguments: bytes) -> None:
        """Launch a kernel that takes one structure, on the stream in use; the device is the one in use."""
        stream = self.cupy.cuda.get_current_stream().ptr
        wrong = _launch()(function.ptr, grid, 1, 1, block, 1, 1, 0, stream, (ctypes.c_char_p * 1)(arguments), None)
        if wrong:
            raise RuntimeError(f"CUDA error: the launch of a kernel gave {wrong}")

    def loaded(self, code: bytes) -> Any:
        """Machine code on the device."""
        from cupy.cuda.function import Module

        module = Module()
        module.load(code)
        return module

    def check(self) -> None:
        """Raise where a kernel has found an index out of bounds."""
        if self.flag[0]:
            self.flag[0] = 0
            raise RuntimeError(OUT_OF_BOUNDS)

    def blank(self, shape: tuple, dtype: np.dtype):
        """A new row-major array on the device in use."""
        return self.cupy.ndarray(shape, dtype)

    def blanks(self, kinds: list[tuple[tuple, np.dtype]]) -> list:
        """New row-major arrays of these shapes and dtypes; nothing is in them."""
        make = self.cupy.ndarray
        with self.in_use():
            return [make(shape, dtype) for shape, dtype in kinds]

    def blank_again(self, kept: list, shape: tuple, dtype: np.dtype):
        """A new array, or one of `kept` that nobody else has any more: so that addresses come again, and with them graphs."""
        for array in kept:
            memory = array.data
            if getrefcount(array) == getrefcount(memory) == ALONE and getrefcount(memory.mem) == ALONE - 1:
                return array
        with self.in_use():
            result = self.cupy.ndarray(shape, dtype)
        if len(kept) < MOST_KEPT:
            kept.append(result)
        return result

    @staticmethod
    def is_alone(tensors: list, k: int) -> bool:
        """Whether a list of tensors alone has one of them, and its memory, be it as a view of an array that nobody else has."""
        array = tensors[k]._array
        base, memory = array.base, array.data
        if getrefcount(tensors[k]) >= ALONE or getrefcount(array) > ALONE:
            return False
        if base is None:
            return getrefcount(memory) == ALONE and getrefcount(memory.mem) < ALONE
        whole = base.data
        if getrefcount(base) > ALONE:
            return False
        if whole is memory:  # which both have, and two variables
            return getrefcount(memory) == ALONE + 2 and getrefcount(memory.mem) < ALONE
        return getrefcount(memory) == getrefcount(whole) == getrefcount(memory.mem) == ALONE

    def in_use(self):
        """A block in which this is the device in use: with one device it always is."""
        return _ANYWHERE if device_count() == 1 else self.cupy.cuda.Device(self.index)

    @staticmethod
    def address(array) -> int:
        return array.data.ptr

    def aligned(self, array):
        """The memory that an array reaches over, copied to an address that vectors can be read from: strides stay as they are."""
        span = 1 + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)) // array.itemsize
        return self.as_strided(array, (span,), (array.itemsize,)).copy()

    def put_back(self, array, copy) -> None:
        """Write what `aligned` gave, and a kernel has changed, back to where it came from."""
        array[...] = self.as_strided(copy, array.shape, array.strides)

    def has_parts(self, program: Program) -> bool:
        """Whether a run of a program goes part by part."""
        return bool(program.parts) and program.arenas is None and not process.cuda_captures

    def run(
        self, program: Program, addresses: list[int], tf32: bool, begin: Callable[[int], None] | None = None
    ) -> None:
        """One run of a plan, on the stream in use; by a graph, where one was made for these addresses. With `begin` it goes part by part:
        `begin(k)` lets go of what is not needed from part k on, and puts the addresses of the outputs that part k makes."""
        self.check()
        cupy, plan = self.cupy, program.plan
        with self.in_use():
            stream = cupy.cuda.get_current_stream()
            if begin is not None:
                self.run_in_parts(program, addresses, tf32, stream, begin)
                return
            memory = self.arena_of(program, stream.ptr) if plan.arena else None  # kept until all is in the stream
            arena = memory.ptr if memory is not None else 0
            self.run_part(program, program, addresses, (arena,), stream, tf32)

    def run_in_parts(self, program: Program, addresses: list[int], tf32: bool, stream: Any, begin: Callable) -> None:
        """A run whose arenas come and go with its parts: what was let go of before is free then."""
        plan = program.plan
        memory: list[Any] = [None] * len(plan.arenas)  # kept until all is in the stream
        for k, part in enumerate(program.parts):
            memory = [m if k <= last else None for m, (_, last) in zip(memory, plan.stays, strict=True)]
            begin(k)
            for n, (first, _) in enumerate(plan.stays):
                if first == k:
                    memory[n] = self.cupy.cuda.alloc(plan.arenas[n])
            places = tuple([0 if m is None else m.ptr for m in memory])
            self.run_part(program, part, addresses, places, stream, tf32)

    def run_part(
        self, program: Program, part: Part | Program, addresses: list[int], arenas: tuple[int, ...], stream: Any, tf32: bool
    ) -> None:  # fmt: skip
        """The entries of a part, or all of them."""
        slots = lambda: program.plan.slots(addresses, self.shared.ptr, *arenas)
        if program.replays is not None and part.replays is not None and not process.cuda_captures:
            switches = None if program.convolutions is None else program.convolutions.current()
            name = (*addresses, *arenas, stream.ptr, tf32, switches)
            make = lambda: self.captured(program, part.plan, slots(), stream, tf32)
            graph = part.replays.find(name, make)
            if graph is not None:
                graph.launch(stream)
                return
        self.launch(program, slots(), stream.ptr, tf32, plan=part.plan)

    def arena_of(self, program: Program, stream: int) -> Any:
        """Memory for what a plan computes on its way: new, or that of the run before on this stream, which has it to itself."""
        if program.arenas is None or process.cuda_captures:
            return self.cupy.cuda.alloc(program.plan.arena)
        if stream not in program.arenas:
            program.arenas[stream] = self.cupy.cuda.alloc(program.plan.arena)
        return program.arenas[stream]

    def convolving(self, program: Program, stream: int) -> Any:
        """What the launcher must know of a program's convolutions, which will run on a stream; None where there are none."""
        found = program.convolutions
        if found is None:
            return None
        found.current()  # may need more memory than before
        memory = self.rooms.get(stream)
        if memory is None or memory.size < found.workspace:  # graphs may use the one before: it is kept
            size = max(found.workspace, 1)
            self.outgrown.append(memory)
            memory = self.rooms[stream] = self.cupy.cuda.memory.Memory(size)
        return found.told(self.index, memory.ptr)

    def launch(
        self,
        program: Program,
        slots: np.ndarray,
        stream: int,
        tf32: bool,
        workspace: tuple[int, int] = (0, 0),
        on: int | None = None,
        plan: Plan | None = None,
    ) -> None:
        """The launches and products of a plan (the program's, or a part of it), one after the other; `on` is the stream that they
        will run on, where it is another."""
        plan = plan or program.plan
        handle = self.cupy.cuda.device.get_cublas_handle() if plan.uses_products else None
        place, size = workspace
        told = self.convolving(program, stream if on is None else on)
        wrong = launcher()(
            plan.numbers.ctypes.data, len(plan.entries), slots.ctypes.data, program.functions, ctypes.addressof(self.api),
            stream, handle, tf32, place, size, None if told is None else ctypes.addressof(told),
        )  # fmt: skip
        if wrong:
            raise RuntimeError(f"CUDA error: step {wrong // 100000 - 1} of a compiled graph gave {wrong % 100000}")

    def timed(self, program: Program, addresses: list[int], repeats: int) -> list[float]:
        """The least seconds of each entry of a plan, over some runs."""
        plan, cuda = program.plan, self.cupy.cuda
        memory = cuda.alloc(max(plan.arena, 1))
        slots = plan.slots(addresses, self.shared.ptr, memory.ptr)
        parts = [Plan([entry], 0, 0, [], 0) for entry in plan.entries]
        stream, best = cuda.get_current_stream(), [math.inf] * len(parts)
        for _ in range(repeats):
            marks = [cuda.Event() for _ in range(len(parts) + 1)]
            marks[0].record(stream)
            for part, mark in zip(parts, marks[1:], strict=True):
                self.launch(program, slots, stream.ptr, process.matmul_precision != "highest", plan=part)
                mark.record(stream)
            marks[-1].synchronize()
            spent = [cuda.get_elapsed_time(a, b) / 1e3 for a, b in zip(marks, marks[1:], strict=False)]
            best = [min(a, b) for a, b in zip(best, spent, strict=True)]
        self.flag[0] = 0  # what stood in for arguments may have been out of bounds
        return best

    @functools.cached_property
    def limits(self) -> dict[str, float]:
        """What the device does at best: bytes a second of a large copy, operations a second of a product of float32."""
        cupy = self.cupy
        source, side = cupy.ones(1 << 26, np.float32), cupy.ones((4096, 4096), np.float32)
        target = cupy.empty_like(source)
        copying = self._least(lambda: target.data.copy_from_device_async(source.data, source.nbytes))
        product = self._least(lambda: side @ side)
        return {"bytes a second": 2 * source.nbytes / copying, "operations a second": 2 * 4096**3 / product}

    def _least(self, work: Callable) -> float:
        cuda, best = self.cupy.cuda, math.inf
        for _ in range(4):
            begun, ended = cuda.Event(), cuda.Event()
            begun.record()
            work()
            ended.record()
            ended.synchronize()
            best = min(best, cuda.get_elapsed_time(begun, ended) / 1e3)
        return best

    def captured(self, program: Program, plan: Plan, slots: np.ndarray, stream: Any, tf32: bool) -> Any:
        """The same launches as a graph. Products get memory of the stream that the graph will run on: no other stream uses it."""
        make = lambda side, room: self.launch(program, slots, side, tf32, room, stream.ptr, plan)
        return self.graph_of(stream.ptr, make)

    def graph_of(self, stream: int, launch: Callable[[int, tuple[int, int]], None]) -> Any:
        """What `launch` puts on a stream, as a graph that will run on another; it is told (address, size) of memory for products."""
        workspace = self.workspaces.get(stream)
        if workspace is None:
            workspace = self.workspaces[stream] = self.cupy.cuda.memory.Memory(WORKSPACE)
        self.side.begin_capture(self.cupy.cuda.runtime.streamCaptureModeRelaxed)
        try:
            launch(self.side.ptr, (workspace.ptr, WORKSPACE))
        finally:
            graph = self.side.end_capture()
        return graph

    def replay(self, graph: Any) -> None:
        graph.launch(self.cupy.cuda.get_current_stream())


def _parts(source: Any) -> list[tuple[str, list[str]]]:
    """(text, names of its functions) of files that are compiled side by side: each has the beginning, and some functions."""
    starts = range(0, len(source.names), TOGETHER)
    return [
        ("\n".join([source.prelude, *source.functions[k : k + TOGETHER]]), source.names[k : k + TOGETHER])
        for k in starts
    ]


@functools.cache
def machine(index: int) -> Machine:
    """The machine of a device, made at first need."""
    return Machine(index)


def _shared_flag(cupy) -> tuple[Any, Any]:
    """Four bytes that host and device see: their owner, and the host's view. They are zero."""
    memory = cupy.cuda.PinnedMemory(4, cupy.cuda.runtime.hostAllocMapped | cupy.cuda.runtime.hostAllocPortable)
    view = (ctypes.c_int32 * 1).from_address(memory.ptr)
    view[0] = 0
    return memory, view


def _addresses() -> list[int]:
    """Of the driver's launch, of cuBLAS's batched product and of how it is given a stream and memory, and of products with a bias."""
    try:
        driver, blas = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(loaded_library("libcublas.so"))
        found = (
            driver.cuLaunchKernel,
            blas.cublasGemmStridedBatchedEx,
            blas.cublasSetStream_v2,
            blas.cublasSetWorkspace_v2,
        )
    except (OSError, AttributeError) as error:
        raise NoCompiler(f"the CUDA driver or cuBLAS cannot be called: {error}") from error
    return [
        *[ctypes.cast(f, ctypes.c_void_p).value or 0 for f in found],
        epilogues.biased(loaded_library("libcublasLt.so")),
    ]


@functools.cache
def _launch() -> Any:
    function = ctypes.CDLL("libcuda.so.1").cuLaunchKernel
    pointer, count = ctypes.c_void_p, ctypes.c_uint
    function.argtypes = [pointer, *[count] * 7, pointer, pointer, pointer]
    return function
