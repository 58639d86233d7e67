"""`x[...]` and `x[...] = v`: agreement with NumPy where the rules are one, PyTorch's where they differ, errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as torch
from pullback.ops.index import indexing

SHAPE = (3, 4, 5)


def counting(*shape):
    return torch.arange(float(np.prod(shape, dtype=int))).reshape(shape).clone()


def integers(size: int):
    return st.lists(st.integers(-size, size - 1), min_size=2, max_size=2).map(torch.tensor)


def slices(size: int):
    ends = st.none() | st.integers(-size - 1, size + 1)
    return st.builds(slice, ends, ends, st.none() | st.integers(1, 3))


def masks(size: int):
    return st.lists(st.booleans(), min_size=size, max_size=size).map(torch.tensor)


@st.composite
def indices(draw, advanced: bool):
    """An index of SHAPE without ints next to tensors, where NumPy and PyTorch agree."""
    parts: list = []
    for size in SHAPE[: draw(st.integers(0, 3))]:
        kinds = [slices(size), st.just(slice(None))]
        kinds += [integers(size)] if advanced else [st.integers(-size, size - 1)]
        parts.append(draw(st.one_of(*kinds)))
        if draw(st.integers(0, 9)) == 0 and not advanced:
            parts.append(None)
    return tuple(parts)


def as_numpy(index: tuple) -> tuple:
    return tuple(i.numpy() if isinstance(i, torch.Tensor) else i for i in index)


@given(indices(False))
def test_basic_indices_are_views(index):
    x = counting(*SHAPE)
    result = x[index]
    assert np.array_equal(result.numpy(), x.numpy()[index])
    assert result._base is x
    assert result.numel() == 0 or np.shares_memory(result.numpy(), x.numpy())
    if result.numel():
        result.fill_(-1.0)
        assert (x.numpy() == -1).sum() == result.numel()


@given(indices(True))
def test_index_tensors_pick_copies(index):
    x = counting(*SHAPE)
    result = x[index]
    assert np.array_equal(result.numpy(), x.numpy()[as_numpy(index)])
    if any(isinstance(i, torch.Tensor) for i in index):
        assert not result._is_view()


@given(indices(True), st.booleans())
def test_writes_agree_with_numpy(index, many):
    x, a = counting(*SHAPE), counting(*SHAPE).numpy().copy()
    value = np.full(a[as_numpy(index)].shape, 7.0, np.float32) if many else 7.0
    x[index] = torch.from_numpy(np.asarray(value)) if many else value
    a[as_numpy(index)] = value
    assert np.array_equal(x.numpy(), a)
    assert x._version == 1


@given(indices(True))
def test_the_gradient_of_a_pick_counts_every_time(index):
    x = counting(*SHAPE).requires_grad_()
    out = x[index]
    (g,) = torch.autograd.grad(out, x, torch.ones_like(out))
    expected = np.zeros(SHAPE)
    np.add.at(expected, as_numpy(index), 1.0)
    assert np.array_equal(g.numpy(), expected)


@pytest.mark.parametrize(
    ("index", "shape"),
    [
        ((0, slice(None), torch.tensor([0, 1])), (4, 2)),  # the int selects first: NumPy would put (2,) in front
        ((torch.tensor([0, 1]), slice(None), torch.tensor([0, 1])), (2, 4)),
        ((slice(None), torch.tensor([0, 1]), torch.tensor([0, 1])), (3, 2)),
        ((torch.tensor([0, 1]), None, torch.tensor([0, 1])), (2, 1, 5)),
        (True, (1, 3, 4, 5)),
        (False, (0, 3, 4, 5)),
        ((True, torch.tensor([0, 1])), (2, 4, 5)),
        (torch.tensor(1), (4, 5)),
        (torch.tensor(True), (1, 3, 4, 5)),
        (torch.tensor([True, False, True]), (2, 4, 5)),
        (torch.tensor([1, 0, 1], dtype=torch.uint8), (2, 4, 5)),
        ((slice(None), torch.zeros(4, 5, dtype=torch.bool)), (3, 0)),
        ((torch.ones(3, 4, dtype=torch.bool), 2), (12,)),
        ([0, 2], (2, 4, 5)),
        ([[0, 2], [1, 1]], (2, 5)),
        ([], (0, 4, 5)),
        (range(2), (2, 4, 5)),
        (np.array([0, 1]), (2, 4, 5)),
        ((), (3, 4, 5)),
        ((..., None), (3, 4, 5, 1)),
        ((None, 1, ..., 2), (1, 4)),
    ],
)
def test_shapes(index, shape):
    assert tuple(counting(*SHAPE)[index].shape) == shape


@pytest.mark.parametrize(
    ("index", "error", "words"),
    [
        (3, IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        ((0, -5), IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        (1.5, IndexError, "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid"),
        (torch.tensor([0.5]), IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
        (torch.tensor([5]), IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
        (
            torch.tensor([True]),
            IndexError,
            "The shape of the mask [1] at index 0 does not match the shape of the indexed",
        ),
        (
            (torch.tensor([0, 1]), torch.tensor([0, 1, 2])),
            IndexError,
            "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]",
        ),
    ],
)
def test_bad_indices_are_refused_and_change_nothing(index, error, words):
    x = counting(*SHAPE)
    for action in (lambda: x[index], lambda: x.__setitem__(index, 1.0)):
        with pytest.raises(error) as caught:
            action()
        assert words in str(caught.value)
    assert np.array_equal(x.numpy(), counting(*SHAPE).numpy())
    assert x._version == 0


def test_bad_values_are_refused_and_change_nothing():
    x = counting(*SHAPE)
    at = torch.tensor([0, 1])
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape .5, 2. cannot be broadcast"):
        x[at] = torch.zeros(5, 2)
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
        x[at] = torch.zeros(5, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="The expanded size of the tensor"):
        x[0] = torch.zeros(3)
    with pytest.raises(TypeError, match="can't assign a list to a torch.FloatTensor"):
        x[0] = [1.0]
    assert np.array_equal(x.numpy(), counting(*SHAPE).numpy())


def test_values_lose_leading_ones_and_change_dtype():
    x = torch.zeros(2, 3)
    x[0] = torch.ones(1, 1, 3, dtype=torch.float64)
    x[torch.tensor([1])] = 2
    assert x.tolist() == [[1.0] * 3, [2.0] * 3]
    n = torch.zeros(2, dtype=torch.int64)
    n[0] = 2.7
    assert n.tolist() == [2, 0]


def test_writes_are_recorded():
    x, v = counting(4).requires_grad_(), torch.tensor([10.0, 20.0], requires_grad=True)
    y = x * 2
    y[torch.tensor([1, 3])] = v
    y[0] = 0.0
    (y * y).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 16.0, 0.0]
    assert v.grad.tolist() == [20.0, 40.0]


def test_accumulating_puts():
    x = torch.zeros(3, 2, dtype=torch.float16)
    x.index_put_((torch.tensor([0, 0, 2]),), torch.ones(3, 2, dtype=torch.float16), accumulate=True)
    assert x.tolist() == [[2, 2], [0, 0], [1, 1]]
    moved = torch.zeros(2, 3, 4).transpose(0, 2)
    moved.index_put_((None, torch.tensor([1, 1])), torch.ones(4, 2, 2), accumulate=True)
    assert moved.sum(dim=(0, 2)).tolist() == [0.0, 16.0, 0.0]


def test_masked_indices_read_and_add_only_where_the_mask_is_true():
    x, at = counting(4), torch.tensor([0, 9, -9, 3])
    inside = torch.tensor([True, False, False, True])
    assert torch._unsafe_masked_index(x, inside, [at], -1.0).tolist() == [0.0, -1.0, -1.0, 3.0]
    added = torch._unsafe_masked_index_put_accumulate(x, inside, [at], torch.ones(4))
    assert added.tolist() == [1.0, 1.0, 2.0, 4.0]


def test_slices_that_take_everything_are_no_views_beside_other_parts() -> None:
    y = torch.ones(2, 3, requires_grad=True) * 1
    names = [y[0, 0:].grad_fn.name(), y[:, 0:3].grad_fn.name(), y[0:].grad_fn.name()]
    assert names == ["SelectBackward0", "AliasBackward0", "SliceBackward0"]
    y[:] = torch.zeros(3)
    assert y.grad_fn.name() == "CopyBackwards"
    y[0:2, ::1] = torch.tensor(2.0)
    assert y.grad_fn.name() == "FillBackward3" and y.tolist() == [[2.0] * 3] * 2


def test_a_complex_number_in_a_tensor_written_into_real_elements_loses_its_imaginary_part() -> None:
    y = torch.zeros(2)
    y[...] = torch.tensor(1 + 2j)
    assert y.tolist() == [1, 1]


def test_bytes_as_a_mask_are_deprecated_and_short_numbers_are_indices():
    x = torch.arange(3)
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated"):
        assert x[torch.tensor([1, 0, 1], dtype=torch.uint8)].tolist() == [0, 2]
    assert x[torch.tensor(1, dtype=torch.int16)].item() == 1
    with pytest.raises(IndexError, match="must be long, int, byte or bool"):
        x[torch.tensor([1], dtype=torch.int16)]


def test_indices_into_nothing():
    with pytest.raises(IndexError, match="out of bounds for dimension with size 0"):
        torch.zeros(0, 3)[torch.tensor([0])]


def test_nonzero_static_writes_whole_numbers_alone():
    with pytest.raises(RuntimeError, match="Expected out tensor to have scalar type Long"):
        torch.nonzero_static(torch.tensor([8]), size=1, out=torch.empty(1, 1))


def test_values_that_do_not_fit_a_mask_are_said_to_before_their_dtype_is():
    a = torch.arange(4)
    for values in ([], [1.0, 2.0, 3.0]):
        with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape"):
            a[a > -1] = torch.tensor(values)
    with pytest.raises(RuntimeError, match="got Long for the destination and Float"):
        a[a > -1] = torch.ones(4)


@pytest.mark.parametrize(
    "index", [(slice(None), [2, 0, -1]), (slice(None), slice(None), [[1, 0], [0, -2]]), ([1, 1],), (slice(None), [])]
)
def test_columns_by_one_tensor_of_places_are_what_the_general_path_gives(index):
    x = torch.arange(24.0).reshape(2, 3, 4)
    for integer in (torch.int64, torch.int32):
        key = (*index[:-1], torch.tensor(index[-1], dtype=integer))
        for t in (x, x.transpose(1, 2), x.long(), x[..., ::2]):
            found, expected = t[key], indexing._getitem_otherwise(t, key)
            assert (found.shape, found.stride(), found.dtype) == (expected.shape, expected.stride(), expected.dtype)
            assert torch.equal(found, expected)
    leaf = x.clone().requires_grad_()
    out = leaf[(*index[:-1], torch.tensor(index[-1], dtype=torch.int64))]
    assert type(out.grad_fn).__name__ == "IndexBackward0"
    out.sum().backward()
    assert leaf.grad.sum() == out.numel()
    with pytest.raises(IndexError, match="out of bounds"):
        x[:, torch.tensor([3])]


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("accumulate", [False, True])
def test_one_tensor_of_places_along_any_dimension_is_put_as_numpy_does(dim, accumulate):
    x, places = torch.arange(60.0).reshape(3, 4, 5), torch.tensor([2, 0, 2])
    index = (*[None] * dim, places)
    shape = [3 if d == dim else n for d, n in enumerate(x.shape)]
    for values in (torch.full(shape, 7.0), torch.tensor(7.0), torch.full(shape[dim + 1 :], 7.0)):
        expected, at = x.numpy().copy(), tuple(slice(None) if i is None else i.numpy() for i in index)
        if accumulate:
            np.add.at(expected, at, values.numpy() if values.ndim != len(shape) - dim - 1 else 7.0)
        else:
            expected[at] = 7.0
        assert np.array_equal(torch.index_put(x, index, values, accumulate).numpy(), expected)
    with pytest.raises(IndexError, match="out of bounds"):
        torch.index_put(x, (*[None] * dim, torch.tensor([9])), torch.tensor(7.0))


# ---- places by a tensor for each of the first dimensions
@pytest.mark.parametrize("kind", [torch.int64, torch.int32], ids=str)
def test_places_by_several_tensors(kind):
    x = torch.arange(60.0).reshape(3, 4, 5)
    i, j = torch.tensor([[0, -1], [2, 0]], dtype=kind), torch.tensor([[3, 1], [-4, 0]], dtype=kind)
    found = x[i, j]
    assert found.tolist() == [[x[a, b].tolist() for a, b in zip(p, q)] for p, q in zip(i.tolist(), j.tolist())]
    assert found.stride() == (10, 5, 1) and found._version == 0
    assert torch.equal(x.transpose(0, 1)[j, i], found) and torch.equal(
        x[i, j, j], found[[0, 0, 1, 1], [0, 1, 0, 1], j.flatten()].view(2, 2)
    )
    for wrong in (
        (torch.tensor([3], dtype=kind), torch.tensor([0], dtype=kind)),
        (j[0], torch.tensor([4, 0], dtype=kind)),
    ):
        with pytest.raises(IndexError, match="out of bounds"):
            x[wrong]
    with pytest.raises(IndexError, match="too many indices"):
        x[i, j, j, j]


def test_numbers_at_places_by_several_tensors():
    x, i = torch.zeros(3, 4), torch.tensor([0, 2, 2])
    x[i, torch.tensor([1, 3, -1])] = 5
    assert x.tolist() == [[0, 5, 0, 0], [0] * 4, [0, 0, 0, 5]] and x._version == 1
    with pytest.raises(IndexError):
        x[i, torch.tensor([1, 3, 4])] = 7.0
    assert x.sum() == 10 and x._version == 1
    w = torch.ones(3, 4, requires_grad=True)
    y = w * 1
    y[i, i] = 0.0
    (y.sum() + w[i, i].sum()).backward()
    assert w.grad.tolist() == [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 2, 1]]


# ---- the short ways beside the general one
ROWS, PICKS, CHOSEN = torch.tensor([2, 0, -1]), torch.tensor([[0, 1], [3, -4]]), torch.tensor([True, False, True])
MIXED = [
    (ROWS, slice(None, 2)),
    (slice(1, None), ROWS),
    (ROWS, slice(None), slice(1, 4, 2)),
    (ROWS, slice(None), 1),
    (0, slice(None), ROWS),
    (0, ROWS),
    (ROWS, None),
    (ROWS, ROWS, None),
    (ROWS, None, ROWS),
    (None, ROWS, slice(None, 0)),
    (slice(None), PICKS),
    (slice(None), PICKS, 2),
    (ROWS, slice(None), ROWS),
    (CHOSEN, slice(1, 3)),
    (CHOSEN, ROWS[:2]),
    (slice(None), slice(None), torch.tensor([True, False, True, True, False])),
    (CHOSEN,),
    (ROWS[:, None], ROWS),
    (ROWS[:0], slice(None, 2)),
    (torch.ones(3, 4, dtype=torch.bool), 1),
]
SOURCES = {
    "rows": lambda x: x,
    "turned": lambda x: x.permute(2, 1, 0).contiguous().permute(2, 1, 0),
    "strided": lambda x: x.repeat_interleave(2, 2)[..., ::2],
    "expanded": lambda x: x[:, :1].expand(SHAPE),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
def test_mixed_indices_are_what_the_general_way_gives(source, dtype):
    x = SOURCES[source](counting(*SHAPE).to(dtype))
    for index in MIXED:
        quick, general = x[index], indexing._getitem_otherwise(x, index)
        assert torch.equal(quick, general) and quick.stride() == general.stride(), index


def test_mixed_indices_are_recorded():
    for index in MIXED:
        x = counting(*SHAPE).double().requires_grad_()
        picked = x[index]
        general = indexing._getitem_otherwise(x, index)
        weights = torch.rand(picked.shape, dtype=torch.float64)
        ours, theirs = (
            torch.autograd.grad((p * p * weights).sum(), x, create_graph=True)[0] for p in (picked, general)
        )
        assert torch.equal(ours, theirs), index
        assert torch.equal(*(torch.autograd.grad(g.square().sum(), x)[0] for g in (ours, theirs))), index


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool, torch.complex64])
def test_quick_writes_are_what_the_general_way_writes(dtype, monkeypatch):
    basic = [0, -1, slice(1, 3), (0, slice(None, 2)), (slice(None), 1), CHOSEN, ROWS, counting(*SHAPE) > 30]
    for index in [*MIXED, *basic]:
        shape = counting(*SHAPE)[index].shape
        values = [2, -1, True, 0.5, -0.0, math.nan, math.inf, 1e39, 2**70, torch.rand(shape).to(dtype)]
        values += [torch.rand(1, 1, *shape).to(dtype), torch.ones((), dtype=dtype), torch.ones(7, dtype=dtype)]
        for value in values:
            written = []
            for quick in (True, False):
                x = counting(*SHAPE).to(dtype)
                version = x._version
                with monkeypatch.context() as patch:
                    if not quick:
                        patch.setattr(indexing.quick, "put", lambda *given: False)
                    try:
                        x[index] = value
                    except (RuntimeError, IndexError, TypeError, OverflowError) as error:
                        written.append((type(error), str(error), x.tolist()))
                    else:
                        assert x._version == version + 1
                        written.append(str(x.tolist()))
            assert written[0] == written[1], (index, value)


def test_numbers_that_do_not_fit_are_refused():
    for index in (0, CHOSEN, ROWS):
        x = torch.zeros(3)
        with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
            x[index] = 1e300
        assert not x.any()


def test_quick_writes_ask_whether_somebody_records():
    leaf = torch.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf[CHOSEN] = 1.0
    with torch.no_grad():
        leaf[CHOSEN] = 1.0
    x = torch.zeros(3)
    y = leaf * 1
    x[:2] = y[:2]
    assert x.requires_grad
    view = (leaf * 1)[:]
    view[ROWS] = 5.0
    view.sum().backward()
    assert leaf.grad.tolist() == [0.0, 1.0, 0.0]
    expanded = torch.zeros(1).expand(3)
    with pytest.raises(RuntimeError):
        expanded[0:2] = torch.ones(2)
