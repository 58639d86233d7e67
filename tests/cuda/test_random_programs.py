"""Random programs, compiled for a CUDA device, give what operators give on the CPU, and so do their gradients."""

from __future__ import annotations

import time

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import compile_graph
from tests.codegen.cuda.random_programs import differs, program, with_gradients

SECONDS = 12  # for each way, however many programs that is


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_programs_are_what_they_were(cuda, compiled, dtype):
    started, seed = time.time(), 0
    while time.time() - started < SECONDS and seed < 300:
        f, args = program(seed, dtype)
        f, there = with_gradients(f), [a.to(cuda) for a in args]
        run = compile_graph(make_fx(f, tracing_mode="fake")(*there)) if compiled else f
        wrong = differs(run(*there), f(*args), f.rounded)
        assert wrong is None, f"seed {seed}: {wrong}"
        seed += 1
