"""With deterministic algorithms what is compiled is, bit for bit, what is not: results, gradients, and parameters after some steps, on any
number of threads."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as torch
import pullback.nn.functional as F
from pullback import nn
from tests.joint import compare
from tests.joint.generator import generate
from tests.joint.targets import against, compiled_by
from tests.laws.programs import bounded, differentiable, inputs, numbers, program
from tests.laws.test_compiled import IMAGES, UNCOMPILED
from tests.laws.test_runs import MODELS, WAYS, bits, perceptron, run

DTYPES = ("float64", "float32", "bfloat16", "float16")


@pytest.fixture(autouse=True)
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def equal(a, b) -> bool:
    """The same bits; one NaN is as good as another."""
    a, b = (
        np.asarray(t.detach().float() if t.dtype in (torch.bfloat16, torch.float16) else t.detach()) for t in (a, b)
    )
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    signs = np.signbit(a) == np.signbit(b) if a.dtype.kind == "f" else True
    return bool((((a == b) & signs) | ((a != a) & (b != b))).all())


def assert_equal(f, *tensors, threads: int = 1, **options) -> None:
    """What `f` gives, and its gradients, are the same compiled."""
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(threads)
    try:
        for function in (f, torch.compile(f, **options)):
            leaves = [t.detach().clone().requires_grad_(t.is_floating_point()) for t in tensors]
            torch.manual_seed(3)
            out = function(*leaves)
            outs = [out] if isinstance(out, torch.Tensor) else list(out)
            weights = [torch.randn(o.shape).to(o.dtype) for o in outs]
            grads = torch.autograd.grad(outs, leaves, weights, allow_unused=True) if outs[0].requires_grad else ()
            seen.append([*outs, *[g for g in grads if g is not None]])
    finally:
        torch.set_num_threads(before)
    wrong = [k for k, (eager, compiled) in enumerate(zip(*seen, strict=True)) if not equal(eager, compiled)]
    assert not wrong, [(k, seen[0][k], seen[1][k]) for k in wrong]


# ---- training
@pytest.mark.parametrize("name", MODELS)
def test_training_steps(name) -> None:
    eager = bits(run(MODELS[name], "eager", 1))
    assert all(bits(run(MODELS[name], way, threads)) == eager for way in WAYS[1:] for threads in (1, 2))


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
        lambda p: torch.optim.AdamW(p, 1e-2, amsgrad=True),
        lambda p: torch.optim.RMSprop(p, 1e-2, momentum=0.5, centered=True),
        lambda p: torch.optim.Adagrad(p, 1e-2),
        lambda p: torch.optim.NAdam(p, 1e-2),
        lambda p: torch.optim.RAdam(p, 1e-2),
        lambda p: torch.optim.ASGD(p, 1e-2, t0=1),
        lambda p: torch.optim.Adafactor(p, 1e-2),
        lambda p: torch.optim.Adadelta(p, 1e-2),
        lambda p: torch.optim.Adamax(p, 1e-2),
        lambda p: torch.optim.Rprop(p, 1e-2),
    ],
    ids=[
        "SGD",
        "AdamW",
        "RMSprop",
        "Adagrad",
        "NAdam",
        "RAdam",
        "ASGD",
        "Adafactor",
        "Adadelta",
        "Adamax",
        "Rprop",
    ],
)
def test_optimizers(make) -> None:
    found = []
    for wrap in (lambda f: f, torch.compile):
        torch.manual_seed(0)
        model, loss = perceptron()
        optimizer = make(list(model.parameters()))

        def step(loss=loss, optimizer=optimizer):
            optimizer.zero_grad()
            value = loss()
            value.backward()
            optimizer.step()
            return value

        whole = wrap(step)
        found.append(bits([*[whole().detach() for _ in range(7)], *[p.detach() for p in model.parameters()]]))
    assert found[0] == found[1]


# ---- random programs
@bounded
@given(differentiable, inputs, st.sampled_from(DTYPES))
def test_programs(names, drawn, dtype) -> None:
    names = [n for n in names if n not in UNCOMPILED and (dtype == "float64" or n != "product")] or ["sin"]
    assert_equal(program(names), numbers(*drawn).to(getattr(torch, dtype)), dynamic=False)


@bounded
@given(st.lists(st.sampled_from(sorted(IMAGES)), min_size=1, max_size=3), st.booleans(), st.sampled_from((1, 2)))
def test_images(names, last, threads) -> None:
    def f(x):
        for name in names:
            x = IMAGES[name](x)
        return x

    x = numbers((2, 4, 16, 16), 3).float()
    assert_equal(f, x.contiguous(memory_format=torch.channels_last) if last else x, threads=threads, dynamic=False)


def test_programs_that_write(monkeypatch) -> None:
    """Those of the laws of functions compiled ahead of time. Where a result is a view of an argument or of another result, a compiled function
    adds up what it knows of a gradient before the rest: there gradients may differ in the last bits, and are not asked for."""

    def same(a, b):
        return a.shape == b.shape and a.dtype == b.dtype and bool(((a == b) | ((a != a) & (b != b))).all())

    gradients = compare.gradients

    def of_results(program, tensors, watched):
        memory = [t.untyped_storage()._cdata for t in (*watched, *tensors)]
        own = [t for k, t in enumerate(tensors, len(watched)) if memory[k] not in memory[:k]]
        return gradients(program, own, watched)

    monkeypatch.setattr(compare, "same_values", same)
    monkeypatch.setattr(compare, "gradients", of_results)
    form = against(compiled_by("inductor"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(30):
            assert not (reasons := form(generate(seed))), f"seed {seed}: {reasons}\n{generate(seed).source()}"


# ---- calls of which eager mode has kernels of its own
def of(*shapes):
    return lambda: [torch.randn(shape) for shape in shapes]


CALLS = {
    "matmul 1 1": (torch.matmul, of((70,), (70,))),
    "matmul 2 1": (torch.matmul, of((33, 70), (70,))),
    "matmul 1 2": (torch.matmul, of((70,), (70, 33))),
    "matmul 2 2": (torch.matmul, of((40, 70), (70, 33))),
    "matmul 3 1": (torch.matmul, of((3, 40, 70), (70,))),
    "matmul 3 2": (torch.matmul, of((3, 40, 70), (70, 33))),
    "matmul 2 3": (torch.matmul, of((40, 70), (5, 70, 33))),
    "matmul 3 3": (torch.matmul, of((5, 40, 70), (5, 70, 33))),
    "matmul 4 3": (torch.matmul, of((2, 5, 40, 70), (5, 70, 33))),
    "matmul turned": (lambda x, y: x.transpose(-1, -2) @ y.mT, of((5, 70, 40), (5, 33, 70))),
    "linear 1": (F.linear, of((70,), (33, 70), (33,))),
    "linear 2": (F.linear, of((40, 70), (33, 70), (33,))),
    "linear 3": (F.linear, of((4, 40, 70), (33, 70), (33,))),
    "linear of columns": (lambda x, w: F.linear(x.transpose(1, 2), w), of((4, 70, 40), (33, 70))),
    "einsum": (lambda x, y: torch.einsum("bij,bkj->bik", x, y), of((3, 20, 70), (3, 30, 70))),
    "baddbmm": (lambda a, x, y: torch.baddbmm(a, x, y, beta=0.5, alpha=2.0), of((3, 20, 30), (3, 20, 70), (3, 70, 30))),
    "outer": (torch.outer, of((300,), (70,))),
    "softmax": (lambda x: x.softmax(-1), of((40, 300))),
    "softmax of columns": (lambda x: x.log_softmax(0), of((40, 300))),
    "logsumexp": (lambda x: x.logsumexp(-1), of((40, 300))),
    "sums": (lambda x: x.sum(0).tanh().sum() + x.mean(-1).exp().sum(), of((200, 900))),
    "moments": (lambda x: x.std(0).sum() * x.var(1).sum(), of((200, 90))),
    "norms": (lambda x: x.norm() + x.norm(1, 0).sum() + torch.linalg.vector_norm(x, 3, dim=1).sum(), of((200, 90))),
    "scans": (lambda x: x.cumsum(0) * x.cumprod(1) + x.logcumsumexp(1), of((50, 20))),
    "products": (lambda x: x.prod(1) * x.prod(), of((6, 4))),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (70,), w, b), of((4, 33, 70), (70,), (70,))),
    "rms norm": (lambda x, w: F.rms_norm(x, (70,), w), of((4, 33, 70), (70,))),
    "group norm": (lambda x, w, b: F.group_norm(x, 4, w, b), of((3, 16, 9, 7), (16,), (16,))),
    "batch norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), of((5, 16, 9, 7), (16,), (16,))),
    "conv": (lambda x, w, b: F.conv2d(x, w, b, 2, 1), of((3, 8, 17, 15), (16, 8, 3, 3), (16,))),
    "conv 1d": (lambda x, w: F.conv1d(x, w, padding="same"), of((3, 8, 40), (16, 8, 5))),
    "conv in groups": (lambda x, w: F.conv2d(x, w, groups=4, padding=1), of((3, 8, 17, 15), (16, 2, 3, 3))),
    "transposed conv": (lambda x, w: F.conv_transpose2d(x, w, stride=2), of((3, 8, 9, 7), (8, 6, 3, 3))),
    "pools": (lambda x: F.max_pool2d(x, 3, 2, 1) * F.avg_pool2d(x, 3, 2, 1), of((3, 8, 17, 15))),
    "attention": (F.scaled_dot_product_attention, of((2, 3, 40, 16), (2, 3, 40, 16), (2, 3, 40, 16))),
    "causal attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), of(*[(1, 2, 200, 16)] * 3),
    ),
    "activations": (
        lambda x: F.gelu(x) + F.gelu(x, approximate="tanh") + F.silu(x) * F.softplus(x) + F.mish(x) + F.elu(x) + F.selu(x),
        of((70, 300)),
    ),
    "functions": (
        lambda x: (x.sin() * x.cos() + x.exp().log1p() - x.tanh().atan()) / (x.square() + 1).rsqrt() + x.erf() * x.sigmoid(),
        of((70, 300)),
    ),
    "large": (lambda x: (x.tanh() * x.exp() + F.gelu(x)).sigmoid() * x, of((300_000,))),
    "broadcast": (lambda x, y, z: (x * y + z).relu() / (1 + y.abs()) - z.tanh(), of((300, 1, 70), (9, 70), (300, 9, 1))),
    "losses": (
        lambda x, y: F.mse_loss(x, y) + F.smooth_l1_loss(x, y) + F.binary_cross_entropy_with_logits(x, y.sigmoid())
        + F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean") + F.huber_loss(x, y, reduction="sum"),
        of((50, 70), (50, 70)),
    ),
    "cross entropy": (
        lambda x: F.cross_entropy(x, torch.arange(50) % 7, label_smoothing=0.1) + F.nll_loss(x.log_softmax(1), torch.arange(50) % 5),
        of((50, 7)),
    ),
    "picking": (
        lambda x: x[torch.arange(90) % 40].sum(0) * x.index_select(1, torch.arange(60) % 30)[:, :30].mean(0), of((40, 30)),
    ),
    "embedding": (lambda w: F.embedding(torch.arange(200).reshape(10, 20) % 37, w).tanh().sum(1), of((40, 30))),
    "dropout": (lambda x: F.dropout(x, 0.4) * x, of((70, 300))),
    "sorting": (lambda x: x.sort(1).values * x.topk(30, 1).values + x.median(1, keepdim=True).values, of((20, 30))),
    "resizing": (lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"), of((2, 3, 9, 7))),
}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_calls(dtype, threads) -> None:
    """All of them in one graph, so that the C compiler runs seldom; gradients of each."""
    torch.manual_seed(1)
    given = [[t.to(getattr(torch, dtype)) for t in make()] for _, make in CALLS.values()]
    ends = list(itertools.accumulate(len(tensors) for tensors in given))

    def f(*tensors):
        return tuple(
            [call(*tensors[e - len(g) : e]) for (call, _), g, e in zip(CALLS.values(), given, ends, strict=True)]
        )

    assert_equal(f, *[t for tensors in given for t in tensors], threads=threads, fullgraph=True)


@pytest.mark.parametrize("make", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells_over_time(make) -> None:
    torch.manual_seed(0)
    cell = make(12, 20)

    def f(x):
        state = None
        for k in range(5):
            state = cell(x[:, k], state)
        return state[0]

    assert_equal(f, torch.randn(7, 5, 12))


# ---- the mode
def test_a_function_is_compiled_again_under_the_mode() -> None:
    f = lambda x: x.softmax(-1).sum(0).tanh() * 3  # noqa: E731
    compiled, x = torch.compile(f), torch.randn(64, 300)
    torch.use_deterministic_algorithms(False)
    compiled(x)
    torch.use_deterministic_algorithms(True)
    assert equal(compiled(x), f(x))


def test_a_function_of_symbolic_sizes() -> None:
    f = lambda x: (x.softmax(-1).sum(0) * 3).tanh()  # noqa: E731
    compiled = torch.compile(f, dynamic=True)
    for n in (30, 50, 70):
        x = torch.randn(n, 3 * n)
        assert equal(compiled(x), f(x))


def test_a_function_that_asks_for_it() -> None:
    def f(x):
        torch.use_deterministic_algorithms(True)
        y = x.softmax(-1).sum(0).tanh()
        torch.use_deterministic_algorithms(False)
        return y

    x = torch.randn(64, 300)
    assert equal(torch.compile(f)(x), f(x))
