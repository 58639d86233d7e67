"""Products of matrices in C: the array library's values for any sizes and steps, and the same bits however they are cut."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as torch
from pullback.core.threads import set_thread_count, thread_count
from pullback.runtime import products

pytestmark = pytest.mark.skipif(not products.available, reason="the extension is not built")
LEVELS = ("any machine's", "AVX2", "AVX-512")


@pytest.fixture
def own():
    """Everything by the template."""
    before = products._products.prefer(2)
    yield products._products
    products._products.prefer(before)


@pytest.fixture(params=range(3), ids=LEVELS)
def level(request, own):
    """The template for one set of instructions."""
    before = own.instructions(request.param)
    if own.instructions(-1) != request.param:
        pytest.skip("this machine has no such instructions")
    yield request.param
    own.instructions(before)


def exact(a, b):
    return (a.astype(np.longdouble) @ b.astype(np.longdouble)).astype(a.dtype)


def close(got, want, a, b):
    """Within the bound of a sum in any order."""
    eps = np.finfo(got.dtype).eps
    bound = (a.shape[-1] + 4) * eps * (np.abs(a.astype(float)) @ np.abs(b.astype(float)))
    assert got.shape == want.shape and got.dtype == want.dtype
    assert (np.abs(got.astype(float) - want.astype(float)) <= bound + 1e-30).all()


def laid_out(rng, rows, columns, how, dtype):
    """A matrix in some order of memory."""
    if how == "rows":
        return rng.standard_normal((rows, columns)).astype(dtype)
    if how == "columns":
        return rng.standard_normal((columns, rows)).astype(dtype).T
    if how == "backwards":
        return rng.standard_normal((rows, columns)).astype(dtype)[::-1, ::-1]
    if how == "apart":
        return rng.standard_normal((2 * rows, 3 * columns)).astype(dtype)[::2, ::3]
    if how == "repeated":
        return np.broadcast_to(rng.standard_normal((1, columns)).astype(dtype), (rows, columns))
    return rng.standard_normal((rows, columns + 5)).astype(dtype)[:, 2 : 2 + columns]


LAYOUTS = ("rows", "columns", "backwards", "apart", "repeated", "window")
EDGES = (1, 2, 5, 6, 7, 8, 12, 13, 15, 16, 17, 24, 25, 31, 32, 33, 48, 63, 64, 65, 79, 80, 81, 130)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_sizes_and_steps(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    sizes = st.sampled_from((0, *EDGES)) | st.integers(0, 300)
    m, n, k = (data.draw(sizes) for _ in range(3))
    dtype = data.draw(st.sampled_from((np.float32, np.float64)))
    a = laid_out(rng, m, k, data.draw(st.sampled_from(LAYOUTS)), dtype)
    b = laid_out(rng, k, n, data.draw(st.sampled_from(LAYOUTS)), dtype)
    bias = rng.standard_normal(n).astype(dtype) if data.draw(st.booleans()) else None
    own = products._products
    before, level = own.prefer(2), own.instructions(data.draw(st.integers(0, 2)))
    try:
        got = products.multiply(a, b, bias)
    finally:
        own.prefer(before)
        own.instructions(level)
    assert got.flags.c_contiguous and got.flags.owndata
    if bias is None:
        close(got, exact(a, b), a, b)
    else:
        wide = np.concatenate([a, np.ones((m, 1), dtype)], 1), np.concatenate([b, bias[None]], 0)
        close(got, exact(*wide), *wide)


@pytest.mark.parametrize("n", EDGES)
def test_every_tile(level, n):
    rng = np.random.default_rng(n)
    b = rng.standard_normal((19, n)).astype(np.float32)
    a = rng.standard_normal((27, 19)).astype(np.float32)
    whole = products.multiply(a, b)
    close(whole, exact(a, b), a, b)
    for m in range(1, 27):
        assert (products.multiply(a[:m], b) == whole[:m]).all()


def test_bits_depend_on_rows_and_columns_alone(level):
    """Not on threads, on the order of memory, on what else is computed, on how many steps are worked on at once."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((300, 700)).astype(np.float32), rng.standard_normal((700, 330)).astype(np.float32)
    bias, threads = rng.standard_normal(330).astype(np.float32), thread_count()
    want = products.multiply(a, b, bias)
    try:
        for count in (1, 2, 3):
            set_thread_count(count)
            products._products.prefer(2)
            assert (products.multiply(a, b, bias) == want).all()
            assert (products.multiply(np.asfortranarray(a), np.asfortranarray(b), bias) == want).all()
    finally:
        set_thread_count(threads)
        products._products.prefer(2)
    assert (products.multiply(a[40:47], b[:, 11:80], bias[11:80]) == want[40:47, 11:80]).all()
    assert (products.multiply(a, b) + bias == want).all()


@pytest.mark.parametrize("n, k", [(48, 96), (50, 130), (301, 1000)])
def test_few_rows_by_a_factor_that_lies_by_columns(level, n, k):
    """The result's columns may be computed as rows, with the same bits."""
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((200, k)).astype(np.float32), rng.standard_normal((n, k)).astype(np.float32)
    bias, by_rows = rng.standard_normal(n).astype(np.float32), np.ascontiguousarray(b.T)
    for m in (1, 2, 5, 12, 16, 31, 33, 64, 100, 192, 200):
        assert (products.multiply(a[:m], b.T, bias) == products.multiply(a[:m], by_rows, bias)).all()
        assert (products.multiply(a[:m][::-1], b.T) == products.multiply(a[:m], by_rows)[::-1]).all()


