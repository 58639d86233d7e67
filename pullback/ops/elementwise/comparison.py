"""Comparisons of elements, tests of what they are, and whether tensors are equal or close as a whole.

Results are boolean and carry no gradient. A Python number on the right takes the `Scalar` overload.
"""

from __future__ import annotations

import math

from ...core import dtype as dtypes
from ...core.tensor import TRANSFORMED, Tensor
from ..eager.functions import ANY
from ..family.pointwise import pointwise
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.scalars import truth_out
from ..system.schema import wrong_type


# ---- order and equality
def _comparison(name: str, ufunc: str, alias: str | None, ordered: bool):
    shared = dict(
        supports="real" if ordered else "all",
        kernel_name=f"{name}_cpu",
        kernel=lambda xp, x, y: getattr(xp, ufunc)(x, y),
        result=dtypes.bool,
    )
    scalar = pointwise(
        f"{name}.Scalar(Tensor self, Scalar other) -> Tensor",
        numbers=(),
        operands=("self", "other"),
        function=False,
        method=False,
        inplace="hidden",
        **shared,
    )
    return pointwise(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        overloads={"other": scalar},
        numbers=("other",),
        ufunc=ufunc,
        aliases=(alias,) if alias else (),
        **shared,
    )


eq = _comparison("eq", "equal", None, ordered=False)
ne = _comparison("ne", "not_equal", "not_equal", ordered=False)
lt = _comparison("lt", "less", "less", ordered=True)
le = _comparison("le", "less_equal", "less_equal", ordered=True)
gt = _comparison("gt", "greater", "greater", ordered=True)
ge = _comparison("ge", "greater_equal", "greater_equal", ordered=True)


# ---- what an element is
def _test(name: str, kernel, check=None, **rules):
    return pointwise(
        f"{name}(Tensor self) -> Tensor",
        numbers=(),
        kernel=kernel,
        check=check,
        result=dtypes.bool,
        inplace=False,
        **rules,
    )


def _of_float(ufunc: str, otherwise: bool):
    """A test that integers and booleans answer all alike."""

    def kernel(xp, x):
        return getattr(xp, ufunc)(x) if x.dtype.kind in "fc" else xp.full(x.shape, otherwise)

    return kernel


def _not_complex(name: str):
    def check(self) -> None:
        if self.dtype.is_complex:
            raise RuntimeError(f"{name} does not support complex inputs.")

    return check


def _is_infinity(value: float):
    return lambda xp, x: x == value if x.dtype.kind == "f" else xp.zeros(x.shape, bool)


isnan = _test("isnan", _of_float("isnan", False), zero="kept")
isinf = _test("isinf", _of_float("isinf", False), zero="kept")
isfinite = _test("isfinite", _of_float("isfinite", True))
isposinf = _test(
    "isposinf", _is_infinity(math.inf), _not_complex("isposinf"), zero="kept", check_out=truth_out("isposinf")
)
isneginf = _test(
    "isneginf", _is_infinity(-math.inf), _not_complex("isneginf"), zero="kept", check_out=truth_out("isneginf")
)
isreal = _test("isreal", lambda xp, x: x.imag == 0 if x.dtype.kind == "c" else xp.ones(x.shape, bool))


# ---- closeness
def _check_isclose(self, other, rtol, atol, equal_nan) -> None:
    if self.dtype is not other.dtype:
        raise RuntimeError(f"{self.dtype.scalar_name} did not match {other.dtype.scalar_name}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")


def _isclose(xp, x, y, rtol, atol, equal_nan):
    close = x == y
    if equal_nan and x.dtype.kind in "fc":
        close = close | (xp.isnan(x) & xp.isnan(y))
    if rtol == 0 and atol == 0:
        return close
    if x.dtype.kind not in "fc":
        x, y = x.astype(float), y.astype(float)
    apart = xp.abs(x - y)
    return close | (xp.isfinite(apart) & (apart <= atol + xp.abs(rtol * y)))


isclose = pointwise(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
    numbers=(),
    check=_check_isclose,
    kernel=_isclose,
    result=dtypes.bool,
    out=False,
    inplace=False,
)


@front("torch.allclose", "Tensor.allclose")
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements of two tensors are close."""
    return bool(isclose.function(input, other, rtol, atol, equal_nan).all().item())


@front("torch.equal", "Tensor.equal", past=(ANY,))
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape and the same elements."""
    for argument, x in zip(eq.schema.arguments, (input, other), strict=True):
        if not isinstance(x, Tensor):
            raise wrong_type("equal", argument, x)
        if x._keys & TRANSFORMED:
            raise RuntimeError("Batching rule not implemented for aten::equal: a result of Python cannot be batched.")
    return tuple(input.shape) == tuple(other.shape) and bool(dispatch(eq, (input, other)).all().item())
