"""Products of arrays on a device: what cuBLAS is told, with the emulator's product in its place."""

from __future__ import annotations

import ctypes
import shutil

import numpy as np
import pytest

from pullback.core import cuda_products
from pullback.core.dtype import bfloat16


@pytest.fixture
def multiply(monkeypatch):
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    from tests.codegen.cuda.emulator import SHIM, build_host

    function = ctypes.CDLL(str(build_host(SHIM))).emulated_gemm
    function.argtypes = cuda_products.arguments()
    monkeypatch.setattr(cuda_products, "gemm", lambda: function)
    monkeypatch.setattr(cuda_products, "handle", lambda: 0)
    monkeypatch.setattr(cuda_products, "address", lambda a: a.ctypes.data)
    return cuda_products.multiply


def random(*shape, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def operands(dtype):
    a, b = random(5, 7, dtype=dtype), random(7, 4, dtype=dtype)
    batch, other = random(2, 3, 5, 7, dtype=dtype), random(2, 3, 7, 4, dtype=dtype)
    yield a, b
    yield random(7, 5, dtype=dtype).T, b
    yield a, random(4, 7, dtype=dtype).T
    yield random(7, 5, dtype=dtype).T, random(4, 7, dtype=dtype).T
    yield random(9, 14, dtype=dtype)[2:7, 3:10], b  # rows further apart than they are long
    yield a[:1], b[:, :1]
    yield random(5, 1, dtype=dtype), random(1, 4, dtype=dtype)
    yield batch, other
    yield batch[0], other[0].transpose(0, 2, 1).copy().transpose(0, 2, 1)
    yield batch, b
    yield a, other[1]
    yield batch[:, 1], other[:, 2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, bfloat16.numpy])
def test_layouts(multiply, dtype):
    for a, b in operands(dtype):
        want = np.matmul(a.astype(np.float64), b.astype(np.float64))
        tolerance = 2e-2 if np.dtype(dtype).itemsize == 2 else 1e-5
        for wide in (False, True):
            got = multiply(a, b, wide)
            assert got.dtype == (np.float32 if wide and np.dtype(dtype).itemsize == 2 else dtype)
            assert got.shape == want.shape
            np.testing.assert_allclose(got.astype(np.float64), want, rtol=tolerance, atol=tolerance)


def test_what_one_call_does_not_do(multiply):
    assert multiply(random(4, 4), random(4, 4, dtype=np.float64)) is None
    assert multiply(random(4), random(4, 4)) is None
    assert multiply(random(0, 4), random(4, 4)) is None
    assert multiply(random(8, 8)[::2, ::2], random(4, 4)) is None
    assert multiply(random(3, 2, 4, 4).transpose(1, 0, 2, 3), random(2, 3, 4, 4)) is None  # at two distances
    assert multiply(random(2, 3, 4, 4), random(3, 4, 4)) is None
    assert multiply(random(2, 4, 4), random(3, 4, 4)) is None
    assert multiply(np.broadcast_to(random(1, 4), (4, 4)), random(4, 4)) is None
    assert multiply(random(4, 5), random(4, 5)) is None
