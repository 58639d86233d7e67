"""Edges of what runs compiled code: kernels on a device by libraries that note what they are asked, folders and compilers that fail."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from types import SimpleNamespace

import numpy as np
import pytest

from pullback.runtime import blas, build, cache, cuda


class Module:
    """Machine code that was loaded: its functions have the address of their place in it."""

    def __init__(self, code: bytes):
        self.code = code

    def get_function(self, name: str):
        return SimpleNamespace(ptr=100 * len(self.code) + int(name), name=name)


@pytest.fixture
def machine(monkeypatch):
    """A device whose libraries are stand-ins, and whose arrays are NumPy's."""
    compiled = []
    monkeypatch.setattr(cuda, "cubin", lambda text, *rest: compiled.append((text, *rest)) or text.encode())
    monkeypatch.setattr(cuda, "device_count", lambda: 1)
    result = object.__new__(cuda.Machine)
    device = lambda index: contextlib.nullcontext()
    stream = SimpleNamespace(ptr=7)
    result.cupy = SimpleNamespace(
        cuda=SimpleNamespace(Device=device, get_current_stream=lambda: stream), ndarray=np.ndarray
    )
    result.index, result.architecture, result.kernels, result.compiled = 0, "sm_90", {}, compiled
    result.flag, result.as_strided = np.zeros(1, np.int32), np.lib.stride_tricks.as_strided
    result.api, result.loaded = ctypes.c_int(5), Module
    return result


def test_kernels_are_compiled_once(machine):
    first = machine.kernel("text", "3")
    assert machine.kernel("text", "3") is first and first.ptr == 403 and machine.compiled == [("text", "sm_90")]
    addresses, api, _ = machine.together("two", ("1", "2"))
    assert addresses == [301, 302] and api is machine.api and machine.stream() == 7


def test_programs_have_the_functions_of_all_parts(machine, monkeypatch):
    monkeypatch.setattr(cuda, "_parts", lambda source: [("a", ["1", "2"]), ("bb", ["3"])])
    plan = SimpleNamespace(convolutions=None, cuts=())
    program = machine.load(SimpleNamespace(plan=plan), ("-O3",))
    assert list(program.functions) == [101, 102, 203] and program.plan is plan and program.replays is None
    assert sorted(machine.compiled) == [("a", "sm_90", ("-O3",)), ("bb", "sm_90", ("-O3",))]


def test_launches(machine, monkeypatch):
    asked, status = [], [0]
    monkeypatch.setattr(cuda, "_launch", lambda: lambda *args: asked.append(args) or status[0])
    function = SimpleNamespace(ptr=11)
    machine.start(function, 4, 128, b"arguments")
    assert asked[0][:9] == (11, 4, 1, 1, 128, 1, 1, 0, 7) and asked[0][9][0] == b"arguments"
    status[0] = 700
    with pytest.raises(RuntimeError, match="the launch of a kernel gave 700"):
        machine.start(function, 4, 128, b"arguments")


def test_a_step_that_fails_is_named(machine, monkeypatch):
    monkeypatch.setattr(cuda, "launcher", lambda: lambda *args: 300007)
    plan = SimpleNamespace(uses_products=False, numbers=np.zeros(1), entries=[1, 2, 3], convolutions=None)
    program = SimpleNamespace(plan=plan, functions=None, convolutions=None)
    with pytest.raises(RuntimeError, match="step 2 of a compiled graph gave 7"):
        machine.launch(program, np.zeros(1), 7, False)


def test_indices_out_of_bounds_are_told_once(machine):
    machine.flag[0] = 1
    with pytest.raises(RuntimeError, match="out of bounds"):
        machine.check()
    machine.check()


def test_arrays(machine):
    a, b = machine.blanks([((2, 3), np.dtype(np.float32)), ((), np.dtype(np.int64))])
    assert a.shape == (2, 3) and a.dtype == np.float32 and b.shape == () and b.dtype == np.int64
    assert machine.blank((4,), np.dtype(np.int8)).shape == (4,)
    window = np.arange(12).reshape(3, 4)[:, 1:3]
    assert machine.aligned(window).tolist() == list(range(1, 11))  # all that it reaches over, in one piece


# ---- folders and compilers
@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_a_folder_that_cannot_be_bounded_is_used(folder, monkeypatch):
    def fail(*args):
        raise OSError("somebody else is at it")

    monkeypatch.setattr(cache, "bound", fail)
    monkeypatch.setattr(cache, "_builds", 0)
    assert cache.cached("key", lambda scratch, target: target.write_text("x") and None).read_text() == "x"


def test_machines_without_owners_of_files(folder, monkeypatch):
    monkeypatch.delattr(os, "getuid")
    assert cache.is_private(folder)


def test_compilers_that_cannot_run(folder, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(build, "compiler", lambda: ("cc",))
    monkeypatch.setattr(build, "version", lambda command: "gcc 12")
    monkeypatch.setattr(build.subprocess, "run", fail)
    with pytest.raises(build.CompileFailed, match="cc: .*Permission denied"):
        build.build("int one(void) { return 1; }")


def test_a_full_disk_is_said(folder, monkeypatch):
    full = SimpleNamespace(returncode=1, stderr="cc1: fatal error: x.o: No space left on device", stdout="")
    monkeypatch.setattr(build, "compiler", lambda: ("cc",))
    monkeypatch.setattr(build, "version", lambda command: "gcc 12")
    monkeypatch.setattr(build.subprocess, "run", lambda *args, **kwargs: full)
    with pytest.warns(RuntimeWarning, match="nothing can be kept in the cache folder"):
        with pytest.raises(build.CompileFailed, match="No space left on device"):
            build.build("int two(void) { return 2; }")


def test_libraries_without_blas(monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(blas, "_candidates", lambda: ["no such library.so"])
        patched.setattr(blas, "extension", lambda name: None)
        assert blas.find.__wrapped__() == blas.Blas()