def test_batches(level):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 9, 33)).astype(np.float32), rng.standard_normal((5, 20, 33)).astype(np.float32)
    got = products.multiply(a, b.swapaxes(1, 2))
    assert got.shape == (5, 9, 20)
    for i in range(5):
        assert (got[i] == products.multiply(a[i], b[i].T)).all()
    assert (products.multiply(a[::-2], b.swapaxes(1, 2)[::-2]) == got[::-2]).all()


def test_long_sums_lose_no_digits(level):
    """Numbers of one sign, of which one sum after the other would round away the small ones."""
    rng = np.random.default_rng(0)
    for k in (1_000, 20_000, 200_000):
        a, b = rng.random((5, k), np.float32), rng.random((k, 17), np.float32)
        exact = a.astype(float) @ b.astype(float)
        assert np.abs(products.multiply(a, b) / exact - 1).max() < 4e-6


def test_values_that_are_not_finite(level):
    a, b = np.ones((3, 40), np.float32), np.ones((40, 70), np.float32)
    a[1, 3], b[5, 69], b[6, 0] = np.inf, np.nan, -np.inf
    got = products.multiply(a, b)
    assert np.isnan(got[:, 69]).all() and np.isnan(got[1, 0]) and got[0, 0] == -np.inf
    assert (got[1, 1:69] == np.inf).all() and (got[0, 1:69] == 40).all()


def test_terms_are_fused_and_in_order(own):
    """An exact model of one element: each step rounded once, where the machine can."""
    if own.instructions(-1) == 0:
        pytest.skip("no fused instructions")
    rng = np.random.default_rng(1)
    a, b = (
        rng.standard_normal((2, 250)).astype(np.float32),
        rng.standard_normal((250, 20)).astype(np.float32),
    )  # one block
    s = np.float32(0)
    for x, y in zip(a[1], b[:, 7], strict=True):
        s = np.float32(np.longdouble(x) * np.longdouble(y) + np.longdouble(s))
    assert products.multiply(a, b)[1, 7] == s


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("turned", [(111, 111), (112, 111), (111, 112), (112, 112)])
@pytest.mark.parametrize("alpha, beta", [(1, 0), (1, 1), (2, 1), (1, 0.5)])
def test_generated_code_has_a_blas(kind, turned, alpha, beta):
    from pullback.runtime import blas

    found = blas.find()
    number = {np.float32: ctypes.c_float, np.float64: ctypes.c_double}[kind]
    integer = ctypes.c_int64 if found.wide else ctypes.c_int
    kinds = [ctypes.c_int] * 3 + [integer] * 3 + [number, ctypes.c_void_p, integer, ctypes.c_void_p, integer]
    address = found.single if kind is np.float32 else found.double
    gemm = ctypes.CFUNCTYPE(None, *kinds, number, ctypes.c_void_p, integer)(address)
    rng = np.random.default_rng(0)
    m, n, k = 13, 40, 21
    a = rng.standard_normal((k, m) if turned[0] == 112 else (m, k)).astype(kind)
    b = rng.standard_normal((n, k) if turned[1] == 112 else (k, n)).astype(kind)
    c = rng.standard_normal((m, n + 3)).astype(kind)
    want = c.copy()
    want[:, :n] = alpha * ((a.T if turned[0] == 112 else a) @ (b.T if turned[1] == 112 else b)) + beta * c[:, :n]
    gemm(101, *turned, m, n, k, alpha, a.ctypes.data, a.shape[1], b.ctypes.data, b.shape[1], beta, c.ctypes.data, n + 3)
    np.testing.assert_allclose(c, want, rtol=2e-4, atol=1e-4)
    assert (c[:, n:] == want[:, n:]).all()


def test_what_is_not_ours_goes_to_the_array_library():
    a, b = np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4)
    assert (products.multiply(a, b) == a @ b).all()
    z = np.ones((2, 3, 4), np.complex64)
    assert (products.multiply(z, z.swapaxes(1, 2)) == 4).all()
    assert (products.multiply(np.ones((2, 1, 3, 4), "f"), np.ones((5, 4, 2), "f")) == 4).all()
    with pytest.raises(ValueError):
        products.multiply(np.ones((2, 3), "f"), np.ones((2, 3), "f"))


@pytest.mark.parametrize("m, n, k", [(3, 70, 500), (300, 290, 310), (700, 300, 100)])
def test_deterministic_products_are_the_same_compiled_and_by_any_number_of_threads(m, n, k):
    torch.manual_seed(0)
    x, w, b, threads = torch.randn(m, k), torch.randn(n, k), torch.randn(n), thread_count()
    f = lambda x, w, b: (torch.nn.functional.linear(x, w, b), x @ w.t(), w @ x.t(), torch.bmm(x[None], w.t()[None]))
    torch.use_deterministic_algorithms(True)
    try:
        want = f(x, w, b)
        for count in (1, 2):
            set_thread_count(count)
            for got in (f(x, w, b), torch.compile(f)(x, w, b)):
                assert all(torch.equal(p, q) for p, q in zip(got, want, strict=True))
    finally:
        torch.use_deterministic_algorithms(False)
        set_thread_count(threads)


@pytest.mark.parametrize("m, n, k", [(700, 300, 100), (300, 700, 100), (64, 40, 30)])
def test_blocks_of_compiled_products_are_computed_once(m, n, k):
    """As many tasks as there are blocks of the side that is cut, in each of a batch."""
    from pullback.codegen import source
    from pullback.ops.lowering.loops import Buffer, Product, Value

    def matrices(name, *shape):
        return Value(Buffer(name, torch.float32, math.prod(shape)), shape)

    step = source._product(Product(matrices("c", 2, m, n), matrices("a", 2, m, k), matrices("b", 2, k, n)))
    by_columns, block = step.numbers[9:11]
    assert step.range == 2 * -(-(n if by_columns else m) // block)
