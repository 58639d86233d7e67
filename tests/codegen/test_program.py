"""Native code gives what operators give: random graphs of element-wise steps, reductions and views, and the corners of each dtype."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pullback as torch
import pullback.nn.functional as F
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import Native, compile_graph
from pullback.runtime.build import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

TOLERANCE = dict(rtol=2e-5, atol=1e-6)  # single precision: our functions are within 4 units in the last place


def native(f, *args, whole: bool = True) -> Native:
    """A function as native code; `whole`: without an operator left."""
    result = compile_graph(make_fx(f, tracing_mode="fake")(*args))
    assert isinstance(result, Native), "nothing was lowered"
    if whole:
        assert result.native, result.fallbacks
    return result


def check(f, *args, whole: bool = True, exact: bool = False) -> Native:
    """Native results are the operators' in value, shape, dtype and strides."""
    result = native(f, *args, whole=whole)
    got, want = result(*args), f(*args)
    for g, w in zip(*(x if isinstance(x, (tuple, list)) else (x,) for x in (got, want)), strict=True):
        assert g.shape == w.shape and g.dtype is w.dtype and g.stride() == w.stride()
        if exact or not w.dtype.is_floating_point:
            np.testing.assert_array_equal(as_numpy(g), as_numpy(w))
        else:
            np.testing.assert_allclose(as_numpy(g), as_numpy(w), **TOLERANCE)
    return result


def as_numpy(t):
    return t.float().numpy() if t.dtype in (torch.bfloat16, torch.float16) else t.numpy()


# ---- random graphs
UNARY = [
    torch.sin, torch.tanh, torch.sigmoid, torch.exp, torch.neg, torch.abs, F.relu, F.gelu, F.silu, torch.square,
    lambda x: x.clamp(-1, 1), lambda x: x * 0.5 + 1, lambda x: torch.where(x > 0, x, -x), lambda x: x.floor(),
    lambda x: (x.abs() + 1).log(), lambda x: (x.abs() + 1).sqrt(), F.elu, lambda x: F.leaky_relu(x, 0.1), lambda x: x / 3,
    *[lambda x: (x @ (x.transpose(-1, -2) @ x)).tanh()] * 6, lambda x: x.cumsum(1),
]  # fmt: skip
BINARY = [torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum, lambda x, y: x / (y.abs() + 1), torch.atan2]
REDUCE = [
    lambda x, d: x.sum(d, True), lambda x, d: x.mean(d, True), lambda x, d: x.amax(d, True), lambda x, d: x.softmax(d),
    lambda x, d: x.log_softmax(d), lambda x, d: x.var(d, keepdim=True), lambda x, d: (x - x.mean(d, True)),
]  # fmt: skip
VIEWS = [
    lambda x: x.transpose(0, 1), lambda x: x.transpose(-1, -2), lambda x: x.flatten().reshape(x.shape),
    lambda x: x.permute(2, 0, 1), lambda x: x[:, 1:], lambda x: x[:1], lambda x: x.unsqueeze(1).squeeze(1),
    lambda x: x.reshape(x.shape[0], -1).reshape(x.shape), lambda x: torch.cat([x, x * 2], 1), lambda x: x[..., ::2],
    lambda x: x.contiguous(), lambda x: x.expand(2, *x.shape)[1],
]  # fmt: skip


@st.composite
def programs(draw):
    """A function of two tensors of three dimensions, and their shape."""
    shape = draw(st.tuples(*[st.integers(2, 9)] * 3))
    steps = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99), st.integers(0, 9)), min_size=2, max_size=14))

    def f(x, y):
        result = [x, y, x + y]
        for kind, which, at in steps:
            a = result[at % len(result)]
            if min(a.shape) < 2:
                continue
            if kind == 0:
                result.append(UNARY[which % len(UNARY)](a))
            elif kind == 1:
                alike = [b for b in result if b.shape == a.shape]
                result.append(BINARY[which % len(BINARY)](a, alike[-1]))
            elif kind == 2:
                result.append(a + REDUCE[which % len(REDUCE)](a, at % 3))
            else:
                result.append(VIEWS[which % len(VIEWS)](a))
        return result[-1] * 1, result[len(result) // 2] + 0, result[-1].sum((0, 2))

    return f, shape, steps


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs())
def test_random_graphs(program):
    f, shape, _ = program
    torch.manual_seed(3)
    check(f, torch.randn(shape, dtype=torch.float64), torch.randn(shape, dtype=torch.float64), whole=False)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs())
