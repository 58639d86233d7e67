"""Every operator on fake tensors: what fakes say is what kernels produce, and nothing but metadata is touched.

Comes in: the operators and samples of the operator table. Always holds: results on fakes have the shape, strides, dtype,
device, bits and place in memory of the real ones, alias the arguments that the real ones alias, and are fakes of the
mode, inside the mode and outside it; what data decides raises an error that names the operator.
"""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import pullback as torch
from pullback.capture.fake.mode import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from pullback.core.tensor import FAKE
from pullback.ops.family.base import Family
from pullback.ops.system.dispatch import dispatch
from pullback.ops.system.operator import registry
from tests.ops.checks import rebuild, results, reversed_memory, stepped_memory, tensors_in
from tests.ops.samples import exempt, functional_operators, key_of, samples_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # what PyTorch says of deprecated forms

OPERATORS = {key_of(op): op for op in functional_operators()}
TABLE = [k for k in OPERATORS if not exempt(k)]
BY_DATA = {  # how many elements there are, or Python numbers, depend on data in some sample
    "bincount": DynamicOutputShapeException,
    "index.Tensor": DynamicOutputShapeException,
    "masked_select": DynamicOutputShapeException,
    "gru.data": DataDependentOutputException,
    "lstm.data": DataDependentOutputException,
    "rnn_relu.data": DataDependentOutputException,
    "rnn_tanh.data": DataDependentOutputException,
}


def aliases(inputs: list, outputs: list) -> list:
    """For each result, the arguments that it is or shares memory with."""
    return [
        [i for i, t in enumerate(inputs) if o is t or o._memory is not None and o._memory is t._memory] for o in outputs
    ]


def described(t) -> dict:
    stride = t.stride() if t.numel() else None  # strides of nothing say nothing
    return {
        "shape": tuple(t.shape), "dtype": t.dtype, "device": t.device, "stride": stride, "conj": t.is_conj(),
        "neg": t.is_neg(), "offset": t.storage_offset(),
    }  # fmt: skip


def compare(op, args: tuple, inside: bool) -> None:
    real = dispatch(op, args)
    mode = FakeTensorMode()
    inputs = tensors_in(args)
    fakes = [mode.from_tensor(t) for t in inputs]
    given = rebuild(args, fakes)
    if inside:
        with mode:
            fake = dispatch(op, given)
    else:
        fake = dispatch(op, given)
    assert type(fake) is type(real)
    result, wanted = results(fake), results(real)
    for f in result:
        assert f._keys & FAKE and f.fake_mode is mode, "a result is not a fake of the mode"
    assert [described(f) for f in result] == [described(r) for r in wanted]
    shared = aliases(inputs, wanted)
    assert aliases(fakes, result) == shared
    for f, r, places in zip(result, wanted, shared, strict=True):
        if places:  # what only a body made inside, and a native kernel not at all, is nobody's view
            assert f._is_view() == r._is_view()


def each_sample(key: str, change) -> None:
    op = OPERATORS[key]
    for i, (args, _) in enumerate(samples_of(op)):
        for inside in (True, False) if tensors_in(args) else (True,):
            try:
                change(op, args, inside)
            except BY_DATA.get(key, ()) as error:
                assert str(error) in (str(op), "aten._local_scalar_dense.default")
            except Exception as error:
                error.add_note(f"{key}, sample {i}, {'inside' if inside else 'outside'} the mode")
                raise


@pytest.mark.parametrize("key", TABLE)
def test_fake_is_real_without_data(key: str) -> None:
    each_sample(key, compare)


def moved(arrange):
    def change(op, args, inside):
        changed = rebuild(args, [arrange(t) for t in tensors_in(args)])
        try:
            dispatch(op, changed)
        except (RuntimeError, NotImplementedError, TypeError, ValueError):
            return  # what real tensors refuse is not asked of fakes
        compare(op, changed, inside)

    return change


@pytest.mark.parametrize("key", [k for k in TABLE if OPERATORS[k].body is None])
def test_memory_in_another_order(key: str) -> None:
    each_sample(key, moved(reversed_memory))
    each_sample(key, moved(stepped_memory))


@pytest.mark.parametrize("key", [k for k in TABLE if OPERATORS[k].body is None])
def test_conjugate_views(key: str) -> None:
    each_sample(key, moved(lambda t: t.conj() if t.dtype.is_complex else t))


