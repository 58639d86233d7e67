"""Decompositions in C give what the rules of their operators give: signs of vectors too, in every order of memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pullback as torch
from pullback.core import small
from tests.ops.test_small import compare, operator_of

if "_linalg_eigh.default" not in small.table:
    pytest.skip("the extensions are not built", allow_module_level=True)

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
rng = np.random.default_rng(0)


def matrices(*shape: int, dtype) -> list[torch.Tensor]:
    """Row-major, column-major, every second column."""
    x = torch.from_numpy(rng.standard_normal(shape)).to(dtype)
    return [x, x.transpose(-1, -2).contiguous().transpose(-1, -2), x.repeat_interleave(2, -1)[..., ::2]]


@DTYPES
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 16, 25, 26, 40])
def test_eigenvectors_and_their_signs(n: int, dtype) -> None:
    op = operator_of("_linalg_eigh.default")
    tolerance = 2e-3 if dtype is torch.float32 else 1e-8
    for x, side in itertools.product(matrices(n, n, dtype=dtype), ("L", "U")):
        assert compare(op, (x, side, True), tolerance)
    for x in (
        torch.eye(n, dtype=dtype),
        torch.zeros(n, n, dtype=dtype),
        torch.diag(torch.arange(n, 0, -1.0)).to(dtype),
    ):
        assert compare(op, (x, "L", True), tolerance)
    assert compare(op, (matrices(3, n, n, dtype=dtype)[0], "L", True), tolerance)
    assert compare(op, (matrices(9, n, n, dtype=dtype)[0], "U", True), tolerance)  # a stack whose signs stay


@DTYPES
@pytest.mark.parametrize(("m", "n"), [(1, 1), (4, 4), (5, 3), (3, 4), (2, 9), (40, 30), (30, 31)])
def test_singular_values(m: int, n: int, dtype) -> None:
    op = operator_of("_linalg_svd.default")
    tolerance, taken = 2e-3 if dtype is torch.float32 else 1e-8, 0
    for x, full, vectors in itertools.product(matrices(m, n, dtype=dtype), (False, True), (False, True)):
        taken += compare(op, (x, full, vectors, None), tolerance)
    assert taken == (6 if n > 2 * m > 2 else 12)
    assert compare(op, (matrices(2, 3, m, n, dtype=dtype)[0], False, False, None), tolerance)
    for value in (np.nan, np.inf):
        assert small.table["_linalg_svd.default"]((torch.full((m, n), value, dtype=dtype), False, True, None)) is None


@DTYPES
@pytest.mark.parametrize(("m", "n"), [(96, 96), (130, 100), (100, 130), (160, 160)])
def test_reflections_in_blocks(m: int, n: int, dtype) -> None:
    tolerance = 2e-3 if dtype is torch.float32 else 1e-10
    for x in matrices(m, n, dtype=dtype):
        assert compare(operator_of("geqrf.default"), (x,), tolerance)
        assert compare(operator_of("linalg_qr.default"), (x, "reduced"), tolerance)
    vectors, factors = torch.geqrf(matrices(m, n, dtype=dtype)[0])
    if m >= n:
        for k in (97, n) if n >= 97 else (n,):
            args = (vectors, factors[:k].contiguous())
            assert compare(operator_of("linalg_householder_product.default"), args, tolerance)


@DTYPES
def test_tiny_systems(dtype) -> None:
    tolerance = 1e-3 if dtype is torch.float32 else 1e-9
    for m, n in itertools.product(range(1, 10), repeat=2):
        for x in matrices(3, m, n, dtype=dtype):
            assert compare(operator_of("linalg_lu_factor_ex.default"), (x, True, False), tolerance)
            assert compare(operator_of("linalg_lu.default"), (x, True), tolerance)
    for n in range(1, 10):
        for x in matrices(3, n, n, dtype=dtype):
            x = x + 3 * torch.eye(n, dtype=dtype)
            b = matrices(3, n, 2, dtype=dtype)[2]
            assert compare(operator_of("_linalg_solve_ex.default"), (x, b, True, False), tolerance)
            assert compare(operator_of("linalg_inv_ex.default"), (x, False), tolerance)
            assert compare(operator_of("_linalg_det.default"), (x,), tolerance)


def test_a_matrix_without_an_inverse_says_where() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 0.0, 1.0]])
    assert torch.linalg.lu_factor_ex(x).info.item() == 2
    with pytest.raises(RuntimeError, match="singular"):
        torch.linalg.inv(x)


@DTYPES
def test_factors_are_taken_apart(dtype) -> None:
    op = operator_of("lu_unpack.default")
    for m, n in ((4, 4), (5, 3), (3, 5), (1, 7), (40, 40)):
        for x in matrices(2, m, n, dtype=dtype):
            factors, pivots = torch.linalg.lu_factor(x)
            for lu in (factors, factors.transpose(-1, -2).contiguous().transpose(-1, -2)):
                assert compare(op, (lu, pivots, True, True))