def test_without_fusion_too(program):
    from pullback.capture.front.config import native as options

    f, shape, _ = program
    torch.manual_seed(4)
    options.max_fusion = False
    try:
        check(f, torch.randn(shape, dtype=torch.float64), torch.randn(shape, dtype=torch.float64), whole=False)
    finally:
        options.max_fusion = True


# ---- corners of the dtypes
SPECIAL = torch.tensor(
    [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-45, -1e-40, 3.4e38, -3.4e38, 88.8, -104.0, 1e-7, 0.5]
)


@pytest.mark.parametrize(
    "f",
    [
        torch.exp, torch.log, torch.tanh, torch.sigmoid, torch.erf, torch.expm1, torch.log1p, torch.sqrt, torch.rsqrt, F.gelu,
        F.silu, F.softplus, torch.sign, torch.round, torch.trunc, torch.isnan, torch.isinf, torch.isfinite, torch.signbit,
        torch.reciprocal, lambda x: x.pow(3), lambda x: x.clamp(-1, 1), lambda x: torch.maximum(x, x.flip(0)),
        lambda x: torch.fmin(x, x.flip(0)), lambda x: torch.remainder(x, 0.7), lambda x: torch.floor_divide(x, 0.7),
        lambda x: torch.fmod(x, -0.7), lambda x: x.to(torch.bool), lambda x: x == x, lambda x: x.nan_to_num(),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_infinities_nan_and_denormals(f, dtype):
    check(f, SPECIAL.to(dtype), whole=False)


def test_reductions_see_nan_and_infinity():
    x = torch.randn(6, 40)
    x[0, 3], x[1, 7], x[2, 0], x[3] = math.nan, math.inf, -math.inf, -math.inf
    check(lambda x: (x.amax(1), x.amin(1), x.sum(1), x.amax(0), x.amin(), x.softmax(1), x.any(1), x.all(0)), x)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64])
def test_integers_wrap_divide_and_shift(dtype):
    info = torch.iinfo(dtype)
    x = torch.tensor([info.min, info.max, 0, 1, 3, 5, 100, info.max - 1], dtype=dtype)
    check(
        lambda x: (x + x, x * x, x - 3, x // 3, x % 3, x // 2, x << 1, x >> 1, x << 70, x & 5, x ^ x.flip(0), ~x, x.abs(), -x,
                   torch.fmod(x, 3), x.sum(), x.amax(), x > 2, x / 2, x.to(torch.float32), torch.maximum(x, x.flip(0)), x.sign()),
        x, whole=False,
    )  # fmt: skip


