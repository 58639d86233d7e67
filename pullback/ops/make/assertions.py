"""Assertions as operators, so that graphs can hold them: each gives nothing, or raises when the program runs.

In: a number, a tensor of one element, or a tensor and what it should be like. Out: nothing. What always holds: without data
nothing is raised of it, and a symbolic number that is asserted is known to be true from there on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.arrays import to_host
from ...core.symbolic import symbolic
from ...core.tensor import Tensor
from ..family.base import Family
from ..system.operator import NONDIFFERENTIABLE, Operator


class _Assertion(Family):
    """Runs a check of the arguments."""

    makes_fakes = True

    def __init__(self, check: Callable, without_data: Callable):
        self.check, self.without_data = check, without_data

    def execute(self, op: Operator, args: tuple) -> None:
        self.check(*args)

    def run_meta(self, op: Operator, args: tuple) -> None:
        self.without_data(*args)


def _expect(value: Any, message: str) -> None:
    if not (value.node.expect_true() if symbolic(value) else value):
        raise RuntimeError(message)


class AssertedError(RuntimeError, AssertionError):
    """An assertion about data that does not hold: a graph may hold one that the program wrote with `assert`."""


def _nonzero(t: Tensor, message: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    if t.numel() != 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    if not to_host(t._array).reshape(-1)[0]:
        raise AssertedError(message)


def _unread(*args: Any) -> None:
    """There is no data to look at."""


def _like(t: Tensor, size: Any, stride: Any, dtype: Any, device: Any, layout: Any) -> None:
    for what, wanted, found in (
        ("sizes", size, tuple(t.shape)), ("strides", stride, t.stride), ("dtype", dtype, t.dtype),
        ("device", device, t.device), ("layout", layout, t.layout),
    ):  # fmt: skip
        if wanted is None:
            continue
        found = tuple(found()) if what == "strides" else found
        wanted = tuple(wanted) if what in ("sizes", "strides") else wanted
        if wanted != found:
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {wanted}, Got: {found}")


INT_MAX = 2**63 - 1


def _in_range(size: Any, low: int | None, high: int | None, of_sizes: bool = False) -> None:
    low, high = 0 if of_sizes and low is None else low, INT_MAX if high is None else high
    if low is not None and high < low:
        raise RuntimeError(f"Max must be greater than or equal to min. Got min={low} max={high}")
    if symbolic(size):
        env = size.node.shape_env
        (env.constrain_for_size if of_sizes else env.constrain_range)(size, low, high if high < INT_MAX else None)
    elif isinstance(size, int) and (size > high or low is not None and size < low):
        raise RuntimeError(f"Invalid value range for {size} between [{-INT_MAX - 1 if low is None else low}, {high}].")


def _size_in_range(size: Any, low: int | None, high: int | None) -> None:
    if high is not None and high <= 2:
        raise RuntimeError(f"Max value to constrain_range_for_size must be greater than 2. got: {high}")
    _in_range(size, low, high, True)


def _assertion(schema: str, check: Callable, without_data: Callable) -> Operator:
    return Operator(schema, _Assertion(check, without_data), vjp=NONDIFFERENTIABLE)


assert_scalar = _assertion("_assert_scalar(Scalar self, str assert_msg) -> ()", _expect, _expect)
assert_async = _assertion("_assert_async(Tensor self) -> ()", _nonzero, _unread)
assert_async_msg = _assertion("_assert_async.msg(Tensor self, str assert_msg) -> ()", _nonzero, _unread)
assert_tensor_metadata = _assertion(
    "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
    _like,
    _like,
)
constrain_range = _assertion(
    "sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", _in_range, _in_range
)
constrain_range_for_size = _assertion(
    "sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()", _size_in_range, _size_in_range
)
ASSERTIONS = (
    assert_scalar,
    assert_async,
    assert_async_msg,
    assert_tensor_metadata,
    constrain_range,
    constrain_range_for_size,
)
