"""The kernels in C against NumPy: any size, threads, forks, and their absence."""

import os
import subprocess
import sys

import numpy as np
import pytest

from pullback.core import native
from pullback.core.threads import set_thread_count, thread_count

pytestmark = pytest.mark.skipif(not native.available, reason="the extension is not built")


@pytest.fixture
def two_threads():
    before = thread_count()
    set_thread_count(2)
    yield
    set_thread_count(before)


def random(*shape, dtype=np.float64):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (3, 1, 5), (2, 31, 1), (2, 33, 3), (1, 5000, 300), (700, 300, 1), (5, 40, 700)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reductions_and_scans(shape, dtype, two_threads):
    a = random(*shape, dtype=dtype)
    tolerance = 1e-3 if dtype is np.float32 else 1e-9
    np.testing.assert_allclose(native.reduce(native.SUM, a, (1,), False), a.sum(1, dtype=np.float64), atol=tolerance)
    np.testing.assert_array_equal(native.reduce(native.MAX, a, (1,), True), a.max(1, keepdims=True))
    np.testing.assert_array_equal(native.reduce(native.MIN, a, (0, 1, 2), False), a.min())
    np.testing.assert_allclose(native.cumsum(a, 1), a.cumsum(1, dtype=np.float64), atol=tolerance)
    mean, variance = native.moments(a, (0, 2))
    np.testing.assert_allclose(mean, a.mean((0, 2), keepdims=True, dtype=np.float64), atol=tolerance)
    np.testing.assert_allclose(variance, a.var((0, 2), keepdims=True, dtype=np.float64), atol=tolerance)


def test_softmax_over_the_whole_range_of_exp():
    x = np.linspace(-120, 0, 100_001).astype(np.float32)
    pairs = np.stack([x, np.zeros_like(x)], 1)
    want = np.exp(x.astype(np.float64)) / (1 + np.exp(x.astype(np.float64)))
    np.testing.assert_allclose(native.softmax(pairs, 1)[:, 0], want, rtol=3e-7, atol=3e-45)
    x = np.linspace(-760, 0, 100_001)
    pairs = np.stack([x, np.zeros_like(x)], 1)
    np.testing.assert_allclose(native.softmax(pairs, 1)[:, 0], np.exp(x) / (1 + np.exp(x)), rtol=1e-15, atol=1e-322)


@pytest.mark.parametrize("logarithm", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 5), (2, 31, 1), (2, 33, 3), (1, 2000, 300), (9, 40, 70)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_of_softmax_along_any_axis(shape, dtype, logarithm, two_threads):
    for axis in range(3):
        g, y = random(*shape, dtype=dtype), native.softmax(random(*shape, dtype=dtype) * 3, axis, logarithm)
        wide, share = g.astype(np.float64), np.exp(y.astype(np.float64)) if logarithm else y.astype(np.float64)
        expected = share * (wide - (wide * share).sum(axis, keepdims=True))
        if logarithm:
            expected = wide - share * wide.sum(axis, keepdims=True)
        found = native.softmax_backward(g, y, axis, logarithm)
        np.testing.assert_allclose(found, expected, atol=2e-5 if dtype is np.float32 else 1e-12)


def test_results_do_not_depend_on_threads(two_threads):
    a = random(3000, 200, dtype=np.float32)
    several = native.reduce(native.SUM, a, (0, 1), False), native.softmax(a, 1), native.moments(a, (0,))
    set_thread_count(1)
    single = native.reduce(native.SUM, a, (0, 1), False), native.softmax(a, 1), native.moments(a, (0,))
    for x, y in zip(several, single, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "n"), [(1, 7), (63, 300), (64, 256), (65, 257), (1000, 33), (700, 600)])
def test_sums_over_rows_of_layer_norm_are_whole_with_any_number_of_threads(rows, n, dtype, two_threads):
    g, x, mean, rstd = (random(*shape, dtype=dtype) for shape in ((rows, n), (rows, n), (rows,), (rows,)))
    found = []
    for threads in (1, 2):
        weight, bias = np.empty(n, dtype), np.empty(n, dtype)
        assert native._native.layer_norm_backward(g, x, None, mean, rstd, None, weight, bias, threads)
        found.append((weight.tobytes(), bias.tobytes()))
    assert found[0] == found[1]
    wanted = (g.astype("d") * ((x.astype("d") - mean[:, None]) * rstd[:, None])).sum(0)
    close = dict(rtol=1e-5, atol=1e-3) if dtype is np.float32 else dict(rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(weight, wanted, **close)
    np.testing.assert_allclose(bias, g.astype("d").sum(0), **close)


def test_what_does_not_apply():
    a = random(4, 6)
    assert native.softmax(a.T, 0) is None and native.softmax(a.astype(np.int64), 0) is None
    assert native.reduce(native.SUM, np.zeros((2, 3, 4)), (0, 2), False) is None
    assert native.reduce(native.SUM, np.zeros((0, 3)), (0,), False) is None


def test_a_forked_child_has_threads_of_its_own(two_threads):
    a = random(1000, 1000, dtype=np.float32)
    want = native.reduce(native.SUM, a, (0, 1), False)
    pid = os.fork()
    if not pid:
        os._exit(int(native.reduce(native.SUM, a, (0, 1), False) != want))
    assert os.waitpid(pid, 0)[1] == 0


def test_it_can_be_turned_off():
    code = "from pullback.core import native; import pullback as t; print(native.available, t.ones(3).softmax(0).sum().item())"
    ran = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PULLBACK_NATIVE": "0"}, capture_output=True, text=True
    )
    assert ran.stdout.split() == ["False", "1.0"], ran.stderr