def test_least_integer_by_minus_one():
    x = torch.tensor([-(2**63), 7, -7])
    check(lambda x: (x // -1, x % -1), x)


def test_division_by_a_zero_raises_as_eager_does():
    f = lambda x, y: x // y  # noqa: E731
    args = torch.tensor([1, 2]), torch.tensor([1, 0])
    result = compile_graph(make_fx(f, tracing_mode="fake")(*args))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        result(*args)


def test_booleans():
    x, y = torch.tensor([True, False, True]), torch.tensor([True, True, False])
    check(
        lambda x, y: (
            x & y,
            x | y,
            x ^ y,
            ~x,
            x + y,
            x * y,
            x == y,
            x.sum(),
            x.any(),
            x.all(),
            x.float(),
            torch.where(x, 1, 2),
        ),
        x,
        y,
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_floats_round_as_operators_do(dtype):
    torch.manual_seed(0)
    x = torch.cat([torch.randn(50) * 10, torch.tensor([math.inf, math.nan, 65504.0, 1e-7, 6e-8, -0.0, 70000.0])]).to(
        dtype
    )
    check(
        lambda x: (x + x, x * 1.1, x.relu(), x.to(torch.float32), (x + 1).to(torch.int32), x > 0, x.abs()),
        x[:50],
        exact=True,
    )
    check(lambda x: (x + x, x * 1.1, x - 0.3, x.to(torch.float32), x.to(torch.float64)), x, exact=True)
    result = native(lambda x: (x.sum(), x.softmax(0), x.amax()), x[:50])
    for got, want in zip(result(x[:50]), (x[:50].sum(), x[:50].softmax(0), x[:50].amax()), strict=True):
        torch.testing.assert_close(got, want)


def test_casts():
    x = torch.tensor([1.7, -1.7, 300.5, -300.5, 0.0, 2.0**40])
    check(
        lambda x: tuple(
            x.to(d) for d in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool, torch.float16)
        ),
        x,
    )


# ---- layouts
def test_strided_expanded_and_aliased_inputs():
    base = torch.randn(6, 8)
    x, y, z = base.t(), base[::2, 1::2], torch.randn(8, 1).expand(8, 6)
    check(lambda x, z: x * z + 1, x, z)
    check(lambda y: y.exp().sum(0), y)
    check(lambda x, y: x.t() + y, x, base)
    check(lambda x: x + 1, torch.as_strided(base, (3, 4), (1, 1)))


def test_empty_and_zero_dimensional():
    check(lambda x: (x + 1, x.sum(), x.sum(0), x.prod(1)), torch.randn(0, 3))
    check(lambda x: (x.exp(), x.sum(), x.reshape(1, 1), x.softmax(0)), torch.randn(()), whole=False)


def test_outputs_that_are_inputs_and_views():
    x = torch.randn(4, 5)
    result = native(lambda x: (x, x.t(), (x + 1).t(), (x * 2)[1:]), x)
    same, view, turned, part = result(x)
    assert same is x and view.data_ptr() == x.data_ptr() and turned.stride() == (1, 5)
    torch.testing.assert_close(part, (x * 2)[1:])
    assert part.storage_offset() == 5


def test_other_strides_and_subclasses_run_as_operators():
    f = lambda x: x.sum(0) + 1  # noqa: E731
    result = native(f, torch.randn(4, 4))
    other = torch.randn(4, 4).t()
    torch.testing.assert_close(result(other), f(other))
    torch.testing.assert_close(result(other.double()), f(other.double()))
    odd = torch.from_numpy(np.frombuffer(b"." + bytes(64), np.float32, 16, 1).reshape(4, 4))
    torch.testing.assert_close(result(odd), f(odd))


def test_an_index_out_of_bounds_is_eagers_error():
    weight, at = torch.randn(5, 3), torch.tensor([1, 7])
    result = native(lambda w, i: F.embedding(i, w) * 2, weight, torch.tensor([1, 2]))
    with pytest.raises(IndexError):
        result(weight, at)
    torch.testing.assert_close(result(weight, torch.tensor([4, 0])), weight[torch.tensor([4, 0])] * 2)


def test_random_operators_run_before_and_keep_their_stream():
    def f(x):
        a = F.dropout(x * 2, 0.5)
        return a + torch.rand_like(x)

    x = torch.randn(50)
    result = native(f, x, whole=False)
    torch.manual_seed(5)
    got = result(x)
    torch.manual_seed(5)
    torch.testing.assert_close(got, f(x))


# ---- fusion
def test_a_chain_is_one_kernel():
    result = check(lambda x: (x.sin() + 1).exp().mul(2).tanh(), torch.randn(40, 50))
    assert len(result.kernels) == 1


def test_softmax_and_layer_norm_are_one_kernel():
    result = check(lambda x: F.softmax(x * 0.3, -1), torch.randn(40, 50))
    assert len(result.kernels) == 1
    result = check(
        lambda x, w, b: F.gelu(F.layer_norm(x + 1, (50,), w, b)),
        torch.randn(4, 10, 50),
        torch.randn(50),
        torch.randn(50),
    )
    assert len(result.kernels) == 1


def test_equal_kernels_are_one_function():
    f = lambda x, y, z: (x.exp() + 1, y.exp() + 1, z.exp() + 1)  # noqa: E731
    result = check(f, torch.randn(40), torch.randn(40), torch.randn(40))
    assert result.source.count("static void kernel") == 1 and result.source.count("{kernel0, ") == 3


def test_equal_kernels_on_parts_of_one_buffer_are_one_function():
    def f(x):
        rows = [x[k].exp().cumsum(0) for k in range(5)]
        sums = x[1:4, 1].sum(0), x[2:5, 3].sum(0)
        return *rows, *sums, x[2:4].flip(0).sin(), x[:2].flip(0).sin()

    result = check(f, torch.randn(5, 6, 7))
    assert len(result.functions) == 3, result.functions


@pytest.mark.parametrize("steps", [4, 12])
def test_rounds_of_a_loop_are_rows_of_a_table(steps):
    def f(x, w):
        h = x[0]
        for k in range(1, steps):
            h = torch.tanh(h @ w + x[k])
        return h

    result = check(f, torch.randn(steps, 3, 4), torch.randn(4, 4))
    assert len(result.functions) == 1 and result.source.count("{kernel0, ") == steps - 1
    assert result.source.partition("long entry(")[2].count("\n") < 20  # whatever the number of rounds


def test_long_sums_keep_their_accuracy():
    x = torch.rand(1 << 20) + 1
    result = native(lambda x: (x.sum(), x.reshape(-1, 4).sum(0)), x)
    whole, columns = result(x)
    exact = x.double()
    assert abs(whole.item() / exact.sum().item() - 1) < 1e-6
    np.testing.assert_allclose(columns.numpy(), exact.reshape(-1, 4).sum(0).numpy(), rtol=1e-6)


def test_memory_of_a_dying_buffer_is_not_taken_too_early():
    def f(x, w):
        a, b = x @ w, w @ x
        c = x.exp()
        return c + a, (b * 2).tanh(), (a - b).sum(0), a.sin() * c

    check(f, torch.randn(6, 6), torch.randn(6, 6))


def test_recurrent_and_convolutional_training_steps():
    from pullback import nn

    torch.manual_seed(0)
    recurrent = nn.LSTM(6, 5)
    convolutional = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(8, 4, 2, groups=2),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip
    for module, f, x in (
        (recurrent, lambda x: recurrent(x)[0].pow(2).sum(), torch.randn(4, 2, 6)),
        (convolutional, lambda x: F.mse_loss(convolutional(x), torch.ones(2, 3)), torch.randn(2, 3, 16, 16)),
    ):
        want = torch.autograd.grad(f(x), list(module.parameters()))
        got = torch.autograd.grad(torch.compile(f, backend="inductor")(x), list(module.parameters()))
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-4, atol=1e-5)


def test_sizes_that_change():
    from pullback import nn

    layer = nn.Linear(4, 3)
    f = lambda x: (layer(x).view(-1) * x.shape[0]).exp().sum()  # noqa: E731
    compiled = torch.compile(f, backend="inductor", dynamic=True)
    for n in (5, 7, 5, 1):
        x = torch.randn(n, 4)
        torch.testing.assert_close(compiled(x), f(x))
        got, want = (torch.autograd.grad(g(x), [layer.weight])[0] for g in (compiled, f))
        torch.testing.assert_close(got, want)


def test_deterministic_arithmetic_is_bit_equal():
    torch.manual_seed(1)
    x, y, z = (torch.randn(1000) for _ in range(3))
    f = lambda x, y, z: (x * y + z, x * x - y * y, (x + y) * z / 3, torch.lerp(x, y, 0.3))  # noqa: E731
    torch.use_deterministic_algorithms(True)
    try:
        check(f, x, y, z, exact=True)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x.argmax(1), x.argmin(), x.argmax(0, True), *x.max(1), *x.min(0)),
        lambda x: (x[torch.tensor([2, 0, -1])], x[:, torch.tensor([[1, 0], [3, -2]])], x[torch.tensor([0, 1]), torch.tensor([3, 2])]),
        lambda x: (x.flip(0), x.flip(0, 1), x.roll(2, 1), x.repeat(2, 3), x.tril(), x.triu(1), x.logsumexp(1), x.norm(), x.norm(1, 0)),
        lambda x: (torch.var_mean(x, 1)[0], x.gather(1, torch.tensor([[0, 1], [2, 0]])), x.index_select(1, torch.tensor([1, 1, 0]))),
        lambda x: torch.zeros(3, 5).index_add(0, torch.tensor([2, 0, 2, 1]), x),
        lambda x: torch.zeros(4, 5).index_put((torch.tensor([1, 1, -1]),), x[:3], accumulate=True),
        lambda x: torch.zeros(4, 5).scatter_add(1, torch.tensor([[0, 0, 4, 2, 0]] * 4), x),
        lambda x: (torch.logaddexp(x, x.flip(1)), F.pad(x, (1, 2, 0, 1), value=3.0), torch.stack([x, x * 2], 1), x.diagonal().clone()),
    ],
)  # fmt: skip
def test_picking_and_placing(f):
    torch.manual_seed(0)
    check(f, torch.randn(4, 5))