@pytest.mark.parametrize("key", [k for k in TABLE if OPERATORS[k].declared.inplace])
def test_inplace(key: str) -> None:
    """In-place forms accept and refuse as they do on real tensors, and count one write."""
    op = OPERATORS[key].inplace
    for args, _ in samples_of(OPERATORS[key]):
        inputs = tensors_in(args)
        mode = FakeTensorMode()
        fakes = [mode.from_tensor(t) for t in inputs]
        try:
            real = dispatch(op, rebuild(args, [t.clone() for t in inputs]))
        except (RuntimeError, IndexError) as refused:
            with mode, pytest.raises(type(refused)):
                dispatch(op, rebuild(args, fakes))
            continue
        with mode:
            fake = dispatch(op, rebuild(args, fakes))
        assert fake is fakes[0] and fake._keys & FAKE
        assert (tuple(fake.shape), fake.dtype) == (tuple(real.shape), real.dtype)
        assert fake._version == real._version


def test_every_operator_has_a_shape_rule() -> None:
    """No operator would have to run its kernel to know what comes out."""
    without = [
        key
        for key, op in registry.items()
        if op.body is None and op.inplace_of is None and op.meta_rule is None and op.namespace == "aten"
        and type(op.family).meta is Family.meta and type(op.family).run_meta is Family.run_meta
    ]  # fmt: skip
    assert not without


HUGE = {
    "pointwise": lambda x: (x + x * 2).exp().clamp(min=0),
    "broadcast": lambda x: x + x[0],
    "reduction": lambda x: (x.sum(), x.mean(1), x.std(0), x.logsumexp(1), x.amax(0)),
    "scan": lambda x: x.cumsum(1),
    "sort": lambda x: (x.sort(1), x.topk(3), x.argmax(1), x.kthvalue(2)),
    "view": lambda x: (x.t(), x.reshape(-1), x.unfold(0, 3, 1), x[::2, 1:], x.diagonal()),
    "matmul": lambda x: (x @ x, torch.einsum("ij,kj->ik", x, x)),
    "index": lambda x: (x[torch.zeros(10**9, dtype=torch.long)], x.gather(0, x.long()), x.index_select(0, x[0].long())),
    "join": lambda x: (torch.cat([x, x]), torch.stack([x, x])),
    "softmax": lambda x: (x.softmax(1), torch.nn.functional.layer_norm(x, (10**6,))),
    "random": lambda x: (torch.rand_like(x), x.bernoulli(), torch.dropout(x, 0.5, True), x.normal_()),
    "factory": lambda x: (torch.ones(10**12), torch.arange(10**12), torch.zeros_like(x), x.new_full((10**12,), 3.0)),
    "convolution": lambda x: torch.nn.functional.conv2d(x[None, None], torch.ones(8, 1, 3, 3)),
    "pool": lambda x: torch.nn.functional.max_pool2d(x[None, None], 2),
    "linalg": lambda x: (torch.linalg.inv(x), torch.linalg.svd(x), torch.linalg.qr(x), torch.linalg.eigh(x)),
    "fft": lambda x: (torch.fft.fft(x), torch.fft.rfft2(x)),
    "copy": lambda x: (x.clone(), x.double(), x.t().contiguous(), x.copy_(x + 1)),
    "write": lambda x: (
        x.add_(1),
        x.fill_(2),
        x.zero_(),
        x.masked_fill_(x > 0, 1.0),
        x.index_put_((x[0].long(),), x[0]),
    ),
    "flip": lambda x: (
        x.flip(0),
        x.roll(1, 0),
        x.tril(),
        x.repeat(2, 1),
        x.pad if False else x.repeat_interleave(2, 0),
    ),
    "where": lambda x: (torch.where(x > 0, x, 0.0), x.masked_fill(x > 0, 1.0), x.isnan().any()),
    "attention": lambda x: torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    "embedding": lambda x: torch.nn.functional.embedding(torch.zeros(10**7, dtype=torch.long), x),
    "loss": lambda x: torch.nn.functional.cross_entropy(x, torch.zeros(10**6, dtype=torch.long)),
}


@pytest.mark.parametrize("family", HUGE)
def test_a_million_million_elements(family: str) -> None:
    """4 TB each: nothing may be made of it but metadata."""
    with FakeTensorMode():
        x = torch.empty(10**6, 10**6)
        for t in tensors_in(HUGE[family](x)):
            assert t._keys & FAKE


