"""A compiler is found, its errors are shown, and where there is none graphs still run, with one warning."""

from __future__ import annotations

import ctypes
import warnings

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import Native, compile_graph, program
from pullback.runtime import build

try:
    build.compiler()
except build.NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


def test_builds_and_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path))
    path = build.build("long twice(long x) { return 2 * x; }")
    assert ctypes.CDLL(str(path)).twice(21) == 42
    assert build.build("long twice(long x) { return 2 * x; }") == path


def test_an_error_of_the_compiler_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path))
    with pytest.raises(build.CompileFailed, match="undeclared"):
        build.build("int f(void) { return nothing; }")


def test_an_empty_name_is_no_compiler(monkeypatch):
    monkeypatch.setenv("CC", "")
    with pytest.raises(build.NoCompiler, match="CC is ''"):
        build.compiler()


def test_a_library_that_cannot_be_written_is_no_end(monkeypatch, tmp_path):
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path))  # where nobody has built it before

    def full(key, make):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(build, "cached", full)
    monkeypatch.setattr(program, "readable", lambda: True)
    x = torch.randn(3)
    graph = make_fx(lambda x: x.sin() + 1, tracing_mode="fake")(x)
    with pytest.warns(RuntimeWarning, match="operator by operator.*cannot be written: .*No space left"):
        result = compile_graph(graph)
    torch.testing.assert_close(result(x), x.sin() + 1)


def test_a_compiler_that_is_not_there(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(build.NoCompiler, match="no-such-compiler.*pip install ziglang"):
        build.compiler()


def test_without_a_compiler_graphs_run_with_one_warning(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr(program, "_warned", False)
    monkeypatch.setattr(program, "readable", lambda: True)
    x = torch.randn(3)
    graph = make_fx(lambda x: x.sin() + 1, tracing_mode="fake")(x)
    with pytest.warns(RuntimeWarning, match="operator by operator.*no C compiler"):
        result = compile_graph(graph)
    assert not isinstance(result, Native)
    torch.testing.assert_close(result(x), x.sin() + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_graph(graph)


def test_compilers_work_while_other_graphs_are_lowered(tmp_path, monkeypatch):
    """What is compiled inside `together` is begun at once and finished when it is over."""
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path))
    seen: list[str] = []
    begin, load = program.Native.begin, program.Native.build
    monkeypatch.setattr(program.Native, "begin", lambda self: seen.append("begun") or begin(self))
    monkeypatch.setattr(program.Native, "build", lambda self: seen.append("built") or load(self))
    x = torch.arange(6.0)
    with build.together():
        made = [compile_graph(make_fx(f)(x)) for f in (lambda x: x.exp() * 3, lambda x: x.sin() - 1)]
        assert seen == ["begun"] * 2
    assert seen == ["begun"] * 2 + ["built"] * 2
    assert torch.allclose(made[0](x), x.exp() * 3) and torch.allclose(made[1](x), x.sin() - 1)


def test_a_compiler_that_fails_later_leaves_operators(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path))
    monkeypatch.setattr(build, "COMMON", ("--no-such-flag",))
    x = torch.arange(6.0)
    with pytest.warns(RuntimeWarning, match="(?s)a graph runs operator by operator.*no-such-flag"):
        with build.together():
            made = compile_graph(make_fx(lambda x: x.exp() * 3)(x))
    assert not made.native and torch.equal(made(x), x.exp() * 3) and torch.equal(made.consume([x]), x.exp() * 3)
    assert made.recording(lambda *args: None) is None


def test_nothing_is_finished_after_an_error(tmp_path):
    seen: list[int] = []
    with pytest.raises(ZeroDivisionError), build.together():
        build.afterwards(lambda: seen.append(1))
        1 / 0
    build.afterwards(lambda: seen.append(2))
    assert seen == [2]


def test_equal_texts_are_built_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path))
    run, runs = build.subprocess.run, []
    monkeypatch.setattr(
        build.subprocess, "run", lambda command, **options: runs.append(command) or run(command, **options)
    )
    text = "long thrice(long x) { return 3 * x; }"
    build.version(build.compiler())
    del runs[:]
    waiting = [build.begin(text) for _ in range(4)]
    assert len({wait() for wait in waiting}) == 1 and len(runs) == 1 and not build._under_way
    assert ctypes.CDLL(str(build.begin(text)())).thrice(5) == 15 and len(runs) == 1


def test_a_compiler_is_asked_once_for_its_version(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path))
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\necho first\n")
    program.chmod(0o700)
    assert build.version((str(program),)) == "first\n"
    build.version.cache_clear()  # another process
    with monkeypatch.context() as quiet:
        quiet.setattr(build.subprocess, "run", lambda *args, **kwargs: 1 / 0)
        assert build.version((str(program),)) == "first\n"
    build.version.cache_clear()
    program.write_text("#!/bin/sh\necho second of them\n")
    assert build.version((str(program),)) == "second of them\n"
    build.version.cache_clear()