def test_places_of_nan_and_of_equal_extremes():
    x = torch.tensor([[1.0, 3.0, 3.0, 2.0], [math.nan, 5.0, math.nan, 1.0], [-math.inf] * 4])
    check(lambda x: (x.argmax(1), *x.max(1), *x.min(1)), x)


def test_long_chains_and_shared_subexpressions():
    def chain(x):
        for _ in range(400):
            x = -(x * 0.99)
        return x

    def squares(x):
        for _ in range(30):
            x = x * x * 0.5 + x * 0.25
        return x

    x = torch.randn(20, dtype=torch.float64) * 0.5
    check(chain, x)
    result = check(squares, x)
    assert len(result.source) < 60_000


def test_threads_give_the_same():
    from pullback.capture.front.config import native as options

    torch.manual_seed(0)
    x, w = torch.randn(300, 200), torch.randn(200, 500)
    f = lambda x, w: (F.softmax(x @ w, -1), (x.exp() + 1).sum(0), (x * 2).sum(), F.gelu(x), x.t().contiguous())  # noqa: E731
    result = native(f, x, w)
    result.segments[0].threads = lambda: 1
    result.build()
    single = result(x, w)
    result.segments[0].threads = lambda: 3
    result.build()
    for one, many in zip(single, result(x, w), strict=True):
        torch.testing.assert_close(one, many)
    assert options.cpp.threads == -1


