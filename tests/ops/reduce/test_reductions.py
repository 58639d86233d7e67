"""Reductions: values against NumPy, dtypes, dims, errors in PyTorch's words, gradients where values repeat or are zero."""

import math

import numpy as np
import pytest

import pullback as torch
from pullback.ops.reduce.reduction_kernels import add_reduce


def array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("dims", [0, -1, (0, 2), (0, 1, 2)])
def test_values_over_dims(name, dims):
    a = array(2, 3, 4)
    if name == "prod" and isinstance(dims, tuple):
        pytest.skip("a product is over one dimension or all")
    for keepdim in (False, True):
        got = getattr(torch.from_numpy(a), name)(dims, keepdim)
        want = getattr(a, {"amax": "max", "amin": "min"}.get(name, name))(axis=dims, keepdims=keepdim)
        np.testing.assert_allclose(got.numpy(), want)


@pytest.mark.parametrize("shape", [(1,), (7,), (33,), (3, 5), (40, 70), (300, 600)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whole_and_one_dimension_of_any_size(shape, dtype):
    a = array(*shape).astype(dtype)
    t = torch.from_numpy(a)
    tolerance = {"rtol": 1e-5 if dtype is np.float32 else 1e-12, "atol": 1e-4 if dtype is np.float32 else 1e-12}
    np.testing.assert_allclose(t.sum().item(), a.astype(np.float64).sum(), **tolerance)
    np.testing.assert_allclose(t.mean().item(), a.astype(np.float64).mean(), **tolerance)
    assert t.max().item() == a.max() and t.min().item() == a.min()
    for d in range(a.ndim):
        np.testing.assert_allclose(t.sum(d).numpy(), a.astype(np.float64).sum(d), **tolerance)
        np.testing.assert_array_equal(t.amax(d).numpy(), a.max(d))
    np.testing.assert_allclose(
        t.t().sum(0).numpy() if a.ndim == 2 else 0, a.T.sum(0) if a.ndim == 2 else 0, **tolerance
    )


def test_long_float32_sums_keep_their_digits():
    a = np.full((200_000, 2), 0.1, np.float32)
    np.testing.assert_allclose(add_reduce(np, a, (0,), False), 20_000.000298, rtol=1e-6)
    np.testing.assert_allclose(add_reduce(np, a[::2], (0,), False), 10_000.000149, rtol=1e-6)
    np.testing.assert_allclose(torch.from_numpy(a).sum().item(), 40_000.000596, rtol=1e-6)


@pytest.mark.parametrize("shape", [(1,), (63, 67), (129, 65), (3, 1000, 7), (4097,)])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_products_of_complex_numbers_of_any_size(shape, dtype):
    turns = np.random.default_rng(0).uniform(-3, 3, shape)
    x = torch.from_numpy(np.exp(1j * turns).astype(dtype))
    tolerance = 1e-3 if dtype == "complex64" else 1e-11
    np.testing.assert_allclose(x.prod().numpy(), np.exp(1j * turns.sum()), atol=tolerance)
    for d in range(len(shape)):
        for keep in (False, True):
            wanted = np.exp(1j * turns.sum(d, keepdims=keep))
            np.testing.assert_allclose(x.prod(d, keep).numpy(), wanted, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_of_half_precision_is_that_of_single_precision_rounded(dtype, dim):
    x = torch.from_numpy(np.random.default_rng(0).normal(0, 4, (40, 70)).astype("float32")).to(dtype)
    for function in (torch.softmax, torch.log_softmax):
        exact, y = function(x.double(), dim), function(x, dim)
        assert y.dtype is dtype and y.is_contiguous()
        np.testing.assert_allclose(y.double().numpy(), exact.numpy(), rtol=1.01 * torch.finfo(dtype).eps / 2, atol=1e-7)


def test_result_dtypes():
    assert torch.tensor([True, False]).sum().dtype is torch.int64
    assert torch.tensor([1, 2], dtype=torch.uint8).all().dtype is torch.uint8
    assert torch.tensor([1.0]).any().dtype is torch.bool
    assert torch.ones(3, dtype=torch.float16).sum().dtype is torch.float16
    assert torch.ones(3).sum(dtype=torch.float64).dtype is torch.float64
    assert torch.tensor([1 + 2j, 3.0]).count_nonzero().item() == 2


def test_extremes_propagate_nan_and_take_the_first_place():
    t = torch.tensor([1.0, float("nan"), 5.0, 5.0])
    assert t.max().isnan() and t.amin().isnan() and t.argmax().item() == 1
    assert torch.tensor([2.0, 5.0, 5.0]).max(0).indices.item() == 1
    assert torch.tensor([float("nan")] + [0.0] * 50).max().isnan()
    assert torch.tensor([0.0] * 50 + [float("nan")]).min().isnan()


def test_overloads_are_told_apart():
    t = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
    assert t.max().item() == 7
    assert torch.max(t, 1, True).values.shape == (2, 1)
    assert torch.max(t, torch.zeros(2)).shape == (2, 2)
    assert t.sum(axis=0, keepdims=True).shape == (1, 2)
    with pytest.raises(
        TypeError, match=r"max\(\) received an invalid combination of arguments - got \(Tensor, tuple\)"
    ):
        torch.max(t, (0, 1))
    with pytest.raises(TypeError, match=r"got \(str\)"):
        t.sum("a")
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        torch.sum(3)


def test_node_names_tell_overloads_apart():
    t = torch.ones(2, 2, requires_grad=True)
    assert [type(r.grad_fn).__name__ for r in (t.sum(), t.sum(0), t.max(), t.max(0).values)] == [
        "SumBackward0", "SumBackward1", "MaxBackward1", "MaxBackward0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: torch.ones(2, 3).sum(2), IndexError, "Dimension out of range"),
        (lambda: torch.ones(2, 3).sum((0, 0)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
        (lambda: torch.zeros(0).max(), RuntimeError, r"max\(\): Expected reduction dim to be specified"),
        (lambda: torch.zeros(0, 2).amax(0), IndexError, "Expected reduction dim 0 to have non-zero size"),
        (lambda: torch.tensor([True]).argmax(), RuntimeError, "does not support bool input"),
        (lambda: torch.tensor([1, 2]).mean(), RuntimeError, "could not infer output dtype"),
        (lambda: torch.tensor([1j]).amax(), NotImplementedError, "not implemented for 'ComplexFloat'"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_empty_list_of_dims():
    t = torch.tensor([[0.0, 1.0]])
    assert t.sum(dim=[]).shape == () and t.any(dim=()).shape == (1, 2)


def test_gradient_of_an_extreme_is_shared_by_equals():
    t = torch.tensor([3.0, 1.0, 3.0], requires_grad=True)
    assert torch.autograd.grad(t.max(), t)[0].tolist() == [0.5, 0, 0.5]
    assert torch.autograd.grad(t.amax(0), t)[0].tolist() == [0.5, 0, 0.5]
    assert torch.autograd.grad(t.max(0).values, t)[0].tolist() == [1, 0, 0]


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_gradient_of_a_product_with_zeros(zeros):
    a = np.array([2.0, 3.0, 4.0])
    a[:zeros] = 0
    t = torch.tensor(a, requires_grad=True)
    (g,) = torch.autograd.grad(t.prod(), t, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), [np.delete(a, i).prod() for i in range(3)])
    (second,) = torch.autograd.grad(g.sum(), t)
    want = [sum(np.delete(a, [i, j]).prod() for j in range(3) if j != i) for i in range(3)]
    np.testing.assert_allclose(second.numpy(), want)


def test_segments():
    data = torch.arange(6.0, requires_grad=True)
    out = torch.segment_reduce(data, "mean", lengths=torch.tensor([2, 0, 4]))
    np.testing.assert_array_equal(out.detach().numpy(), [0.5, np.nan, 3.5])
    (g,) = torch.autograd.grad(torch.segment_reduce(data, "max", lengths=torch.tensor([2, 4])).sum(), data)
    assert g.tolist() == [0, 1, 0, 0, 0, 1]
    last = torch.segment_reduce(data, "sum", lengths=torch.tensor([1, 2, 3]), axis=-1)
    assert last.tolist() == [0, 3, 12] and torch.autograd.grad(last.prod(), data)[0].tolist() == [36, 0, 0, 0, 0, 0]
    empty = torch.segment_reduce(torch.empty(0), "sum", lengths=torch.tensor([0, 0]), initial=2)
    assert empty.tolist() == [2, 2]


@pytest.mark.parametrize("d", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(7,), (129,), (3, 70), (70, 3), (5, 9, 11), (3, 1000)], ids=str)
def test_a_function_and_its_operator_add_in_one_order(shape, d):
    """To the last bit: a call that somebody listens to, or that a library took over, is no other sum."""
    x, aten = torch.randn(shape, dtype=d), torch.ops.aten
    for t in (x, x.transpose(0, -1), x[1:]):
        pairs = [(t.sum(), aten.sum(t)), (t.mean(), aten.mean(t)), (t.amax(), aten.amax(t))]
        for dim in range(t.ndim):
            pairs += [(t.sum(dim), aten.sum.dim_IntList(t, [dim])), (t.mean(dim), aten.mean.dim(t, [dim]))]
        for plain, general in pairs:
            np.testing.assert_array_equal(plain.numpy(), general.numpy())


def test_masked_softmax_leaves_scores_out():
    scores = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]], requires_grad=True)
    mask = torch.tensor([[True, True, True], [False, True, False]])
    out = torch._masked_softmax(scores, mask, 1, 2)
    assert out[0].isnan().all() and out[1, 1] == 0
    torch.testing.assert_close(out[1, [0, 2]], torch.tensor([0.0, 1.0]).softmax(0))
    out[:, 0].sum().backward()
    assert scores.grad[0].tolist() == [0, 0, 0] and scores.grad[1, 1] == 0 and scores.grad[1, 0] > 0
    heads = torch.randn(2, 1, 3, 3)
    padded = torch._masked_softmax(heads, mask, 3, 1)
    torch.testing.assert_close(padded[1, 0, :, [0, 2]], heads[1, 0, :, [0, 2]].softmax(-1))
    with pytest.raises(RuntimeError, match=r"mask_type == 0 mask shape should be \(L, L\)"):
        torch._masked_softmax(heads, mask, 3, 0)
    with pytest.raises(RuntimeError, match="boolean"):
        torch._masked_softmax(scores, mask.float(), 1, 2)


def test_cosine_similarity_takes_any_floor_of_lengths():
    x = torch.ones(2, 3, dtype=torch.float16)
    assert torch.cosine_similarity(x, x, 0, eps=1e23).tolist() == [0, 0, 0]
    assert torch.cosine_similarity(torch.tensor(1.0, dtype=torch.float64), x, 0).dtype is torch.float64
    with pytest.raises(RuntimeError, match="eps must be non-negative"):
        torch.cosine_similarity(x, x, 0, eps=-1.0)


def test_distances_of_what_is_no_number_are_none():
    x = torch.tensor([[0.0, 1.0], [float("nan"), 2.0]])
    infinite = torch.full((2, 2), float("inf"), dtype=torch.float64)
    for p in (0.0, 1.0, 2.0, float("inf")):
        assert torch.pdist(x, p).isnan().all() and torch.pdist(infinite, p).isnan().all()
    assert torch.pdist(torch.tensor([[0.0, 1.0, 2.0], [0.0, 3.0, 4.0]]), 0.0).tolist() == [2]


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_extremes_are_written_in_their_own_dtype(name):
    with pytest.raises(
        RuntimeError, match="input and out to match, but got Double for input's dtype and Float for out"
    ):
        getattr(torch, name)(torch.ones(2, 2, dtype=torch.float64), 1, out=torch.empty(2))
    with pytest.raises(RuntimeError, match="should have the same dtype, but got input double and hist float"):
        torch.histc(torch.ones(2, dtype=torch.float64), 4, 0, 2, out=torch.empty(4))
    x = torch.tensor(float("nan"), requires_grad=True)
    assert torch.autograd.grad(getattr(x, name)(), x)[0].isnan()


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
@pytest.mark.parametrize("values", [[1.0, 1.0, 2.0], [0.1] * 3, [np.nan, 1.0], [np.nan] * 2, [np.inf, np.inf, 1.0]])
def test_examples_share_gradients_among_equals_as_one_alone_does(name, values):
    function, x = getattr(torch, name), torch.tensor(values, dtype=torch.float64)
    for take in (torch.func.grad, torch.func.jacrev, torch.func.jacfwd, lambda f: f):
        alone, batched = take(function)(x), torch.vmap(take(function))(torch.stack([x, x]))
        np.testing.assert_array_equal(batched[1].tolist(), alone.tolist())
    through = torch.func.grad(lambda rows: torch.vmap(function)(rows).sum())(torch.stack([x, x]))
    np.testing.assert_array_equal(through[0].tolist(), torch.func.grad(function)(x).tolist())


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
def test_a_gradient_that_is_not_finite_stays_with_the_element_that_was_picked(name):
    x = torch.tensor([[1.0, -2.0], [3.0, 4.0]], requires_grad=True)
    for g in (np.nan, np.inf):
        (slope,) = torch.autograd.grad(getattr(torch, name)(x), x, torch.tensor(g))
        assert sorted(map(str, slope.flatten().tolist())) == ["0.0"] * 3 + [str(g)]


@pytest.mark.parametrize("name", ["all", "any"])
def test_truths_go_into_booleans_and_bytes_alone(name):
    with pytest.raises(RuntimeError, match=f"{name} only supports bool tensor for result, got: Float"):
        getattr(torch, name)(torch.ones(3), 0, out=torch.empty(()))


def test_a_hash_of_nothing_is_refused():
    with pytest.raises(IndexError, match="Expected reduction dim 0 to have non-zero size"):
        torch.hash_tensor(torch.empty(0, 3), dim=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_elements_that_attain_an_extreme_share_its_gradient(dtype):
    x = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], dtype=dtype, requires_grad=True)
    third = torch.tensor(1.0, dtype=dtype) / 3
    for keepdim in (False, True):
        (slope,) = torch.autograd.grad(x.amax(1, keepdim).sum(), x)
        assert slope.dtype is dtype and slope.tolist() == [[0, 0.5, 0.5], [third.item()] * 3]
    (slope,) = torch.autograd.grad(x.max(), x, create_graph=True)
    assert slope.tolist() == [[0, 0.5, 0.5], [0, 0, 0]]
    hidden = torch.tensor([1.0, float("nan"), float("nan")], dtype=dtype, requires_grad=True)
    (slope,) = torch.autograd.grad(hidden.max(), hidden)
    assert slope.tolist() == [0, 0.5, 0.5]


@pytest.mark.parametrize("dim", [None, 0])
def test_slopes_of_products_that_overflow_or_vanish(dim):
    """What each element is multiplied by may be an ordinary number."""
    for values, expected in (([1e30, 1e30, 0.5], [5e29, 5e29, math.inf]), ([1e-30, 1e-30, 2.0], [2e-30, 2e-30, 0.0])):
        x = torch.tensor(values, requires_grad=True)
        (x.prod() if dim is None else x.prod(dim)).backward()
        assert x.grad.tolist() == pytest.approx(expected)
