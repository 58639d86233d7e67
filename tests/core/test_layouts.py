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
