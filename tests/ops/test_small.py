"""Functions in C for small plain calls: what they give is what the rules of their operators give, in every dtype they take.

Samples of the table run in each dtype, then arrays of any shape with NaN, infinities and equal elements. Always holds: shapes, dtypes and
strides are the rules'; a call that the rules refuse, or memory that is not row-major, is not taken; every function takes some call.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pullback as torch
from pullback.core import small
from pullback.ops.system.operator import registry
from tests.ops.checks import rebuild, results, tensors_in
from tests.ops.samples import samples_of

if not small.table:
    pytest.skip("the extensions are not built", allow_module_level=True)

DTYPES = (torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
KEYS = sorted(small.table)
# What follows a tensor in calls of operators along a dimension: made for a rank.
FORMS = {
    "max.dim": lambda d: (d, False), "min.dim": lambda d: (d, True), "amax.default": lambda d: ((d,), False),
    "amin.default": lambda d: ((d,), True), "argmax.default": lambda d: (d, False), "argmin.default": lambda d: (d, True),
    "aminmax.default": lambda d: (d, False), "any.dim": lambda d: (d, False), "all.dim": lambda d: (d, True),
    "count_nonzero.dim_IntList": lambda d: ((d,),), "prod.dim_int": lambda d: (d, False, None), "cumprod.default": lambda d: (d, None),
    "cummax.default": lambda d: (d,), "cummin.default": lambda d: (d,), "sort.default": lambda d: (d, True),
    "sort.stable": lambda d: (True, d, False), "argsort.default": lambda d: (d, True), "argsort.stable": lambda d: (True, d, False),
    "topk.default": lambda d: (1, d, True, True), "kthvalue.default": lambda d: (1, d, True), "median.dim": lambda d: (d, False),
    "nanmedian.dim": lambda d: (d, True), "mode.default": lambda d: (d, False), "var.correction": lambda d: ((d,), 0, False),
    "std.correction": lambda d: ((d,), None, True), "var_mean.correction": lambda d: (None, 0, False),
    "std_mean.correction": lambda d: ((d,), 0.5, True), "logsumexp.default": lambda d: ((d,), False),
    "linalg_vector_norm.default": lambda d: (2, (d,), False, None), "max.default": lambda d: (), "min.default": lambda d: (),
    "any.default": lambda d: (), "all.default": lambda d: (), "median.default": lambda d: (), "nanmedian.default": lambda d: (),
    "prod.default": lambda d: (None,),
}  # fmt: skip


def compare(op, args: tuple) -> bool:
    """Whether the function took the call; what it gave is then what the rules give."""
    found = small.table[op.name + "." + op.overload](args)
    if found is None:
        return False
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = results(op.family.execute(op, args))
    found = results(found)
    assert len(found) == len(expected)
    for f, e in zip(found, expected, strict=True):
        assert (f.dtype, f.shape, f.stride()) == (e.dtype, e.shape, e.stride()), (op, args)
        tolerance = 1e-6 if f.dtype is torch.float32 else 1e-12
        np.testing.assert_allclose(f.numpy(), e.numpy(), rtol=tolerance, atol=tolerance, err_msg=f"{op}{args}")
    return True


def samples(op, dtype):
    for sample, _ in samples_of(op):
        args = rebuild(
            sample, [t.detach().to(dtype) if t.dtype is torch.float64 else t.detach() for t in tensors_in(sample)]
        )
        if all(t._keys == 0 for t in tensors_in(args)):
            yield args


def refuses(op, args) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            op.family.execute(op, args)
    except Exception:
        return True
    return False


@pytest.mark.parametrize("key", KEYS)
def test_samples(key: str):
    op = registry[key]
    taken = 0
    for dtype in DTYPES:
        for args in samples(op, dtype):
            if refuses(op, args):
                assert small.table[key](args) is None, f"{op} refuses {args}"
            else:
                taken += compare(op, args)
    assert taken, f"{key}: no sample is taken"


def numbers(rng, shape: tuple, dtype, special: bool):
    values = rng.normal(size=shape).astype(np.float64)
    if dtype.is_floating_point and special and values.size:
        at = rng.integers(0, 5, size=shape)
        values = np.where(
            at == 0, np.nan, np.where(at == 1, np.inf, np.where(at == 2, -np.inf, np.where(at == 3, 0.5, values)))
        )
    return torch.tensor(values if dtype.is_floating_point else np.round(values * 2)).to(dtype)


@pytest.mark.parametrize("key", sorted(FORMS))
def test_shapes_and_special_numbers(key: str):
    op, rng = registry[key], np.random.default_rng(0)
    for dtype in DTYPES:
        for shape in ((), (1,), (7,), (3, 5), (2, 40, 3), (4, 1, 2, 2), (0, 3), (3, 0)):
            for d in range(-len(shape), max(len(shape), 1)):
                for special in (False, True):
                    args = (numbers(rng, shape, dtype, special), *FORMS[key](d))
                    if refuses(op, args):
                        assert small.table[key](args) is None, f"{op} refuses {args}"
                    else:
                        compare(op, args)


@pytest.mark.parametrize("key", sorted(FORMS))
def test_memory_that_is_not_row_major_is_left_to_the_rules(key: str):
    x = torch.arange(12.0).reshape(3, 4)
    for other in (x.t(), x[:, ::2], x[:, 1:]):
        assert small.table[key]((other, *FORMS[key](0))) is None


def test_every_function_is_of_an_operator():
    assert set(KEYS) <= set(registry)
