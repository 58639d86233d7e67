"""Kernels, called with one element, write down what they compute; what depends on values is refused."""

from __future__ import annotations

import pytest

from pullback.codegen.describe import text
from pullback.core import dtype as dtypes
from pullback.ops.elementwise.array_kernels import erf, logistic, masked
from pullback.ops.lowering.elements import ELEMENTS as o
from pullback.ops.lowering.elements import Element, Unlowerable
from pullback.ops.lowering.expressions import load
from pullback.ops.lowering.loops import Buffer
from pullback.ops.system.operator import find


def element(d=dtypes.float32, name: str = "x") -> Element:
    return Element(load(Buffer(name, d, 4), 0, (1,)))


def test_numbers_take_the_dtype_of_what_they_meet():
    x = element()
    assert (x * 2).expr.dtype is dtypes.float32 and text((2 - x).expr) == "(2 - x[i0])"
    assert (element(dtypes.int32) * 2).expr.dtype is dtypes.int32
    assert (element(dtypes.int32) * 2.5).expr.dtype is dtypes.float64
    assert (x > 1).expr.dtype is dtypes.bool
    assert (x * 1j).expr.dtype is dtypes.complex64 and abs(x * 1j).expr.dtype is dtypes.float32


def test_kernels_that_work_in_place():
    assert text(logistic(o, element()).expr) == "(1 / (exp(negative(x[i0])) + 1))"
    assert text(masked(o, element(), element(dtypes.bool, "m"), 3).expr) == "where(m[i0], 3, x[i0])"


def test_ufuncs_of_other_libraries():
    assert text(erf(o, element()).expr) == "erf(x[i0])"


def test_an_operators_own_kernel():
    op = find("addcmul.default")
    result = op.kernel(o, element(), element(name="y"), element(name="z"), 2)
    assert text(result.expr) == "(x[i0] + ((y[i0] * 2) * z[i0]))"


def test_what_depends_on_values_is_refused():
    x = element()
    with pytest.raises(Unlowerable):
        bool(x > 0)
    with pytest.raises(Unlowerable):
        o.searchsorted(x, x)
    with pytest.raises(Unlowerable):
        o.full_like(x, 1j)
    assert bool(o.asarray(3, "float32") > 2)
