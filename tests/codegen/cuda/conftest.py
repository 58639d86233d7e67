"""Graphs of CPU tensors, compiled as for a CUDA device and run by an emulator of one."""

from __future__ import annotations

import math
import shutil

import pytest

from pullback.codegen import stages


@pytest.fixture
def emulated(monkeypatch):
    """A function that compiles `f` for the emulated device; what comes out never runs as operators."""
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    from pullback.capture.trace.make_fx import make_fx
    from pullback.codegen import Native
    from pullback.codegen.cuda import segment
    from pullback.ops.network import attention_lowering
    from tests.codegen.cuda.emulator import EmulatedSegment

    def fails(nodes, values):
        pytest.fail("a call did not fit its arguments")

    EmulatedSegment.on_host.flag[:] = 0
    monkeypatch.setattr(stages, "segment_kind", lambda graph: EmulatedSegment)
    monkeypatch.setattr(segment, "run_nodes", fails)
    monkeypatch.setattr(
        attention_lowering, "LONG", math.inf
    )  # a limit of the CPU, on which tensors here are said to be

    def compile(f, *args):
        result = Native(make_fx(f, tracing_mode="fake")(*args))
        assert result.native, result.reasons
        result.build()
        return result

    return compile
