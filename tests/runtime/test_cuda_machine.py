"""A device as plans see it, over a CuPy that notes what it is asked: what is loaded, launched, captured, kept and raised."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from pullback.core.modes import process
from pullback.runtime import cuda
from pullback.runtime.launcher import Plan
from pullback.runtime.replays import Replays

LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3)


class Memory:
    def __init__(self, size):
        self.size, self.room = size, np.zeros(size + 8, np.uint8)
        self.ptr = self.room.ctypes.data


class Array:
    """An array of the device: its memory is the host's."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.host = shape, dtype, np.zeros(shape, dtype)
        self.data = SimpleNamespace(ptr=self.host.ctypes.data, mem=object(), copy_from_device_async=lambda *args: None)
        self.nbytes = self.host.nbytes

    def __matmul__(self, other):
        return self


class Event:
    clock = 0

    def record(self, stream=None):
        Event.clock += 1
        self.at = Event.clock

    def synchronize(self):
        pass


class Stream:
    def __init__(self, ptr=0):
        self.ptr, self.log = ptr, []

    def begin_capture(self, mode):
        self.log.append(("begin", mode))

    def end_capture(self):
        self.log.append("end")
        return Graph()


class Graph:
    def __init__(self):
        self.launched = []

    def launch(self, stream):
        self.launched.append(stream.ptr)


class Device(contextlib.nullcontext):
    compute_capability = "90"

    def __init__(self, index):
        super().__init__()


def fake_cupy():
    current = Stream(11)
    owner = SimpleNamespace(
        Device=Device, device=SimpleNamespace(get_cublas_handle=lambda: 5), alloc=Memory, Event=Event,
        PinnedMemory=lambda size, flags: Memory(size), Stream=lambda non_blocking: Stream(22),
        get_current_stream=lambda: current, memory=SimpleNamespace(Memory=Memory), get_elapsed_time=lambda a, b: (b.at - a.at) * 2.0,
        runtime=SimpleNamespace(hostAllocMapped=2, hostAllocPortable=1, streamCaptureModeRelaxed=2),
    )  # fmt: skip
    make = lambda shape, dtype=np.float32: Array(shape, np.dtype(dtype))
    tricks = SimpleNamespace(as_strided=np.lib.stride_tricks.as_strided)
    return SimpleNamespace(
        cuda=owner, lib=SimpleNamespace(stride_tricks=tricks), ndarray=make, ones=make, empty_like=lambda a: make(a.shape, a.dtype)
    )  # fmt: skip


@pytest.fixture
def device(monkeypatch):
    """A machine; `launched` has (function, grid, stream) of its launches, of which those of function 13 fail."""
    launched = []

    def launch(function, grid, gy, gz, block, by, bz, shared, stream, arguments, extra):
        launched.append((function, grid, stream))
        return 700 if function == 13 else 0

    kept = LAUNCH(launch)
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    monkeypatch.setattr(cuda, "_addresses", lambda: [ctypes.cast(kept, ctypes.c_void_p).value, 0, 0, 0, 0])
    monkeypatch.setattr(cuda, "device_checks", [])
    monkeypatch.setattr(cuda, "device_count", lambda: 1)
    monkeypatch.setattr(cuda, "_launch", lambda: kept)
    result = cuda.Machine(0)
    result.launched, result.fake = launched, kept
    return result


def program(*functions, arena=0):
    entries = [[0, k, 10 + k, 32, 1, 0] for k in range(len(functions))]
    return cuda.Program(Plan(entries, 1, 0, [0] if arena else [], arena), list(functions), None)


def run(device, wanted, address=4096):
    device.run(wanted, [address], False)


def test_a_plan_is_launched_in_order(device):
    run(device, program(7, 8, arena=64))
    assert device.launched == [(7, 10, 11), (8, 11, 11)] and device.architecture == "sm_90"


def test_errors_say_which_step_it_was(device):
    with pytest.raises(RuntimeError, match="step 1 of a compiled graph gave 700"):
        run(device, program(7, 13))
    with pytest.raises(RuntimeError, match="the launch of a kernel gave 700"):
        device.start(SimpleNamespace(ptr=13), 1, 32, b"12345678")
    device.start(SimpleNamespace(ptr=9), 3, 32, b"12345678")
    assert device.launched[-1] == (9, 3, 11)


def test_an_index_out_of_bounds_is_raised_once(device):
    device.flag[0] = 1
    with pytest.raises(RuntimeError, match="device-side assert triggered"):
        run(device, program(7))
    run(device, program(7))
    assert len(device.launched) == 1 and cuda.device_checks == [device.check]


