"""What stands between CUDA source and a device, with libraries that note what they are asked."""

import ctypes
from types import SimpleNamespace

import pytest

from pullback.core.cupy_library import loaded_library
from pullback.runtime import build as builds
from pullback.runtime import cuda
from pullback.runtime.build import CompileFailed, NoCompiler


class Compiler:
    """NVRTC, as far as it is called."""

    class NVRTCError(RuntimeError):
        pass

    def __init__(self, fails: bool):
        self.fails, self.calls = fails, []

    def createProgram(self, text, name, headers, includes):
        self.calls.append("create")
        return text

    def compileProgram(self, program, options):
        self.calls.append(options)
        if self.fails:
            raise self.NVRTCError("NVRTC_ERROR_COMPILATION")

    def getProgramLog(self, program):
        return "line 1: expected a ;"

    def getCUBIN(self, program):
        return program.encode()

    def destroyProgram(self, program):
        self.calls.append("destroy")


def test_a_program_is_compiled_and_destroyed():
    compiler = Compiler(fails=False)
    assert cuda._compiled(compiler, "text", ("-a",)) == b"text"
    assert compiler.calls == ["create", ("-a",), "destroy"]


def test_the_log_of_a_refused_program_is_shown():
    compiler = Compiler(fails=True)
    with pytest.raises(CompileFailed, match="expected a ;"):
        cuda._compiled(compiler, "text", ())
    assert compiler.calls[-1] == "destroy"


def test_the_flag_that_host_and_device_share_is_zero():
    memory = ctypes.create_string_buffer(b"\xff" * 8)
    runtime = SimpleNamespace(hostAllocMapped=2, hostAllocPortable=1)
    asked = []

    def pinned(size, flags):
        asked.append((size, flags))
        return SimpleNamespace(ptr=ctypes.addressof(memory))

    owner, view = cuda._shared_flag(SimpleNamespace(cuda=SimpleNamespace(PinnedMemory=pinned, runtime=runtime)))
    assert asked == [(4, 3)] and view[0] == 0 and owner.ptr == ctypes.addressof(memory)


def test_a_library_that_is_not_loaded_is_named(monkeypatch):
    with pytest.raises(OSError, match="libnothing.so is not loaded"):
        loaded_library("libnothing.so")
    assert loaded_library("libc.so").endswith(("libc.so.6", ".so"))

    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(cuda.ctypes, "CDLL", missing)
    with pytest.raises(NoCompiler, match="driver or cuBLAS cannot be called: libcuda.so.1"):
        cuda._addresses()


def test_where_a_compiler_is_looked_for(monkeypatch):
    assert builds._find.__wrapped__("cc -O1") == ("cc", "-O1")
    with pytest.raises(NoCompiler, match="CC is 'no-such-program'"):
        builds._find.__wrapped__("no-such-program")
    monkeypatch.setattr(builds.shutil, "which", lambda name: None)
    monkeypatch.setattr(builds.importlib.util, "find_spec", lambda name: object())
    assert builds._find.__wrapped__(None)[1:] == ("-m", "ziglang", "cc")
    monkeypatch.setattr(builds.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NoCompiler, match="no C compiler was found"):
        builds._find.__wrapped__(None)


def test_a_compiler_that_cannot_be_run_is_named():
    with pytest.raises(CompileFailed, match="/no/such/cc: "):
        builds.version.__wrapped__(("/no/such/cc",))


def test_without_the_system_s_list_the_machine_names_the_processor(monkeypatch):
    def unreadable(self, **options):
        raise OSError("no /proc")

    monkeypatch.setattr(builds.Path, "read_text", unreadable)
    assert builds.platform.machine() in builds.processor.__wrapped__()
