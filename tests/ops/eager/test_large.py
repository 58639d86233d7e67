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


FEW = {
    "elu": lambda x: F.elu(x, 0.7), "selu": F.selu, "celu": lambda x: F.celu(x, 1.3), "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "softplus": lambda x: F.softplus(x, 2, 3), "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.25), "threshold": lambda x: F.threshold(x, 0.1, 7),
    "hardshrink": lambda x: F.hardshrink(x, 0.3), "softshrink": F.softshrink, "clamp": lambda x: x.clamp(-1, 1), "clamp from below": lambda x: x.clamp(min=0.5),
    "clamp_max": lambda x: x.clamp_max(True), "nan_to_num": torch.nan_to_num, "nan_to_num by numbers": lambda x: x.nan_to_num(1, posinf=2.5),
    "lerp": lambda x: torch.lerp(x, x.flip(0), 0.3), "addcmul": lambda x: torch.addcmul(x, x.flip(0), x, value=0.5), "rsub": lambda x: torch.rsub(x, x.flip(0), alpha=2),
    "relu": F.relu, "atan2": lambda x: torch.atan2(x, x.flip(0)), "logit": lambda x: torch.logit(x, 0.1), "gelu": lambda x: F.gelu(x, approximate="tanh"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FEW))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_few_elements_are_what_many_are(name, dtype):
    """Few go straight to a loop where they lie densely, through the array library's ufuncs where not."""
    x = numbers(977, dtype)
    expected = FEW[name](x)
    for n in (0, 1, 31, 32, 33, 976):
        start = 977 - n
        padded = torch.stack([x[start:], x[start:]], -1)
        same(FEW[name](padded[..., 0]), FEW[name](x[start:].clone()))
    for shape in ((1, 977), (977, 1)):
        same(FEW[name](x.reshape(shape)) if shape[0] == 977 else expected.reshape(shape), expected.reshape(shape))
    scalar = torch.tensor(0.75, dtype=dtype)
    if "flip" not in name and name not in ("lerp", "addcmul", "rsub", "atan2"):
        same(FEW[name](scalar), FEW[name](scalar.reshape(1)).reshape(()))
    recorded = x.clone().requires_grad_()
    assert FEW[name](recorded).grad_fn is not None and FEW[name](x).grad_fn is None


def test_parts_of_complex_numbers_that_are_none():
    x = torch.tensor([complex(np.nan, np.inf), complex(-np.inf, -0.0), 1 + 2j])
    for d in (torch.complex64, torch.complex128):
        big = torch.finfo(d).max
        z = x.to(d)
        assert torch.nan_to_num(z).tolist() == [complex(0, big), complex(-big, -0.0), 1 + 2j]
        assert torch.nan_to_num(z.reshape(3, 1).expand(3, 2), 5, 6, 7)[:, 1].tolist() == [
            5 + 6j,
            complex(7, -0.0),
            1 + 2j,
        ]
        assert torch.nan_to_num(z).dtype is d


def test_numbers_that_single_precision_does_not_hold():
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match="overflow"):
        F.elu(x, 1e300)
    assert (
        x.nan_to_num(posinf=1e300).tolist() == [1.0] * 3
        and torch.tensor([np.inf]).nan_to_num(posinf=1e300).item() == np.inf
    )


@pytest.mark.parametrize("own", [torch.float32, torch.bfloat16, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("other", [torch.float32, torch.float64, torch.int64, torch.bfloat16], ids=str)
def test_a_tensor_of_another_dtype_is_met_in_place(own, other):
    x, y = (
        numbers(35, own).reshape(5, 7),
        (numbers(35, torch.float32, 1).nan_to_num(0, 0, 0) * 3).to(other).reshape(5, 7),
    )
    for op in (torch.add, torch.mul, torch.sub):
        for a, b in ((x, y), (x.t(), y.t()), (x, y[0])):
            expected, found = op(a, b).to(own), a.clone()
            version = found._version
            assert getattr(found, f"{op.__name__}_")(b) is found and found._version == version + 1
            torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(3, dtype=torch.int64).add_(torch.ones(3))
    with pytest.raises(RuntimeError, match="shape"):
        torch.ones(3).add_(torch.ones(2, 3, dtype=torch.float64))


def test_results_of_few_columns_of_many_rows():
    rng = np.random.default_rng(0)
    for rows, columns in ((128, 1), (200, 3), (1000, 16), (131, 64), (257, 63), (128, 65)):
        x = rng.standard_normal((2, rows, columns))
        for d, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
            t = torch.from_numpy(x).to(d)
            np.testing.assert_allclose(t.sum(1).numpy(), x.sum(1), rtol=tolerance, atol=100 * tolerance)
            np.testing.assert_allclose(t.mean(1).numpy(), x.mean(1), rtol=tolerance, atol=tolerance)
            same(
                t.amax(1), torch.stack([row.amax() for row in t.transpose(1, 2).reshape(-1, rows)]).reshape(2, columns)
            )
            t[0, rows - 1, 0] = np.nan
            assert t.amin(1).isnan().sum() == 1 and t.sum(1).isnan().sum() == 1


def test_an_output_is_written_without_a_look_at_its_elements():
    x, out = torch.rand(3, 4), torch.empty(3, 4)
    assert torch.exp(x, out=out) is out and torch.equal(out, x.exp())
    assert torch.equal(torch.exp(x, out=None), x.exp())
    with pytest.raises(TypeError):
        torch.exp(x, other=None)