def test_what_comes_again_is_a_graph(device, monkeypatch):
    wanted = program(7)
    wanted.replays = Replays()
    for _ in range(3):
        run(device, wanted)
    (graph,) = wanted.replays.graphs.values()
    assert [stream for _, _, stream in device.launched] == [11, 22]  # at once, and while it is captured
    assert graph.launched == [11, 11] and device.side.log == [("begin", 2), "end"]
    assert list(device.workspaces) == [11]  # of the stream that it runs on
    run(device, wanted, 8192)
    assert len(device.launched) == 3  # another address: no graph yet
    monkeypatch.setattr(process, "cuda_captures", 1)
    run(device, wanted)
    assert len(device.launched) == 4 and graph.launched == [11, 11]
    device.replay(graph)
    assert graph.launched[-1] == 11


def test_a_capture_that_fails_ends_and_says_why(device):
    wanted = program(13)
    wanted.replays = Replays()
    for _ in range(2):
        with pytest.raises(RuntimeError):
            run(device, wanted)
    assert "gave 700" in wanted.replays.reason and device.side.log[-1] == "end"


def test_memory_of_convolutions_grows_and_the_old_is_kept(device):
    needs = SimpleNamespace(workspace=100, current=lambda: None, told=lambda index, place: ctypes.c_long(place))
    wanted = program(7)
    assert device.convolving(wanted, 11) is None
    wanted.convolutions = needs
    first = device.convolving(wanted, 11).value
    assert device.convolving(wanted, 11).value == first and device.convolving(wanted, 12).value != first
    needs.workspace = 1000
    assert device.convolving(wanted, 11).value != first and device.outgrown[-1].ptr == first


def test_results_that_nobody_has_are_used_again(device):
    kept: list = []
    first = device.blank_again(kept, (4,), np.dtype(np.float32))
    second = device.blank_again(kept, (4,), np.dtype(np.float32))
    assert second is not first and len(kept) == 2
    place = id(first)
    del first
    assert id(device.blank_again(kept, (4,), np.dtype(np.float32))) == place
    assert device.blank((2,), np.dtype(np.int64)).shape == (2,)
    assert [a.shape for a in device.blanks([((2, 3), np.dtype(np.float32))])] == [(2, 3)]


def test_copies_keep_their_strides(device):
    array = np.arange(24.0).reshape(4, 6)[:, ::2]
    copied = device.aligned(array)
    assert copied.shape == (23,) and copied[0] == 0 and copied[-1] == 22


def test_steps_are_timed_one_by_one(device):
    device.flag[0] = 0
    assert device.timed(program(7, 8), [4096], 2) == [0.002, 0.002] and len(device.launched) == 4
    assert device.limits == {"bytes a second": 2 * (4 << 26) / 0.002, "operations a second": 2 * 4096**3 / 0.002}


def test_sources_are_loaded_in_parts(device, monkeypatch):
    texts, found = [], SimpleNamespace(get_function=lambda name: SimpleNamespace(ptr=int(name[6:]) + 100))
    monkeypatch.setattr(
        cuda, "cubin", lambda text, architecture, flags=(): texts.append((text, architecture, flags)) or b"code"
    )
    monkeypatch.setattr(device, "loaded", lambda code: found)
    names = [f"kernel{k}" for k in range(cuda.TOGETHER + 2)]
    source = SimpleNamespace(
        prelude="head", names=names, functions=[f"text {n}" for n in names], plan=Plan([], 0, 0, [], 0)
    )
    loaded = device.load(source, ("--fmad=false",))
    assert list(loaded.functions) == [100 + k for k in range(len(names))]
    assert sorted(t[0].count("text") for t in texts) == [2, cuda.TOGETHER] and texts[0][1:] == (
        "sm_90",
        ("--fmad=false",),
    )
    assert device.together("text", ("kernel1", "kernel2"))[0] == [101, 102]
    assert device.kernel("text", "kernel3") is device.kernel("text", "kernel3")
    assert device.stream() == 11 and device.address(Array((1,), np.dtype(np.float32)))


def test_machine_code_is_kept_on_disk(monkeypatch, tmp_path):
    compiled = []
    nvrtc = SimpleNamespace(getVersion=lambda: (13, 1))
    libraries = ModuleType("cupy_backends.cuda.libs")
    libraries.nvrtc = nvrtc
    for name in ("cupy_backends", "cupy_backends.cuda"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs", libraries)
    monkeypatch.setattr(
        cuda, "_compiled", lambda library, text, options: compiled.append((text, options)) or b"machine code"
    )
    text = f"kernel of {tmp_path}"  # of this test alone
    assert cuda.cubin(text, "sm_90") == cuda.cubin(text, "sm_90") == b"machine code" and len(compiled) == 1
    cuda.cubin(text, "sm_80")
    assert [c[1][0] for c in compiled] == ["--gpu-architecture=sm_90", "--gpu-architecture=sm_80"]
