"""Activation functions: values and slopes at their corners, in-place forms, what is refused."""

import math
import types

import numpy as np
import pytest

import pullback as torch
from pullback.ops.system.operator import exports
from tests.ops.checks import to_numpy

F = types.SimpleNamespace(**exports["nn.functional"])
CORNERS = [-4.0, -3.0, -1.0, -0.5, 0.0, 0.5, 3.0, 4.0, 6.0]
# By name: values and slopes at the corners, as PyTorch 2.13 gives them.
RECORDED = {
    "relu": ([0, 0, 0, 0, 0, 0.5, 3, 4, 6], [0, 0, 0, 0, 0, 1, 1, 1, 1]),
    "relu6": ([0, 0, 0, 0, 0, 0.5, 3, 4, 6], [0, 0, 0, 0, 0, 1, 1, 1, 0]),
    "hardtanh": ([-1, -1, -1, -0.5, 0, 0.5, 1, 1, 1], [0, 0, 0, 1, 1, 1, 0, 0, 0]),
    "hardsigmoid": ([0, 0, 1 / 3, 2.5 / 6, 0.5, 3.5 / 6, 1, 1, 1], [0, 0, 1 / 6, 1 / 6, 1 / 6, 1 / 6, 0, 0, 0]),
    "hardswish": (
        [0, 0, -1 / 3, -1.25 / 6, 0, 1.75 / 6, 3, 4, 6],
        [0, 0, 0.5 / 3, 1 / 3, 0.5, 2 / 3, 1, 1, 1],
    ),
    "hardshrink": ([-4, -3, -1, 0, 0, 0, 3, 4, 6], [1, 1, 1, 0, 0, 0, 1, 1, 1]),
    "softshrink": ([-3.5, -2.5, -0.5, 0, 0, 0, 2.5, 3.5, 5.5], [1, 1, 1, 0, 0, 0, 1, 1, 1]),
    "leaky_relu": ([-0.04, -0.03, -0.01, -0.005, 0, 0.5, 3, 4, 6], [0.01, 0.01, 0.01, 0.01, 0.01, 1, 1, 1, 1]),
    "elu": (
        [math.expm1(v) if v < 0 else v for v in CORNERS],
        [math.exp(v) if v < 0 else 1 for v in CORNERS],
    ),
}


@pytest.mark.parametrize("name", RECORDED)
def test_corners(name):
    x = torch.tensor(CORNERS, dtype=torch.float64, requires_grad=True)
    y = getattr(F, name)(x)
    values, slopes = RECORDED[name]
    assert y.tolist() == pytest.approx(values, abs=1e-8)
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == pytest.approx(slopes, abs=1e-7)


SMOOTH = {
    "gelu": lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))),
    "silu": lambda v: v / (1 + math.exp(-v)),
    "mish": lambda v: v * math.tanh(math.log1p(math.exp(v))),
    "softplus": lambda v: math.log1p(math.exp(v)),
    "logsigmoid": lambda v: -math.log1p(math.exp(-v)),
    "softsign": lambda v: v / (1 + abs(v)),
    "tanhshrink": lambda v: v - math.tanh(v),
    "celu": lambda v: max(v, 0) + min(0, math.expm1(v)),
    "selu": lambda v: 1.0507009873554805 * (max(v, 0) + min(0, 1.6732632423543772 * math.expm1(v))),
}


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_smooth_ones(name, dtype):
    x = torch.tensor(CORNERS, dtype=dtype)
    want = torch.tensor([SMOOTH[name](v) for v in x.tolist()], dtype=torch.float64).to(dtype)
    eps = torch.finfo(dtype).eps
    np.testing.assert_allclose(to_numpy(getattr(F, name)(x)), to_numpy(want), rtol=4 * eps, atol=eps)


