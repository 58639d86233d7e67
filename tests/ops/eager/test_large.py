"""Element-wise operators on many elements give, bit for bit, what they give on few at a time, on any number of threads; whoever listens hears of them."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.core.arrays import LARGE
from pullback.core.elements import table
from pullback.ops.eager import large
from pullback.ops.system.operator import registry
from pullback.ops.system.overrides import TorchDispatchMode

pytestmark = pytest.mark.skipif(not table, reason="the extension is not built")
F = torch.nn.functional
N = LARGE + 77  # no multiple of anything


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def numbers(n: int = N, dtype=torch.float32, seed: int = 0) -> torch.Tensor:
    """Numbers with all that is special among them, here and there."""
    x = np.random.default_rng(seed).standard_normal(n) * 3
    x[:: n // 5] = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40][: len(x[:: n // 5])]
    return torch.from_numpy(x).to(dtype)


def same(a: torch.Tensor, b: torch.Tensor) -> None:
    """Bit for bit, but for the bits of a NaN."""
    x, y = a.detach().numpy(), b.detach().numpy()
    assert x.dtype == y.dtype and x.shape == y.shape
    np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(np.signbit(x[~np.isnan(x)]), np.signbit(y[~np.isnan(y)]))


def in_pieces(f, *tensors):
    """f on a few elements at a time, put together."""
    cuts = range(0, N, 10_007)
    return torch.cat([f(*[t[c : c + 10_007] for t in tensors]) for c in cuts])


UNARY = {
    "relu": F.relu, "gelu": F.gelu, "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "sigmoid": torch.sigmoid,
    "tanh": torch.tanh, "leaky_relu": lambda x: F.leaky_relu(x, 0.2), "hardtanh": lambda x: F.hardtanh(x, -0.5, 1.5), "abs": torch.abs,
    "softplus": F.softplus, "elu": F.elu, "times": lambda x: x * 2.5, "plus": lambda x: x + 1, "minus": lambda x: 3 - x, "over": lambda x: x / 3,
    "expm1": torch.expm1, "rsqrt": torch.rsqrt, "clamp": lambda x: x.clamp(-1, 1), "threshold": lambda x: F.threshold(x, 0.1, 20.0),
}  # fmt: skip
BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "add scaled": lambda x, y: torch.add(x, y, alpha=2),
    "atan2": torch.atan2, "copysign": torch.copysign, "maximum": torch.maximum,
}  # fmt: skip
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


@DTYPES
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_values_and_gradients(name, dtype, threads):
    f = (UNARY | BINARY)[name]
    given = [numbers(dtype=dtype), numbers(dtype=dtype, seed=1)][: 1 if name in UNARY else 2]
    same(f(*given), in_pieces(f, *given))
    live = [t.clone().requires_grad_() for t in given]
    g = numbers(dtype=dtype, seed=2)
    found = torch.autograd.grad(f(*live), live, g)
    for k in range(len(live)):
        slope = lambda *parts, k=k: _slope(f, parts, k)
        same(found[k], in_pieces(slope, *given, g))


def _slope(f, parts, k: int):
    *given, g = parts
    live = [t.clone().requires_grad_() for t in given]
    return torch.autograd.grad(f(*live), live, g)[k]


def test_loops_are_there_for_the_common_operators():
    """What the rest of this file is about happens at all."""
    assert all(large.loops_of(registry[f"{name}.Tensor"]) for name in ("add", "sub", "mul", "div"))
    assert large.loops_of(registry["relu.default"]) or torch.float32 in large.looped_dtypes(registry["relu.default"])
    for name in ("gelu", "gelu_backward", "threshold_backward", "leaky_relu", "leaky_relu_backward", "tanh_backward"):
        assert torch.float32 in large.looped_dtypes(registry[f"{name}.default"])


@DTYPES
@pytest.mark.parametrize("name", BINARY)
def test_orders_of_memory(name, dtype, threads):
    """Turned, apart, backwards, broadcast: values and strides as of few elements."""
    f = BINARY[name]
    x, y = (numbers(400 * 360, dtype, seed).reshape(400, 360) for seed in (0, 1))
    wide = numbers(400 * 720, dtype, 2).reshape(400, 720)
    pairs = [
        (x, y.T.contiguous().T),
        (x.T, y.T),
        (wide[:, ::2], y),
        (wide[:, :360], y),
        (x, y[0]),
        (x, y[:, :1]),
        (x[:1], y),
        (x, y[0, 0]),
    ]
    for a, b in pairs:
        found = f(a, b)
        a, b = torch.broadcast_tensors(a, b)
        rows = torch.stack([f(p, q) for p, q in zip(a, b, strict=True)])
        same(found, rows)
        small = f(*[t[:20, :20] for t in (a, b)])  # whose strides say which order results have
        assert np.argsort(found.stride()).tolist() == np.argsort(small.stride()).tolist()


@DTYPES
@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_", "relu_", "sigmoid_"])
def test_in_place(name, dtype, threads):
    others = [numbers(dtype=dtype, seed=1)] if name in ("add_", "sub_", "mul_", "div_") else []
    x = numbers(dtype=dtype)
    expected = in_pieces(lambda a, *b: getattr(a.clone(), name)(*b), x, *others)
    version = x._version
    assert getattr(x, name)(*others) is x and x._version == version + 1
    same(x, expected)


def test_writes_to_memory_that_is_read():
    x = numbers()
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:].add_(x[:-1])
    expected = x + x
    same(x.add_(x), expected)
    expected = x[5:] * x[5:]
    same(x[5:].mul_(x[5:]), expected)
    y = torch.ones(1).expand(N)
    with pytest.raises(RuntimeError, match="more than one element"):
        y.add_(x)


def test_writes_are_seen_by_gradients():
    x = numbers().requires_grad_()
    y = x * 1
    z = y.sigmoid()
    z.mul_(numbers(seed=1))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    leaf = numbers().requires_grad_()
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        leaf.add_(numbers(seed=1))


def test_listeners():
    class Heard(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            heard.append(func._schema.name)
            return func(*args, **(kwargs or {}))

    heard: list[str] = []
    x = numbers()
    with Heard():
        (x * x + 1).relu()
        F.leaky_relu(x).add_(x)
    assert heard == ["aten::mul", "aten::add", "aten::relu", "aten::leaky_relu", "aten::add_"]

    class Own(torch.Tensor):
        pass

    assert type(x.as_subclass(Own) * x) is Own and type(F.gelu(x.as_subclass(Own))) is Own


def test_dtypes_that_meet():
    x, y = numbers(), numbers(dtype=torch.float64, seed=1)
    same(x * y, x.double() * y)
    assert (x * torch.arange(N)).dtype is torch.float32
    same(x + torch.tensor(2.0, dtype=torch.float64), x + 2)
    with pytest.raises(RuntimeError, match="must match the size"):
        x + numbers(N - 1)


def test_double_backward():
    x = torch.from_numpy(np.random.default_rng(0).standard_normal(N)).float().requires_grad_()
    (first,) = torch.autograd.grad((x.tanh() * x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    t = x.detach().double().tanh()
    np.testing.assert_allclose(second.numpy(), ((1 - t * t) * (2 - 2 * t * x.detach().double())).numpy(), atol=2e-5)