def test_dropouts_of_many_layers_are_drawn_before_one_native_call():
    def f(x):
        for _ in range(4):
            x = F.dropout((x * 2).tanh(), 0.5)
        return x

    x = torch.randn(50)
    result = native(f, x, whole=False)
    assert len(result.segments) == 1
    torch.manual_seed(5)
    got = result(x)
    torch.manual_seed(5)
    torch.testing.assert_close(got, f(x))


def test_statistics_of_channels_run_along_memory():
    f = lambda x, w: F.batch_norm(x + w.view(1, 8, 1, 1), None, None, w, w, True)  # noqa: E731
    result = check(f, torch.randn(4, 8, 6, 6), torch.randn(8))
    assert "width" not in result.functions[0]  # not across channels, whose elements lie apart
    check(lambda x, w: F.batch_norm(x, w, w * w, w, w), torch.randn(4, 8, 6, 6), torch.randn(8))


@pytest.mark.parametrize("d", [torch.float32, torch.bfloat16])
def test_attention_lies_as_operators_lay_it(d):
    """Heads that are a transposed view, put together again without a copy."""
    x = torch.randn(2, 6, 3, 4, 8).to(d)

    def f(x):
        q, k, v = x.permute(2, 0, 3, 1, 4)
        return (
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 6, 32)
        )

    compiled = compile_graph(make_fx(f, tracing_mode="fake")(x))
    assert compiled.native, compiled.reasons
    assert torch.allclose(
        compiled(x), f(x), rtol=1e-4 if d is torch.float32 else 1e-2, atol=1e-5 if d is torch.float32 else 1e-2
    )


@pytest.mark.parametrize("d", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_in_low_precision(d, training):
    """Statistics in single precision, as operators keep them; with gradients and the running ones."""
    x = torch.randn(8, 4, 6, 6).to(d)
    weight, mean, variance = torch.rand(4) + 0.5, torch.randn(4), torch.rand(4) + 0.5

    def f(x, weight, mean, variance):
        if not training:
            return (F.batch_norm(x, mean, variance, weight),)
        return torch.ops.aten._native_batch_norm_legit_functional(x, weight, None, mean, variance, True, 0.1, 1e-5)

    compiled = native(f, x, weight, mean, variance)
    for got, want in zip(compiled(x, weight, mean, variance), f(x, weight, mean, variance), strict=True):
        assert got.dtype is want.dtype
        np.testing.assert_allclose(as_numpy(got), as_numpy(want), rtol=1e-2, atol=1e-2 if got.dtype is d else 1e-5)


# ---- losses
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy_of_logits(reduction, dtype):
    x, y, weight, positive = ((torch.randn(shape) * 9).to(dtype) for shape in [(5, 7), (5, 7), (5, 1), (7,)])
    x[0, :3] = torch.tensor([math.inf, -math.inf, math.nan])
    loss = F.binary_cross_entropy_with_logits
    exact = dict(rtol=1e-2, atol=1e-2) if dtype is torch.bfloat16 else TOLERANCE
    for f, args in (
        (lambda x, y: loss(x, y, reduction=reduction), (x, y)),
        (lambda x, y, w, p: loss(x, y, w, reduction=reduction, pos_weight=p), (x, y, weight, positive)),
    ):
        got, want = native(f, *args)(*args), f(*args)
        assert got.dtype is want.dtype and got.shape == want.shape
        np.testing.assert_allclose(as_numpy(got), as_numpy(want), **exact)


@pytest.mark.parametrize("loss", [F.mse_loss, F.huber_loss, F.binary_cross_entropy_with_logits])
def test_the_mean_loss_of_nothing_is_no_number(loss):
    x = torch.zeros(0, 3)
    assert math.isnan(native(loss, x, x)(x, x).item()) and loss(x, x).isnan()
