"""Sorting of rows on a device: the kernels' text, compiled for the CPU and run by an emulator, against stable sorts of NumPy's."""

from __future__ import annotations

import ctypes
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from pullback.core import cuda_sort


@pytest.fixture
def emulated(monkeypatch):
    """`cuda_sort`, on arrays of NumPy's."""
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    from tests.codegen.cuda.emulator import SHIM, build_host

    pointer, count = ctypes.c_void_p, ctypes.c_uint
    kind = ctypes.CFUNCTYPE(ctypes.c_int, pointer, *[count] * 7, pointer, pointer, pointer)

    def launch(source, block, *runs):
        names = ("counted", "first_pass", "middle_pass", "last_pass")
        kernels = "".join(
            f'static void call_{n}(void **a) {{ call({n}, a); }}\nextern "C" kernel of_{n} = {{call_{n}, 1}};\n'
            for n in names
        )
        headers = "#define __launch_bounds__(...)\n"
        text = SHIM.replace("#define __launch_bounds__(n)\n", headers) + source + kernels
        library = ctypes.CDLL(str(build_host(text)))
        run = kind(ctypes.cast(library.emulated_launch, pointer).value)
        for name, grid, argument in runs:
            function = ctypes.addressof(ctypes.c_char.in_dll(library, f"of_{name}"))
            run(function, grid, 1, 1, block, 1, 1, 0, None, ctypes.cast((ctypes.c_char_p * 1)(argument), pointer), None)

    device = SimpleNamespace(ndarray=lambda shape, dtype: np.full(shape, 77, dtype))
    monkeypatch.setitem(sys.modules, "cupy", device)
    monkeypatch.setattr(cuda_sort, "launch", launch)
    monkeypatch.setattr(cuda_sort, "address", lambda a: a.ctypes.data)
    monkeypatch.setattr(cuda_sort, "clear", lambda a, count: a[:count].fill(0))
    return cuda_sort.sorted_rows


def rows_of(dtype, rows, n, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        x = rng.standard_normal((rows, n)).astype(dtype)
        x[:, ::7] = rng.choice(np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.5], dtype), x[:, ::7].shape)
        return x
    if np.dtype(dtype).kind == "b":
        return rng.integers(0, 2, (rows, n)).astype(bool)
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, (rows, n), dtype, endpoint=True)
    x[:, ::5] = rng.choice(np.array([info.min, -1 if info.min else 1, 0, info.max], dtype), x[:, ::5].shape)
    return x


def expected(x, descending):
    """Places in stable order: NaN largest, zeros equal."""
    if x.dtype.kind == "f":
        rank = np.where(np.isnan(x), np.inf, x.astype(np.float64))
        keys = (rank, np.isnan(x))
    else:
        keys = (x.astype(np.float64) if x.dtype.kind == "b" else x.astype(object), np.zeros(x.shape, bool))
    order = np.empty(x.shape, np.int64)
    for r in range(x.shape[0]):
        triples = list(zip(keys[1][r].tolist(), keys[0][r].tolist(), strict=True))
        order[r] = sorted(range(x.shape[1]), key=triples.__getitem__, reverse=False)
        if descending:  # stable the other way round, too
            order[r] = (x.shape[1] - 1 - np.array(sorted(range(x.shape[1]), key=triples[::-1].__getitem__)))[::-1]
    return order


def check(run, x, descending):
    values, places = run(x, descending, True)
    want = expected(x, descending)
    assert places.dtype == np.int64 and np.array_equal(places, want)
    bits = f"u{x.dtype.itemsize}"
    assert values.dtype == x.dtype
    assert np.array_equal(values.view(bits), np.take_along_axis(x, want, -1).view(bits))  # NaN and zeros as they were
    alone = run(x, descending, False)
    assert alone[0] is None and np.array_equal(alone[1], want)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"])
def test_rows_of_every_dtype(emulated, dtype, descending):
    check(emulated, rows_of(dtype, 2, 5000), descending)


@pytest.mark.parametrize("n", [1024, 4095, 4096, 4097, 8192])
def test_rows_that_fill_tiles_and_do_not(emulated, n):
    check(emulated, rows_of("float32", 3, n, n), False)


def test_equal_elements_keep_their_order(emulated):
    x = np.zeros((1, 9000), np.float32)
    assert np.array_equal(emulated(x, True, False)[1][0], np.arange(9000))
    x = np.random.default_rng(1).integers(0, 3, (1, 9000)).astype(np.int32)
    check(emulated, x, True)


def test_what_has_no_kernel(emulated):
    assert emulated(np.zeros((3, 100), np.float32), False, True) is None  # CuPy sorts short rows
    assert emulated(np.zeros((2000, 2), np.float32).T, False, True) is None
    assert emulated(np.zeros((1, 2000), np.complex64), False, True) is None
