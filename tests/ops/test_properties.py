"""What holds for any shape, stride, offset and dtype: numbers are NumPy's, memory is shared as NumPy shares it.

Tensors are drawn together with the NumPy view that must read the same numbers: a base array, then random slices (with
steps), permutations, expansions and added dimensions, applied to both.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as torch
from pullback.core.tensor import wrap_meta

DTYPES = {
    torch.float64: np.float64,
    torch.float32: np.float32,
    torch.int64: np.int64,
    torch.int32: np.int32,
    torch.uint8: np.uint8,
    torch.bool: np.bool_,
}
bounded = settings(max_examples=60, deadline=None, derandomize=True)


def numbers(shape, dtype, seed: int) -> np.ndarray:
    a = np.random.default_rng(seed).integers(1, 7, shape)
    return np.asarray(a % 2 == 0 if dtype is np.bool_ else a, dtype)


@st.composite
def steps(draw, ndim: int):
    """How a view is made of one of `ndim` dimensions: a name and its arguments."""
    kind = draw(st.sampled_from(["slice", "permute", "unsqueeze", "select"] if ndim else ["unsqueeze"]))
    if kind == "permute":
        return kind, tuple(draw(st.permutations(range(ndim))))
    dim = draw(st.integers(0, ndim if kind == "unsqueeze" else ndim - 1))
    if kind == "slice":
        return kind, (dim, draw(st.integers(0, 1)), draw(st.integers(1, 3)))
    return kind, (dim,)


def apply(step, t, a: np.ndarray):
    """The same view of a tensor and of an array."""
    kind, args = step
    if kind == "permute":
        return t.permute(args), a.transpose(args)
    dim = args[0]
    if kind == "unsqueeze":
        return t.unsqueeze(dim), np.expand_dims(a, dim)
    at = (slice(None),) * dim
    if kind == "select":
        return (t.select(dim, 0), np.asarray(a[(*at, 0)])) if a.shape[dim] else (t, a)
    index = (*at, slice(args[1], None, args[2]))
    return t[index], a[index]


@st.composite
def tensors(draw, dtypes=tuple(DTYPES), max_steps: int = 3, base=None):
    """(base tensor, base array, view, array view): the view reads the same memory as the base."""
    dtype = draw(st.sampled_from(dtypes))
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=3)))
    array = numbers(shape, DTYPES[dtype], draw(st.integers(0, 99)))
    t, a = (whole := torch.tensor(array)), array
    for _ in range(draw(st.integers(0, max_steps))):
        t, a = apply(draw(steps(a.ndim)), t, a)
    return whole, array, t, a


def equal(t, a) -> None:
    assert tuple(t.shape) == a.shape
    np.testing.assert_array_equal(t.numpy(), a)


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "eq": np.equal,
    "lt": np.less, "true_divide": np.true_divide,
}  # fmt: skip
NUMERIC = tuple(d for d in DTYPES if d is not torch.bool)


@pytest.mark.parametrize("name", BINARY)
@bounded
@given(left=tensors(NUMERIC), right=tensors(NUMERIC))
def test_binary_operators_equal_numpy_in_the_promoted_dtype(name, left, right) -> None:
    (_, _, t, a), (_, _, u, b) = left, right
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        with pytest.raises(RuntimeError, match="must match the size of tensor b"):
            getattr(torch, name)(t, u)
        return
    got = getattr(torch, name)(t, u)
    common = torch.result_type(t, u)
    if name in ("eq", "lt"):
        assert got.dtype is torch.bool
    else:
        wanted = torch.get_default_dtype() if name == "true_divide" and not common.is_floating_point else common
        assert got.dtype is wanted
    assert tuple(got.shape) == shape
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got.numpy(), BINARY[name](a.astype(common.numpy), b.astype(common.numpy)), rtol=1e-6)


@bounded
@given(tensors(max_steps=5))
def test_views_of_views_share_memory_and_read_as_numpys(drawn) -> None:
    whole, array, t, a = drawn
    equal(t, a)
    assert t.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
    assert t.stride() == tuple(s // a.itemsize for s in a.strides) or 1 in a.shape or 0 in a.shape


@bounded
@given(tensors(NUMERIC, max_steps=4), st.integers(0, 9))
def test_a_write_through_a_view_is_seen_by_base_and_siblings(drawn, value) -> None:
    whole, array, t, a = drawn
    sibling = whole.reshape(-1)
    array = array.copy()
    before = whole._version
    mirror = (
        np.lib.stride_tricks.as_strided(
            array.reshape(-1)[_offset(t) :], a.shape, tuple(s * a.itemsize for s in t.stride())
        )
        if a.size
        else a
    )
    t.fill_(value)
    if a.size:
        mirror[...] = value
    equal(whole, array)
    equal(sibling, array.reshape(-1))
    assert whole._version == t._version == before + 1


def _offset(t) -> int:
    return t.storage_offset()


@bounded
@given(tensors(NUMERIC), st.sampled_from(["add_", "mul_", "sub_", "copy_"]))
def test_writing_expanded_memory_raises_and_changes_nothing(drawn, name) -> None:
    whole, array, t, a = drawn
    if not a.size:
        return
    wide = t.unsqueeze(0).expand(2, *t.shape)
    kept, version = array.copy(), whole._version
    with pytest.raises(
        RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"
    ):
        getattr(wide, name)(torch.ones(wide.shape, dtype=t.dtype) if name == "copy_" else 1)
    equal(whole, kept)
    assert whole._version == version


@st.composite
def indices(draw, shape):
    result = []
    for size in shape:
        kind = draw(st.sampled_from(["slice", "int", "list"]))
        if kind == "slice":
            result.append(slice(draw(st.integers(0, size)), None, draw(st.integers(1, 2))))
        elif kind == "int":
            result.append(draw(st.integers(-size, size - 1)))
        else:
            result.append(draw(st.lists(st.integers(-size, size - 1), min_size=2, max_size=2)))
        if draw(st.booleans()):
            break
    return tuple(result)


@bounded
@given(st.data())
def test_indexing_gets_and_sets_as_numpy(data) -> None:
    _, _, t, a = data.draw(tensors(NUMERIC))
    if not a.size:
        return
    index = data.draw(indices(a.shape))
    lists = tuple(torch.tensor(i) if isinstance(i, list) else i for i in index)
    # NumPy counts integers among advanced indices, PyTorch selects first: the same but where the two are mixed
    if any(isinstance(i, int) for i in index) and any(isinstance(i, list) for i in index):
        index = lists = tuple(i for i in index if not isinstance(i, list))
    equal(t[lists], a[index])
    t, a = t.clone(), a.copy()
    t[lists] = 5
    a[index] = 5
    equal(t, a)


REDUCTIONS = {"sum": np.sum, "prod": np.prod, "amax": np.max, "amin": np.min, "all": np.all, "any": np.any}


@pytest.mark.parametrize("name", REDUCTIONS)
@bounded
@given(data=st.data())
def test_reductions_equal_numpy(name, data) -> None:
    _, _, t, a = data.draw(tensors((torch.float64, torch.int64)))
    if not a.size or not a.ndim:
        return
    dim, keepdim = data.draw(st.integers(-a.ndim, a.ndim - 1)), data.draw(st.booleans())
    got = getattr(torch, name)(t, dim, keepdim=keepdim)
    equal(got, REDUCTIONS[name](a, axis=dim, keepdims=keepdim))
    equal(getattr(torch, name)(t), REDUCTIONS[name](a))


@bounded
@given(tensors(NUMERIC), tensors(NUMERIC), st.sampled_from(["add", "mul", "eq", "true_divide", "maximum"]))
def test_tensors_without_data_get_the_strides_of_real_ones(left, right, name) -> None:
    t, u = left[2], right[2]
    try:
        real = getattr(torch, name)(t, u)
    except RuntimeError:
        return
    fake = getattr(torch, name)(*(wrap_meta(tuple(x.shape), x.dtype, x.stride()) for x in (t, u)))
    assert (fake.shape, fake.dtype) == (real.shape, real.dtype)
    assert [s for s, n in zip(fake.stride(), real.shape, strict=True) if n > 1] == [
        s for s, n in zip(real.stride(), real.shape, strict=True) if n > 1
    ] or not real.numel()