def test_gradients_of_a_million_million_elements() -> None:
    with FakeTensorMode():
        x = torch.empty(10**6, 10**6, requires_grad=True)
        w = torch.empty(10**6, 10**3, requires_grad=True)
        torch.nn.functional.gelu(x @ w).log_softmax(1).sum().backward()
    assert x.grad.shape == x.shape and x.grad._keys & FAKE and w.grad.stride() == w.stride()


def unset(*args, **kwargs):
    return args, kwargs


MATRIX, INTS = torch.rand(2, 3), torch.ones(2, 3, dtype=torch.long)
NO_SAMPLES = {  # operators whose numbers the table cannot compare: random ones, and memory that is not filled
    "empty.memory_format": unset((2, 4, 3, 3), memory_format=torch.channels_last), "empty_strided": unset((2, 3), (1, 2)),
    "empty_like": unset(MATRIX.t()), "new_empty": unset(MATRIX, (4, 5)), "new_empty_strided": unset(MATRIX, (4, 5), (1, 4)),
    "rand": unset((2, 3)), "randn": unset((2, 3), dtype=torch.float64), "randperm": unset(5), "randint": unset(5, (2, 3)),
    "randint.low": unset(1, 5, (2, 3)), "rand_like": unset(MATRIX.t()), "randn_like": unset(MATRIX), "randint_like": unset(MATRIX, 5),
    "randint_like.low_dtype": unset(MATRIX, 1, 5), "normal.float_float": unset(0.0, 1.0, (2, 3)), "uniform": unset(MATRIX.t()),
    "normal_functional": unset(MATRIX), "log_normal": unset(MATRIX), "cauchy": unset(MATRIX), "exponential": unset(MATRIX),
    "geometric": unset(MATRIX, 0.5), "random.from": unset(MATRIX, 1, 5), "random.to": unset(MATRIX, 5), "random": unset(INTS),
    "bernoulli": unset(MATRIX.t()), "bernoulli.Tensor": unset(MATRIX, MATRIX), "bernoulli.p": unset(MATRIX, 0.5),
    "normal.Tensor_float": unset(MATRIX), "normal.float_Tensor": unset(0.0, MATRIX), "normal.Tensor_Tensor": unset(MATRIX, MATRIX[0]),
    "multinomial": unset(MATRIX, 2), "poisson": unset(MATRIX), "binomial": unset(MATRIX, MATRIX), "_standard_gamma": unset(MATRIX),
    "_sample_dirichlet": unset(MATRIX), "native_dropout": unset(MATRIX.t(), 0.5, True),
}  # fmt: skip


@pytest.mark.parametrize("key", NO_SAMPLES)
def test_random_and_unset_memory(key: str) -> None:
    op = OPERATORS[key]
    args, kwargs = NO_SAMPLES[key]
    compare(op, op.convert(op.bind(args, kwargs)), inside=True)
    if op.inplace_of is None and op.declared.inplace:
        mode = FakeTensorMode()
        given = op.convert(op.bind(args, kwargs))
        fakes = rebuild(given, [mode.from_tensor(t) for t in tensors_in(given)])
        with mode:
            assert dispatch(op.inplace, fakes) is fakes[0] and fakes[0]._version == 1


def test_no_kernel_runs_on_data(monkeypatch) -> None:
    """Inside the mode no kernel sees an array, but for single numbers that the program itself wrote down."""
    running: list = []

    def guarded(key: str, kernel):
        def run(*args, **kwargs):
            if running and any(isinstance(a, np.ndarray) and a.size > 1 for a in args):
                raise AssertionError(f"the kernel of {key} was run for {running[0]}")
            return kernel(*args, **kwargs)

        return run

    samples = {key: samples_of(OPERATORS[key]) for key in TABLE}
    for key, op in registry.items():
        if op.kernel is not None:
            monkeypatch.setattr(op, "kernel", guarded(key, op.kernel))
    for key, rows in samples.items():
        running[:] = [key]
        for args, _ in rows:
            mode = FakeTensorMode()
            fakes = rebuild(args, [mode.from_tensor(t) for t in tensors_in(args)])
            with mode, contextlib.suppress(DataDependentOutputException, DynamicOutputShapeException):
                dispatch(OPERATORS[key], fakes)
    running.clear()  # functions that were first made here keep what they were made of


def test_which_operators_make_tensors_of_none():
    from pullback.capture.fake.facts import is_tensor_constructor

    aten = torch.ops.aten
    assert all(map(is_tensor_constructor, (aten.empty.memory_format, aten.rand.default, aten.arange.start_step)))
    assert not any(map(is_tensor_constructor, (aten.ones_like.default, aten.cat.default, aten.sort.default)))
