"""Ufuncs of bfloat16 and float16 that compute in single precision: any order of memory, one result for few and for many elements."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pullback as torch
from pullback.core import elements
from pullback.nn import functional as F

if elements._elements is None:
    pytest.skip("the extension is not built", allow_module_level=True)

KINDS = pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16], ids=str)
SHAPES = [(3, 5), (1, 1), (0, 4), (511,), (512,), (513,), (40, 33), (2, 3, 4, 5), (1025, 130)]
ONE = [
    "sigmoid",
    "floor",
    "ceil",
    "sqrt",
    "tanh",
    "relu",
    "abs",
    "neg",
    "erf",
    "log1p",
    "sign",
    "reciprocal",
    "rsqrt",
    "isnan",
    "frac",
]
TWO = [
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "minimum",
    "eq",
    "lt",
    "atan2",
    "remainder",
    "fmod",
    "hypot",
    "floor_divide",
    "xlogy",
]
NUMBERS = {
    "leaky_relu": lambda x: F.leaky_relu(x, 0.013),
    "elu": lambda x: F.elu(x, 1.3),
    "clamp": lambda x: x.clamp(-1, 2),
    "clamp below": lambda x: x.clamp(min=0.5),
    "exp": lambda x: x.exp(),
    "mul": lambda x: x * 3.3,
    "div": lambda x: x / 7,
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "lerp": lambda x: torch.lerp(x, x.flip(0), 0.3),
    "addcmul": lambda x: torch.addcmul(x, x, x, value=0.7),
    "in place": lambda x: x.clone().mul_(0.3).add_(x),
}


def values(kind, shape, seed: int = 0):
    drawn = np.random.default_rng(seed).standard_normal(shape, np.float32) * 4
    flat = drawn.reshape(-1)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-7, -6e4]
    flat[: len(special)] = special[: flat.size]
    return torch.from_numpy(drawn).to(kind)


def orders(x):
    """The same numbers lying in several ways."""
    yield x
    if x.ndim > 1:
        yield x.transpose(0, 1).contiguous().transpose(0, 1)
    wide = torch.empty((*x.shape, 2), dtype=x.dtype)
    wide[..., 1] = x
    yield wide[..., 1]


def same(found, expected) -> bool:
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    if not found.dtype.is_floating_point:
        return torch.equal(found, expected)
    nan = expected.isnan()
    return torch.equal(found.isnan(), nan) and torch.equal(
        found.masked_fill(nan, 0).view(torch.int16), expected.masked_fill(nan, 0).view(torch.int16)
    )


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@KINDS
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_functions_of_one_are_those_of_single_precision_rounded(shape, kind):
    x = values(kind, shape)
    for name in ONE:
        expected = getattr(torch, name)(x.float())
        expected = expected.to(kind) if expected.dtype is torch.float32 else expected
        for t in orders(x):
            assert same(getattr(torch, name)(t), expected), name


@KINDS
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_functions_of_two(shape, kind):
    x, y = values(kind, shape), values(kind, shape, 1)
    others = [y, y[:1], y[..., :1]] if 0 not in shape else [y]
    for name, other in itertools.product(TWO, others):
        expected = getattr(torch, name)(x.float(), other.float())
        expected = expected.to(kind) if expected.dtype is torch.float32 else expected
        for t in orders(x):
            found = getattr(torch, name)(t, other)
            assert same(found, expected), name
            assert found.stride() == torch.empty(shape).stride() or t is not x


@KINDS
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_beside(name: str, kind):
    call = NUMBERS[name]
    few, many = values(kind, (7, 6)), values(kind, (7 * 200, 6 * 40))
    many[:7, :6] = few
    if name == "lerp":
        many[-7:, :6] = few
    for t in orders(few):
        assert same(call(t), call(many)[:7, :6]), name
    assert call(few[:0]).shape == (0, 6)


@KINDS
def test_limits_are_rounded_before_they_are_met(kind):
    limit = torch.tensor(0.3, dtype=kind).item()
    x = torch.full((5,), 2.0, dtype=kind)
    assert x.clamp(max=0.3).tolist() == [limit] * 5 and x.clamp(-0.0, 0.0).signbit().tolist() == [False] * 5


@KINDS
def test_threads_share_many_elements(kind, threads: int):
    x, y = values(kind, (700, 513)), values(kind, (700, 513), 1)
    for found, expected in (
        (x + y, (x.float() + y.float()).to(kind)),
        (x.sigmoid(), x.float().sigmoid().to(kind)),
        (x * 3.3, (x.float() * np.float32(3.3)).to(kind)),
        (x.t() - y.t(), (x.float() - y.float()).to(kind).t()),
        (torch.lt(x, y), x.float() < y.float()),
        (x + y[0], (x.float() + y[0].float()).to(kind)),
    ):
        assert same(found, expected)
    z = x.clone()
    assert same(z.add_(y), x + y) and same(z.mul_(z[:, :1].clone()), (x + y) * (x + y)[:, :1])


def test_gradients_are_those_of_single_precision_rounded():
    x = values(torch.bfloat16, (5, 6)).nan_to_num(0, 1, -1).requires_grad_()
    (x.sigmoid() * x[0]).sum().backward()
    assert x.grad.dtype is torch.bfloat16 and x.grad.isfinite().all()


def test_what_has_no_loop_of_single_precision_has_no_ufunc():
    assert elements.halved(np.bitwise_and) is None and elements.halved("no such loop") is None
    assert elements.halved("clamp.default:*:*").nin == 3 and elements.halved(np.add, 1).nin == 2
