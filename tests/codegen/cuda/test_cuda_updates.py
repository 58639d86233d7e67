"""Adam's kernel for many parameters, on an emulated device."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from pullback.ops.elementwise.updates import adam
from pullback.runtime import updates

NUMBERS = (0.1, 0.99, 0.1, 0.999, 0.001, 0.5, 1e-8, 0.01)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_parameters_of_several_sizes(kind):
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    from tests.codegen.cuda.emulator import EmulatedMachine

    on, numbers = EmulatedMachine(), np.random.default_rng(0)
    sizes = (1, 7, 1024, 3001)
    arrays = [[np.abs(numbers.standard_normal(n + 1)).astype(kind) for _ in range(4)] for n in sizes]
    arrays[1] = [a[1:] for a in arrays[1]]  # at addresses that vectors cannot be read from
    before = [[a.copy() for a in row] for row in arrays]
    seen = [[SimpleNamespace(data=SimpleNamespace(ptr=a.ctypes.data), size=a.size) for a in row] for row in arrays]
    function = on.function(updates.source(np.dtype(kind)), "adam")
    given = updates.arguments_of([tuple(row) for row in seen], 2, np.array(NUMBERS, kind))
    on.start(function, 2 * len(sizes), updates.THREADS, given)
    for (p, mean, square, g), old in zip(arrays, before, strict=True):
        decay, shrink, *rest = [kind(n) for n in NUMBERS]
        slope = old[3] + decay * old[0]  # decay in the gradient does not see the parameter shrunk
        want = adam(np, old[0] * shrink, old[1], old[2], slope, kind(0), kind(1), *rest)
        for got, expected in zip((p, mean, square), want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=2e-6 if kind is np.float32 else 1e-14)
        assert np.array_equal(g, old[3])
