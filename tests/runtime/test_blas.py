"""The BLAS that NumPy brings is found, and products are right with it and with the loops that stand in for it."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import compile_graph
from pullback.runtime import blas, build

try:
    build.compiler()
except build.NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


def products(x, y, z):
    return (
        x @ y,
        y.t() @ x.t(),
        torch.bmm(z, z.transpose(1, 2)),
        torch.addmm(x[0, 0], x, y, beta=2, alpha=0.5),
        x[:, ::2] @ y[::2],
    )


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products(own, dtype):
    torch.manual_seed(0)
    args = [torch.randn(5, 6, dtype=dtype), torch.randn(6, 7, dtype=dtype), torch.randn(3, 4, 5, dtype=dtype)]
    result = compile_graph(make_fx(products, tracing_mode="fake")(*args))
    assert result.native, result.fallbacks
    if own:
        handle = result.segments[0].library.handle
        handle.setup(None, None, None, 0, None, None, None, None)
    for got, want in zip(result(*args), products(*args), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)


def test_found_addresses_are_functions():
    found = blas.find()
    if not found.single:
        pytest.skip("no BLAS with C names")
    integer = ctypes.c_int64 if found.wide else ctypes.c_int
    kinds = [ctypes.c_int] * 3 + [integer] * 3 + [ctypes.c_float, ctypes.c_void_p, integer, ctypes.c_void_p, integer]
    sgemm = ctypes.CFUNCTYPE(None, *kinds, ctypes.c_float, ctypes.c_void_p, integer)(found.single)
    a, b, c = np.ones((2, 3), np.float32), np.full((3, 2), 2, np.float32), np.zeros((2, 2), np.float32)
    sgemm(101, 111, 111, 2, 2, 3, 1.0, a.ctypes.data, 3, b.ctypes.data, 2, 0.0, c.ctypes.data, 2)
    assert (c == 6).all()
