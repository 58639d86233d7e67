"""Orders of memory in C: what the arithmetic in Python says of the same arrays."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as torch
from pullback.core import small
from pullback.core.extension import extension
from pullback.core.geometry import elementwise_strides, may_overlap
from tests.ops.checks import same
from tests.ops.samples import exempt, functional_operators, key_of, samples_of

needs_c = pytest.mark.skipif(extension("_layouts") is None, reason="the extension is not built")
bounded = settings(max_examples=150, deadline=None, derandomize=True)


@st.composite
def arrays(draw, shape: tuple):
    """An array that broadcasts to a shape, its dimensions in some order, with gaps, repeated or neither."""
    lead = draw(st.integers(0, len(shape)))
    own = [1 if draw(st.integers(0, 4)) == 0 else n for n in shape[lead:]]
    order = draw(st.permutations(range(len(own))))
    steps = [draw(st.integers(1, 2)) for _ in own]
    memory = np.zeros([own[d] * steps[d] for d in order], draw(st.sampled_from([np.float32, np.int64])))
    found = (
        memory.transpose(np.argsort(order))[tuple(slice(None, None, steps[d]) for d in range(len(own)))]
        if own
        else memory
    )
    return np.broadcast_to(found, shape) if draw(st.integers(0, 5)) == 0 else found


@st.composite
def calls(draw):
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=5)))
    return shape, draw(st.lists(arrays(shape), min_size=1, max_size=3))


@needs_c
@bounded
@given(calls())
def test_results_lie_as_the_arithmetic_says(call) -> None:
    shape, operands = call
    result = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    laid = small.laid_out(result, operands)
    places = [(a.shape, tuple(s // a.itemsize for s in a.strides)) for a in operands if a.ndim]
    assert tuple(s // 4 for s in laid.strides) == elementwise_strides(shape, places or [((), ())])
    assert np.array_equal(laid, result)


@needs_c
@bounded
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 12)), min_size=1, max_size=4))
def test_what_is_written_once_does_not_overlap(dims) -> None:
    shape, stride = zip(*dims, strict=True)
    array = torch.zeros(200).as_strided(shape, stride).numpy()
    assert not (small.written_once(array) and may_overlap(shape, stride))
    assert small.written_once(np.zeros(shape).T) and small.written_once(np.zeros((8, 8))[::2, 1::3])


def by_columns(t):
    return t.transpose(-1, -2).contiguous().transpose(-1, -2) if t.ndim > 1 else spread(t)


def spread(t):
    return torch.zeros([2 * n for n in t.shape], dtype=t.dtype)[tuple(slice(None, None, 2) for _ in t.shape)].copy_(t)


def by_channels(t):
    return t.movedim(1, -1).contiguous().movedim(-1, 1) if t.ndim > 2 else by_columns(t)


def moved(value, how):
    """Arguments of the same values, the tensors among them elsewhere in memory."""
    if isinstance(value, torch.Tensor):
        return how(value.detach()) if value.ndim and value.numel() and not value._keys else value
    return type(value)(moved(v, how) for v in value) if isinstance(value, (tuple, list)) else value


TABLE = {
    key_of(op): op
    for op in functional_operators()
    if op.native is not None and not op.is_view and not exempt(key_of(op))
}


@needs_c
@pytest.mark.parametrize("how", [by_columns, by_channels, spread])
@pytest.mark.parametrize("key", TABLE)
def test_functions_in_c_are_their_kernels_in_any_order_of_memory(key: str, how) -> None:
    op = TABLE[key]
    with torch.no_grad():
        for sample, _ in samples_of(op):
            args = moved(tuple(sample), how)
            found = op.native(args)
            if found is None:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # it would be lost
                expected = op.body(*args) if op.body is not None else op.family.execute_plain(op, args)
            several = isinstance(found, (tuple, list))
            for a, b in zip(found, expected, strict=True) if several else ((found, expected),):
                if a is not None:
                    assert (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride())
                    same(a, b, key, 1e-5)


# ---- moves of elements
def recast(value, dtype):
    if isinstance(value, torch.Tensor):
        return value.detach().to(dtype) if value.is_floating_point() else value
    return type(value)(recast(v, dtype) for v in value) if isinstance(value, (tuple, list)) else value


@needs_c
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.complex64], ids=str)
@pytest.mark.parametrize("key", [key for key, op in TABLE.items() if op.declared.moves])
def test_elements_that_are_only_moved_may_be_of_any_dtype(key: str, dtype) -> None:
    op, taken = TABLE[key], 0
    with torch.no_grad():
        for sample, _ in samples_of(op):
            args = recast(tuple(sample), dtype)
            if any(t.is_complex() and dtype is not torch.complex64 for t in op.tensors(args)):
                continue
            found = op.native(args)
            if found is None:
                continue
            taken += 1
            expected = op.body(*args) if op.body is not None else op.family.execute_plain(op, args)
            assert (found.shape, found.dtype, found.stride()) == (expected.shape, expected.dtype, expected.stride())
            assert found._array.tobytes() == expected._array.tobytes() and found._array.base is None
            assert (found + found).dtype is expected.dtype  # whatever it was moved as
    assert taken


@needs_c
def test_bits_of_two_dtypes_do_not_meet() -> None:
    half, brain, short = (torch.ones(4).to(d) for d in (torch.float16, torch.bfloat16, torch.int16))
    function = small.through_bits(small.table["stack.default"])
    for pair in (
        [half, brain],
        [half, short],
        [torch.ones(4, dtype=torch.complex64), torch.ones(4, dtype=torch.float64)],
    ):
        assert function((pair, 0)) is None
    assert torch.stack([half, brain]).dtype is torch.float32 and half.dtype is torch.float16


@needs_c
@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.data())
def test_what_is_repeated_inside_short_rows_is_spread(data):
    shape = data.draw(st.tuples(*[st.integers(0, n) for n in (20, 40, 8)]))
    dtype = data.draw(st.sampled_from([np.float32, np.float64, np.int16, bool, np.complex128]))
    pair = [
        np.random.rand(*[1 if once else n for n, once in zip(shape, data.draw(st.tuples(*[st.booleans()] * 3)))])
        for _ in range(2)
    ]
    pair = [a.astype(dtype) for a in pair]
    whole = np.broadcast_shapes(*[a.shape for a in pair])
    for given_array, found in zip(pair, small.spread(*pair)):
        if found is not given_array:
            assert found.flags.c_contiguous and np.array_equal(found, np.broadcast_to(given_array, whole))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_short_rows_meet_as_long_ones_do(dtype):
    x, y = torch.arange(120).reshape(40, 1, 3).to(dtype), torch.arange(30).reshape(1, 10, 3).to(dtype)
    x[0, 0, 0] = y[0, 0, 0] = 0
    for function in (torch.add, torch.sub, torch.mul, torch.maximum, torch.eq):
        found = function(x, y)
        assert torch.equal(found, torch.stack([function(x[..., i], y[..., i]) for i in range(3)], -1))
        assert found.is_contiguous()
    turned = x.transpose(0, 2).contiguous().transpose(0, 2)
    assert torch.equal(turned - y, x - y) and (turned - y).stride() == (turned - y.clone()).stride()
    assert torch.equal(x[:0] - y, torch.zeros(0, 10, 3, dtype=dtype))
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        x - y[:, :, :2]


def test_short_rows_are_recorded():
    x, y = torch.rand(30, 1, 2, dtype=torch.float64).requires_grad_(), torch.rand(1, 20, 2, dtype=torch.float64)
    (slope,) = torch.autograd.grad(((x * y) ** 2).sum(), x, create_graph=True)
    assert torch.allclose(slope, 2 * x * (y**2).sum(1, keepdim=True))
    (again,) = torch.autograd.grad(slope.sum(), x)
    assert torch.allclose(again, (2 * (y**2).sum(1, keepdim=True)).expand(30, 1, 2))