def test_no_overflow():
    x = torch.tensor([-1e4, 1e4])
    assert F.softplus(x).tolist() == [0, 1e4] and F.logsigmoid(x).tolist() == [-1e4, 0]
    assert F.silu(x).tolist() == [0, 1e4] and F.mish(x).tolist() == [0, 1e4]
    assert F.softplus(torch.tensor([-50.0])).item() == pytest.approx(math.exp(-50), rel=1e-5)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_of_large_arrays(approximate):
    x = torch.linspace(-7, 7, 200_000)
    want = F.gelu(x.double(), approximate=approximate).float()
    got = F.gelu(x, approximate=approximate)
    np.testing.assert_allclose(to_numpy(got), to_numpy(want), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", ["relu", "silu", "mish", "hardsigmoid", "hardswish", "relu6", "elu", "celu", "selu"])
def test_in_place(name):
    x = torch.tensor(CORNERS)
    want = getattr(F, name)(x).tolist()
    assert getattr(F, name)(x, inplace=True) is x and x.tolist() == want
    leaf = torch.tensor(CORNERS, requires_grad=True)
    (want,) = torch.autograd.grad(getattr(F, name)(leaf).sum(), leaf)
    (got,) = torch.autograd.grad(getattr(F, name)(leaf.clone(), inplace=True).sum(), leaf)
    assert got.tolist() == want.tolist()


def test_prelu_takes_one_weight_or_one_a_channel():
    x = torch.tensor([[-1.0, -2.0], [3.0, -4.0]], requires_grad=True)
    w = torch.tensor([0.1, 0.5], requires_grad=True)
    assert F.prelu(x, w).tolist() == [[pytest.approx(-0.1), -1], [3, -2]]
    gx, gw = torch.autograd.grad(F.prelu(x, w).sum(), [x, w])
    assert gx.tolist() == [[pytest.approx(0.1), 0.5], [1, 0.5]] and gw.tolist() == [-1, -6]
    assert F.prelu(x, torch.tensor([0.5])).tolist() == [[-0.5, -1], [3, -2]]


def test_glu():
    x = torch.tensor([[1.0, 2.0, 0.0, 0.0]], requires_grad=True)
    assert F.glu(x).tolist() == [[0.5, 1.0]]
    assert torch.autograd.grad(F.glu(x).sum(), x)[0].tolist() == [[0.5, 0.5, 0.25, 0.5]]


REFUSED = [
    ("torch.relu(torch.tensor([True]))", RuntimeError, "Boolean inputs not supported for relu"),
    ("F.gelu(torch.ones(1), approximate='x')", RuntimeError, "approximate argument must be either none or tanh"),
    ("F.silu(torch.tensor([1]))", NotImplementedError, "\"silu_cpu\" not implemented for 'Long'"),
    ("F.softshrink(torch.ones(1), -1)", RuntimeError, r"lambda must be in range \[0, 3.40282e\+38\]"),
    ("F.hardtanh(torch.ones(1), 1, -1)", ValueError, "min_val cannot be greater than max_val"),
    ("F.celu(torch.ones(1), 0)", RuntimeError, "alpha cannot be 0 for CELU"),
    ("F.glu(torch.ones(3))", RuntimeError, "Halving dimension must be even, but dimension 0 is size 3"),
    ("F.prelu(torch.ones(2, 3), torch.ones(2))", RuntimeError, "parameter numbers = 2 and channel size = 3"),
    ("F.relu(2)", TypeError, r"argument 'input' \(position 1\) must be Tensor, not int"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        eval(call)


@pytest.mark.parametrize("name, attributes", [("threshold_backward", (0,)), ("leaky_relu_backward", (0.1, False))])
def test_gradients_of_thresholds_lie_as_what_was_compared(name, attributes):
    """A gradient that was broadcast, or copied row by row, takes the order of the activation."""
    x = torch.randn(2, 8, 4, 4).to(memory_format=torch.channels_last)
    op = getattr(torch.ops.aten, name)
    for g in (torch.randn(2, 8, 4, 4), torch.randn(2, 8, 1, 1).expand(2, 8, 4, 4)):
        assert op(g, x, *attributes).stride() == x.stride() == op(g.to("meta"), x.to("meta"), *attributes).stride()
        assert op(x, g.contiguous(), *attributes).is_contiguous()


def test_threshold_writes_expanded_tensors():
    x = torch.tensor([[-1.0, 2.0]]).expand(3, 2)
    assert torch.nn.functional.threshold(x, 0.5, 0.25, inplace=True) is x
    assert x.tolist() == [[0.25, 2.0]] * 3


@pytest.mark.parametrize("name", ["hardshrink", "softshrink"])
def test_slopes_of_halves_end_where_the_half_number_does(name) -> None:
    x = torch.tensor([0.4, 0.5, -0.4, 0.3]).bfloat16().requires_grad_()
    (gradient,) = torch.autograd.grad(getattr(torch.nn.functional, name)(x, 0.4).sum(), x)
    assert gradient.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_third_derivatives_of_exponential_units_are_zero_where_they_are_lines(name) -> None:
    x = torch.tensor([1e30, float("inf"), 2.0, -1.0], dtype=torch.float64, requires_grad=True)
    value = getattr(torch.nn.functional, name)(x)
    for _ in range(3):
        (value,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    assert value[:3].tolist() == [0, 0, 0] and value[3] > 0.3


def test_second_derivatives_of_softplus_keep_nan_of_gradients() -> None:
    x = torch.tensor([50.0, 50.0, 1.0], dtype=torch.float64, requires_grad=True)
    g = torch.tensor([float("nan"), 1.0, 1.0], dtype=torch.float64)
    slope = torch.ops.aten.softplus_backward(g, x, 1.0, 20.0)
    (second,) = torch.autograd.grad(slope.sum(), x)
    assert second.isnan().tolist() == [True, False, False] and second[1] == 0 and second[2] > 0.19


KEEPING = (
    "relu",
    "relu6",
    "hardtanh",
    "elu",
    "celu",
    "selu",
    "hardswish",
    "leaky_relu",
    "gelu",
    "silu",
    "tanh",
    "tanhshrink",
)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("name", KEEPING)
def test_zeros_keep_their_sign(name, dtype):
    call = getattr(F, name)
    for size in (3, 40):
        x = torch.tensor([-0.0, 0.0, -0.0] * size, dtype=dtype)
        expected = torch.zeros_like(x, dtype=torch.bool) if name == "tanhshrink" else x.signbit()  # -0 minus -0
        assert call(x).signbit().equal(expected) and torch.compile(call)(x).signbit().equal(expected)
        assert call(x.requires_grad_()).signbit().equal(expected)


@pytest.mark.parametrize("name", ["relu_", "hardtanh_", "relu6", "elu_"])
def test_zeros_keep_their_sign_in_place(name):
    for dtype in (torch.float16, torch.float32, torch.float64):
        x = torch.tensor([-0.0, 0.0, -2.0], dtype=dtype)
        assert getattr(F, name)(x).signbit()[:2].tolist() == [True, False]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["celu", "elu"])
def test_what_is_above_zero_does_not_depend_on_the_slope_below(name, dtype):
    x = torch.tensor([-0.0, 0.0, 0.5, 2.0] * 20, dtype=dtype)
    for alpha in (math.inf, -math.inf, math.nan, -1.0, 3.0):
        call = lambda x, a=alpha: getattr(F, name)(x, a)
        for out in (call(x), torch.compile(call)(x), call(x.requires_grad_())):
            assert out.equal(x) and out.signbit().equal(x.signbit())


def test_slopes_below_zero_are_numbers_of_what_is_computed_in():
    for call in (lambda: F.celu(torch.ones(2), 1e300), lambda: F.elu(torch.ones(2).half(), 1e300)):
        with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
            call()
    assert F.elu(torch.tensor([-1.0]).half(), 70000.0).tolist() == [-44256]
    assert F.elu(torch.tensor([-1.0]).double(), 1e300).isfinite().all()
