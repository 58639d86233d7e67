"""Functions in C on many elements: what they give is what the rules give, whatever the number of threads.

Shapes are one long row whose length is no multiple of a piece, rows, and columns; dtypes are those of the table, NaN and infinities among
the floating-point numbers. Always holds: one thread and three give the same bits.
"""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.core import small
from tests.ops.test_small import DTYPES, compare, numbers, operator_of

if not small.table:
    pytest.skip("the extensions are not built", allow_module_level=True)

SHAPES = ((200_003,), (401, 500), (3, 70, 700))
# What follows a tensor, for its last dimension or the one before.
FORMS = {
    "count_nonzero.dim_IntList": lambda x, d: ((d,),), "count_nonzero.default": lambda x, d: (d,),
    "prod.dim_int": lambda x, d: (d, False, None), "prod.default": lambda x, d: (None,), "cumprod.default": lambda x, d: (d, None),
    "cummax.default": lambda x, d: (d,), "cummin.default": lambda x, d: (d,), "nansum.default": lambda x, d: ((d,), False, None),
    "sum.dim_IntList": lambda x, d: ((d,), True, None), "sum.default": lambda x, d: (None,),
    "linalg_vector_norm.default": lambda x, d: (2, (d,), False, None),
}  # fmt: skip


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def arguments(key: str, shape: tuple, dtype, special: bool) -> list[tuple]:
    x = numbers(np.random.default_rng(0), shape, dtype, special)
    if "prod" in key and dtype.is_floating_point:
        x = 1 + x / 1000
    return [(x, *FORMS[key](x, d)) for d in range(-min(2, x.ndim), 0)]


@pytest.mark.parametrize("key", sorted(FORMS))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_rules_give_the_same(key: str, shape: tuple, threads):
    op, taken = operator_of(key), 0
    for dtype in DTYPES:
        for special in (False, True)[: 1 + dtype.is_floating_point]:
            for args in arguments(key, shape, dtype, special):
                threads(1)
                found = small.table[key](args)
                if found is None:
                    continue
                threads(3)
                taken += compare(op, args, 1e-4 if dtype is torch.float32 else 1e-9)
                again = small.table[key](args)
                for one, three in zip(*[r if isinstance(r, tuple) else (r,) for r in (found, again)], strict=True):
                    assert one.numpy().tobytes() == three.numpy().tobytes()
    assert taken, f"{key}: no call is taken"


@pytest.mark.parametrize("order", [0, 1, 2, float("inf")])
def test_norms_of_every_order(order: float):
    op = operator_of("linalg_vector_norm.default")
    for dtype in (torch.float32, torch.float64):
        for special in (False, True):
            for shape in SHAPES:
                x = numbers(np.random.default_rng(1), shape, dtype, special)
                for dim in (None, (0,), (x.ndim - 1,)):
                    assert compare(op, (x, order, dim, False, None), 1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_vectors_with_many_products(dtype):
    rng = np.random.default_rng(2)
    u, v, y = (numbers(rng, shape, dtype, True) for shape in ((301,), (607,), (301, 607)))
    assert compare(operator_of("outer.default"), (u, v))
    assert compare(operator_of("addr.default"), (y, u, v, 1, 2), 1e-5)
    assert compare(operator_of("addr.default"), (y, u, v, 0, 1), 1e-5)
