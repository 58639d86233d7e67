"""Recurrent layers by one plan of products and kernels, on an emulated device: what the steps written out give."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from pullback.ops.network import recurrent_steps as steps
from pullback.runtime import recurrent

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")


class WrittenOut(steps.Arrays):
    """Steps by the array library alone."""

    def run(self, *call):
        return None

    def run_back(self, *call):
        return None

    def all_back(self, *call):
        return None


@pytest.fixture(scope="module")
def machine():
    from tests.codegen.cuda.emulator import EmulatedMachine

    return EmulatedMachine()


def close(got, want):
    assert (got is None) == (want is None)
    if want is not None:
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("kind", list(steps.STEPS))
def test_a_direction(machine, kind, biases, reverse):
    random = np.random.default_rng(0).standard_normal
    times, batch, width, size, gates = 3, 5, 7, 37, steps.GATES[kind] * 37
    x, h, c = random((batch, times, width)).transpose(1, 0, 2), random((batch, size)), random((batch, size))
    state = (h, c) if kind == "lstm" else (h,)
    weights = [random((gates, width)), random((gates, size)), *(random(gates) if biases else None for _ in range(2))]
    cell = steps.Cell(*weights)
    written = WrittenOut(np)
    out, final, kept = steps.forward(written, kind, x, state, cell, reverse, keep=True)
    got = recurrent.forward(np, kind, x, state, cell, reverse, machine)
    close(got[0], out)
    close(got[2], kept)
    for g, w in zip(got[1], final, strict=True):
        close(g, w)
    for g_out in (None, random(out.shape)):
        g_state = tuple(random(s.shape) for s in state)
        want = steps.backward(written, kind, g_out, g_state, x, state, cell, reverse, out, kept)
        found = recurrent.backward(np, kind, g_out, g_state, x, state, cell, reverse, out, kept, machine)
        for g, w in zip(found, want, strict=True):
            close(g, w)


def test_other_dtypes_are_left_to_the_array_library(machine):
    x = np.zeros((2, 3, 4), np.float16)
    cell = steps.Cell(np.zeros((5, 4), np.float16), np.zeros((5, 5), np.float16))
    assert recurrent.forward(np, "rnn_tanh", x, (np.zeros((3, 5), np.float16),), cell, False, machine) is None
