"""gather, scatter, index_* and masks: values by loops, repeated places, in-place forms, refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as torch
from pullback.ops.index import scatter_kernels as kernels

REDUCE = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def normal(*shape, seed=0):
    return torch.from_numpy(np.random.RandomState(seed).randn(*shape))


def places(high: int, *shape, seed=0):
    return torch.from_numpy(np.random.RandomState(seed).randint(0, high, shape))


def positions(index: np.ndarray, dim: int):
    for at in itertools.product(*map(range, index.shape)):
        target = list(at)
        target[dim] = index[at]
        yield at, tuple(target)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gather_by_loop(dim):
    x, index = normal(3, 4), places(3, 2, 3)
    expected = np.empty((2, 3))
    for at, source in positions(index.numpy(), dim % 2):
        expected[at] = x.numpy()[source]
    assert np.array_equal(torch.gather(x, dim, index).numpy(), expected)
    assert np.array_equal(torch.gather(x, dim, index.int()).numpy(), expected)


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce_by_loop(reduce, include_self):
    x, index, src = normal(3, 4), places(3, 2, 4, seed=1), normal(2, 4, seed=2)
    start = {"sum": 0, "mean": 0, "prod": 1, "amax": -np.inf, "amin": np.inf}[reduce]
    hit = {target for _, target in positions(index.numpy(), 0)}
    expected = x.numpy().copy()
    counts = np.full(expected.shape, float(include_self))
    for target in hit:
        expected[target] = expected[target] if include_self else start
    for at, target in positions(index.numpy(), 0):
        expected[target] = REDUCE["sum" if reduce == "mean" else reduce](expected[target], src.numpy()[at])
        counts[target] += 1
    if reduce == "mean":
        expected = np.where(counts > 0, expected / np.maximum(counts, 1), expected)
    result = x.scatter_reduce(0, index, src, reduce, include_self=include_self)
    assert np.allclose(result.numpy(), expected)
    assert np.allclose(x.clone().scatter_reduce_(0, index, src, reduce, include_self=include_self).numpy(), expected)


def test_scatter_forms():
    x, index = torch.zeros(2, 3), torch.tensor([[0, 2]])
    assert x.scatter(1, index, torch.tensor([[5.0, 6.0]])).tolist() == [[5.0, 0.0, 6.0], [0.0] * 3]
    assert x.scatter(1, index, value=2.5).tolist() == [[2.5, 0.0, 2.5], [0.0] * 3]
    assert x.scatter(1, index, 2, reduce="add").tolist() == [[2.0, 0.0, 2.0], [0.0] * 3]
    assert torch.ones(2, 3).scatter_(1, index, 3.0, reduce="multiply").tolist() == [[3.0, 1.0, 3.0], [1.0] * 3]
    assert x.scatter_add(1, torch.tensor([[1, 1]]), torch.ones(1, 2)).tolist() == [[0.0, 2.0, 0.0], [0.0] * 3]
    assert x.clone().scatter_(1, index, 4.0).tolist() == x.clone().scatter_(dim=1, index=index, value=4.0).tolist()
    assert x.clone().scatter_(1, index, torch.ones(1, 2)).tolist() == [[1.0, 0.0, 1.0], [0.0] * 3]
    assert x.sum().item() == 0.0


def test_narrow_floats_are_rounded_once():
    many = torch.ones(4096, dtype=torch.bfloat16)
    result = torch.zeros(1, dtype=torch.bfloat16).scatter_add(0, torch.zeros(4096, dtype=torch.int64), many)
    assert result.item() == 4096.0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x, i, s: x.gather(0, i + 9), RuntimeError, "index 9 is out of bounds for dimension 0 with size 3"),
        (lambda x, i, s: x.gather(0, i.float()), RuntimeError, "gather(): Expected dtype int32/int64 for index"),
        (lambda x, i, s: x.gather(0, 1), TypeError, "must be Tensor, not int"),
        (
            lambda x, i, s: x.scatter_(0, i - 1, s),
            RuntimeError,
            "index -1 is out of bounds for dimension 0 with size 3",
        ),
        (
            lambda x, i, s: x.scatter_(0, i, s[:1]),
            RuntimeError,
            "Expected index [2] to be no larger than self [3] apart",
        ),
        (
            lambda x, i, s: x.scatter_(0, i, s.double()),
            RuntimeError,
            "scatter(): Expected self.dtype to be equal to src.dtype",
        ),
        (
            lambda x, i, s: x.scatter_reduce_(0, i, s, "no"),
            RuntimeError,
            "reduce argument must be either sum, prod, mean",
        ),
        (lambda x, i, s: x.index_select(0, i + 2), IndexError, "index out of range in self"),
        (lambda x, i, s: x.index_add_(0, i + 2, s[:2]), IndexError, "index out of range in self"),
        (
            lambda x, i, s: x.index_add_(0, i, s),
            RuntimeError,
            "Number of indices (2) should be equal to source.size(dim): (3)",
        ),
        (lambda x, i, s: x.index_copy_(0, i - 1, s[:2]), IndexError, "index_copy_(): index -1 is out of bounds"),
        (
            lambda x, i, s: x.index_fill_(0, i + 2, 1.0),
            IndexError,
            "index 3 is out of bounds for dimension 0 with size 3",
        ),
        (
            lambda x, i, s: x.index_reduce_(0, i, s[:2], "sum"),
            RuntimeError,
            "Expected reduce to be one of prod, mean, amax",
        ),
        (lambda x, i, s: x.put_(i + 2, s[:2]), IndexError, "tried to access index 3 on a tensor of 3 elements."),
        (
            lambda x, i, s: x.masked_scatter_(x == x, s[:1]),
            RuntimeError,
            "Number of elements of source < number of ones",
        ),
    ],
)
def test_refusals_change_nothing(call, error, words):
    x = torch.arange(3.0)
    with pytest.raises(error) as caught:
        call(x, torch.tensor([0, 1]), torch.arange(3.0))
    assert words in str(caught.value)
    assert x.tolist() == [0.0, 1.0, 2.0]


def test_slices_along_a_dimension():
    x, at = torch.arange(6.0).reshape(2, 3).clone(), torch.tensor([2, 0])
    assert x.index_select(1, at).tolist() == [[2.0, 0.0], [5.0, 3.0]]
    assert x.index_add(1, torch.tensor([1, 1]), torch.ones(2, 2), alpha=3).tolist() == [
        [0.0, 7.0, 2.0],
        [3.0, 10.0, 5.0],
    ]
    assert x.index_copy(1, at, torch.zeros(2, 2)).tolist() == [[0.0, 1.0, 0.0], [0.0, 4.0, 0.0]]
    assert x.index_fill(1, torch.tensor([-1]), 9).tolist() == [[0.0, 1.0, 9.0], [3.0, 4.0, 9.0]]
    assert x.index_reduce(0, torch.tensor([0]), x[1:], "prod").tolist() == [[0.0, 4.0, 10.0], [3.0, 4.0, 5.0]]
    assert x.t().index_add_(0, torch.tensor([0]), torch.ones(1, 2)) is not None
    assert x.tolist() == [[1.0, 1.0, 2.0], [4.0, 4.0, 5.0]]


def test_elements_by_place_and_mask():
    x = torch.arange(6.0).reshape(2, 3).clone()
    assert x.take(torch.tensor([[0, -1]])).tolist() == [[0.0, 5.0]]
    assert x.put(torch.tensor([0, 0]), torch.tensor([1.0, 2.0]), accumulate=True).tolist()[0][0] == 3.0
    assert x.masked_select(x % 2 == 1).tolist() == [1.0, 3.0, 5.0]
    assert x.masked_scatter(x > 2, torch.tensor([9.0, 8.0, 7.0])).tolist() == [[0.0, 1.0, 2.0], [9.0, 8.0, 7.0]]
    assert torch.take_along_dim(x, torch.tensor([[-1]]), 1).tolist() == [[2.0], [5.0]]
    assert (x > 2).nonzero().tolist() == [[1, 0], [1, 1], [1, 2]]
    assert [c.tolist() for c in (x > 3).nonzero(as_tuple=True)] == [[1, 1], [1, 2]]
    assert torch.nonzero_static(x > 3, size=3).tolist() == [[1, 1], [1, 2], [-1, -1]]
    assert [c.tolist() for c in torch.unravel_index(torch.tensor([5, 3]), (2, 3))] == [[1, 1], [2, 0]]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, s, i: x.gather(1, i),
        lambda x, s, i: x.scatter(1, torch.arange(2).expand(3, 2), s),
        lambda x, s, i: x.scatter_add(1, i, s),
        *[lambda x, s, i, r=r: x.scatter_reduce(1, i, s, r) for r in ("sum", "prod", "mean", "amax")],
        lambda x, s, i: x.index_select(1, i[0]),
        lambda x, s, i: x.index_add(1, i[0], s, alpha=2),
        lambda x, s, i: x.index_reduce(1, i[0], s, "prod", include_self=False),
        lambda x, s, i: x.take(i),
        lambda x, s, i: x.masked_scatter(x > 0, s.repeat(3, 1)),
        lambda x, s, i: x.slice_scatter(s, 1, 0, 2),
        lambda x, s, i: x.diagonal_scatter(s[:, 0]),
    ],
)
def test_gradients_by_differences(function):
    x, s, index = normal(3, 4).requires_grad_(), normal(3, 2, seed=5).requires_grad_(), places(4, 3, 2, seed=3)
    out = function(x, s, index)
    weights = normal(*out.shape, seed=9)
    grads = torch.autograd.grad(out, (x, s), weights, allow_unused=True)
    for t, g in zip((x, s), grads, strict=True):
        step = normal(*t.shape, seed=11) * 1e-6
        with torch.no_grad():
            ahead = function(*(v + step if v is t else v for v in (x, s)), index)
            back = function(*(v - step if v is t else v for v in (x, s)), index)
        wanted = ((ahead - back) * weights).sum().item() / 2
        assert abs((0 if g is None else (g * step).sum().item()) - wanted) < 1e-9


def test_index_select_outside_of_a_dimension():
    at = torch.tensor([0, 5])
    with pytest.raises(IndexError, match="out of range in self"):
        torch.ones(2, 3).index_select(0, at)
    with pytest.raises(RuntimeError, match="INDICES element is out of DATA bounds, id=5 axis_dim=3"):
        torch.ones(2, 3).index_select(1, at)
    with pytest.raises(RuntimeError, match="axis dim should be positive"):
        torch.ones(0, 3).index_select(0, at)


def test_unravel_index_says_what_is_wrong():
    at = torch.tensor([1])
    for args, words in (
        ((torch.tensor(0.5), (2, 2)), "expected 'indices' to be integer"),
        ((at, torch.tensor([1, 2])), "expected 'shape' to be int or sequence"),
        ((at, (1, 2.0)), "expected 'shape' sequence to only contain ints"),
    ):
        with pytest.raises(TypeError, match=words):
            torch.unravel_index(*args)
    with pytest.raises(RuntimeError, match="as_tuple"):
        torch.nonzero(at, as_tuple=True, out=at)


def test_index_add_says_which_index_lies_outside():
    at = torch.tensor([0, 9])
    for shape, dim in (((2, 3), 0), ((3, 2), 1), ((2, 3, 4), 0), ((3, 4, 2), 2)):
        with pytest.raises(RuntimeError, match=f"index 9 is out of bounds for dimension {dim} with size 2"):
            torch.zeros(shape).index_add_(dim, at, torch.ones(shape))
    for shape, dim in (((2,), 0), ((3, 2, 4), 1)):
        with pytest.raises(IndexError, match="index out of range in self"):
            torch.zeros(shape).index_add(dim, at, torch.ones(shape))


def test_take_writes_its_own_dtype():
    with pytest.raises(RuntimeError, match="got self.dtype = Float and out.dtype = Double"):
        torch.take(torch.ones(3), torch.tensor([1]), out=torch.empty(1, dtype=torch.float64))


@pytest.mark.parametrize("call", ["index_add", "index_reduce"])
def test_slices_have_as_many_dimensions_as_what_they_are_added_to(call):
    rest = ("prod",) if call == "index_reduce" else ()
    for shape, source in (((4,), ()), ((), (1,)), ((1,), ())):
        with pytest.raises(RuntimeError, match="source tensor shape must match self tensor shape"):
            getattr(torch.zeros(shape), call)(0, torch.tensor([0]), torch.ones(source), *rest)
    assert getattr(torch.ones(()), call)(0, torch.tensor([0]), torch.ones(()), *rest).tolist() == 1 + (not rest)


def test_index_reduce_rounds_narrow_floats_at_every_step():
    index = torch.tensor([0, 0, 0])
    start = torch.tensor([60000.0], dtype=torch.float16)
    source = torch.tensor([2.0, 0.25, 0.5], dtype=torch.float16)
    assert start.index_reduce(0, index, source, "prod").item() == float("inf")
    start = torch.tensor([1.0], dtype=torch.bfloat16)
    source = torch.tensor([0.003, 0.003, 0.003], dtype=torch.bfloat16)
    assert start.index_reduce(0, index, source, "mean").item() == 0.25


# ---- one index for a whole slice
DTYPES = [np.float32, np.float64, np.int64, np.int16, np.complex64, np.float16, torch.bfloat16.numpy]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 3), st.data(), st.sampled_from(DTYPES), st.booleans(),
    st.sampled_from(["gather", "set", "sum", "mean", "prod", "amax", "amin"]),
)  # fmt: skip
def test_an_expanded_index_is_that_of_its_elements(rank, data, dtype, include_self, how) -> None:
    """What is done by slices is what is done element by element, where the index covers a part of the arrays alone too."""
    if dtype is np.complex64 and how in ("amax", "amin"):
        how = "sum"
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    dim = data.draw(st.integers(0, rank - 1))
    more = data.draw(st.lists(st.integers(0, 2), min_size=rank, max_size=rank))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    whole = tuple(n + m for n, m in zip(sizes, more, strict=True))
    target = rng.integers(-3, 4, whole).astype(dtype)
    source = rng.integers(-3, 4, tuple(n + 1 for n in sizes)).astype(dtype)
    line = rng.integers(0, whole[dim], sizes[dim]).reshape([-1 if k == dim else 1 for k in range(rank)])
    expanded = np.broadcast_to(line, sizes)
    assert kernels.of_slices(expanded, dim) is not None
    found = []
    for index in (expanded, np.ascontiguousarray(expanded)):
        out = target.copy()
        if how == "gather":
            found.append(kernels.gather(np, target, dim, index))
            continue
        if how == "set":
            kernels.scatter(np, out, dim, index, source)
        else:
            kernels.scatter_reduce(np, out, dim, index, source, how, include_self)
        found.append(out)
    np.testing.assert_array_equal(*[f.astype(np.complex128) for f in found])
    assert found[0].dtype == found[1].dtype and found[0].shape == found[1].shape


def test_an_expanded_index_out_of_bounds_is_refused() -> None:
    x, at = torch.zeros(3, 70_000), torch.tensor([0, 3])[:, None].expand(-1, 70_000)
    for call in (lambda: x.gather(0, at), lambda: x.scatter_add(0, at, torch.ones(2, 70_000))):
        with pytest.raises(RuntimeError, match="index 3 is out of bounds for dimension 0 with size 3"):
            call()


def test_many_elements_by_an_expanded_index() -> None:
    torch.manual_seed(0)
    x, at = torch.randn(5, 40_000, requires_grad=True), torch.tensor([1, 1, 4])[:, None].expand(-1, 40_000)
    for f in (
        lambda at: x.gather(0, at),
        lambda at: torch.zeros(5, 40_000).scatter_reduce(0, at, x, "mean", include_self=False),
    ):
        y, z = f(at), f(at.contiguous())
        assert torch.equal(y, z)
        assert torch.equal(*[torch.autograd.grad(t.square().sum(), x)[0] for t in (y, z)])


def test_numbers_are_scattered_in_place():
    index = torch.tensor([[0, 2], [1, 1]])
    for dtype in (torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool, torch.float16):
        for value in (1, True, 0):
            x = torch.zeros(3, 4).to(dtype)
            version = x._version
            assert x.scatter_(1, index, value) is x and x._version == version + 1
            assert torch.equal(x, torch.zeros(3, 4).to(dtype).scatter(1, index, value))
            turned = torch.zeros(4, 3).to(dtype).t().scatter_(1, index, value)
            assert torch.equal(turned, x)
    x = torch.arange(6).reshape(2, 3)
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.scatter_(1, torch.tensor([[3]]), 1)
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.zeros(3, dtype=torch.uint8).scatter_(0, torch.tensor([0]), 300)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    leaf = torch.zeros(3, requires_grad=True)
    (leaf * 2).scatter_(0, torch.tensor([1]), 5.0).sum().backward()
    assert leaf.grad.tolist() == [2.0, 0.0, 2.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.int16])
def test_indices_along_a_dimension_are_integers(dtype):
    with pytest.raises(RuntimeError, match=r"take_along_dim\(\): dtype of indices should be Long but got"):
        torch.take_along_dim(torch.eye(2), torch.zeros(2, 2, dtype=dtype), 0)
