"""cat, stack, split and their kin: shapes, dtypes, layouts, gradients of pieces, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch


def counting(*shape, **options):
    return torch.arange(float(np.prod(shape, dtype=int))).reshape(shape).clone().to(**options)


def test_cat_promotes_skips_empty_vectors_and_keeps_channels_last():
    x = counting(2, 3)
    assert torch.cat((x, x.long())).dtype is torch.float32
    assert torch.cat((x, x.double()), -1).dtype is torch.float64
    assert torch.cat((torch.zeros(0), x)).tolist() == x.tolist()
    assert torch.concat((x, x), axis=1).shape == (2, 6)
    image = torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert torch.cat((image, image)).stride() == (60, 1, 15, 3)
    assert torch.cat((x.t(), x.t())).stride() == (2, 1)
    out = torch.empty(4, 3)
    assert torch.cat((x, x), out=out) is out and out.tolist() == x.tolist() * 2


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda v, x: torch.cat(()), ValueError, "torch.cat(): expected a non-empty list of Tensors"),
        (
            lambda v, x: torch.cat(x),
            TypeError,
            "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor",
        ),
        (lambda v, x: torch.cat((v, 1)), TypeError, "expected Tensor as element 1 in argument 0, but got int"),
        (
            lambda v, x: torch.cat((v[0], v)),
            RuntimeError,
            "zero-dimensional tensor (at position 0) cannot be concatenated",
        ),
        (lambda v, x: torch.cat((v, x)), RuntimeError, "Tensors must have same number of dimensions: got 1 and 2"),
        (
            lambda v, x: torch.cat((x, x[:, 1:])),
            RuntimeError,
            "Expected size 3 but got size 2 for tensor number 1 in the list.",
        ),
        (
            lambda v, x: torch.cat((v, v), 1),
            IndexError,
            "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
        ),
        (
            lambda v, x: torch.cat((v,), out=v.long()),
            TypeError,
            "input types can't be cast to the desired output type Long",
        ),
        (
            lambda v, x: torch.stack((v, x)),
            RuntimeError,
            "stack expects each tensor to be equal size, but got [3] at entry 0",
        ),
        (lambda v, x: torch.stack(()), RuntimeError, "stack expects a non-empty TensorList"),
        (
            lambda v, x: x.split(0),
            RuntimeError,
            "split_size can only be 0 if dimension size is 0, but got dimension size of 2",
        ),
        (lambda v, x: x.split((1, 2)), RuntimeError, "split_with_sizes expects split_sizes to sum exactly to 2"),
        (lambda v, x: x.chunk(0), RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0"),
        (lambda v, x: x.hsplit(2), RuntimeError, "the size of the dimension 3 is not divisible by the split_size 2!"),
        (lambda v, x: torch.meshgrid(v, v, indexing="zz"), RuntimeError, 'indexing must be one of "xy" or "ij"'),
        (
            lambda v, x: torch.broadcast_shapes((2,), (3,)),
            RuntimeError,
            "Attempting to broadcast a dimension of length 3 at -1!",
        ),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error) as caught:
        call(counting(3), counting(2, 3))
    assert words in str(caught.value)


def test_stacks_and_grids_agree_with_numpy():
    v, x = counting(3), counting(3, 2)
    for name, parts in (("hstack", (v, v)), ("vstack", (v, v)), ("dstack", (x, x)), ("column_stack", (v, x))):
        expected = getattr(np, name)([p.numpy() for p in parts])
        assert np.array_equal(getattr(torch, name)(parts).numpy(), expected)
    for indexing in ("ij", "xy"):
        ours = torch.meshgrid(v, counting(2), indexing=indexing)
        theirs = np.meshgrid(v.numpy(), counting(2).numpy(), indexing=indexing)
        assert all(np.array_equal(a.numpy(), b) for a, b in zip(ours, theirs, strict=True))
    assert torch.cartesian_prod(v, counting(2)).tolist() == [[a, b] for a in range(3) for b in range(2)]
    assert torch.combinations(v).tolist() == [[0, 1], [0, 2], [1, 2]]
    assert torch.block_diag(v, torch.tensor(7.0)).tolist() == [[0.0, 1.0, 2.0, 0.0], [0.0, 0.0, 0.0, 7.0]]
    assert [t.ndim for t in torch.atleast_2d(v[0], v, x)] == [2, 2, 2]
    assert torch._chunk_cat([counting(3, 2), counting(2)], 0, 2).shape == (2, 5)


def test_pieces_are_views_and_may_not_be_written_one_by_one():
    x = counting(4, 3).requires_grad_()
    y = x * 1
    first, second = y.split(2)
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        first.mul_(2)
    assert [p.shape for p in y.chunk(3)] == [(2, 3), (2, 3)]
    assert [len(p) for p in counting(7).tensor_split(3)] == [3, 2, 2]
    assert [len(p) for p in counting(7).tensor_split((2, 4))] == [2, 2, 3]
    assert len(torch.zeros(0, 2).chunk(3)) == 3
    assert second._base is y


@pytest.mark.parametrize(
    "pieces",
    [
        lambda x: x.split(2),
        lambda x: x.split((1, 3)),
        lambda x: x.unbind(1),
        lambda x: x.chunk(3, 1),
        lambda x: x.tensor_split(3),
        lambda x: torch.unsafe_chunk(x, 2),
    ],
)
def test_gradients_of_some_pieces(pieces):
    x = counting(4, 3).requires_grad_()
    result = pieces(x)
    (g,) = torch.autograd.grad((result[0] * 2).sum() + result[-1].sum(), x, create_graph=True)
    expected = np.zeros((4, 3))
    for piece, weight in ((result[0], 2), (result[-1], 1)):
        expected.reshape(-1)[piece.detach().numpy().astype(int).reshape(-1)] += weight
    assert np.array_equal(g.detach().numpy(), expected)


def test_gradients_of_joins():
    x, y = counting(2, 3).requires_grad_(), counting(1, 3).requires_grad_()
    gx, gy = torch.autograd.grad(torch.cat((x, y)), (x, y), counting(3, 3))
    assert gx.tolist() == counting(3, 3)[:2].tolist() and gy.tolist() == counting(3, 3)[2:].tolist()
    ga, gb = torch.autograd.grad(torch.stack((x, x * 2), 1), (x, y), counting(2, 2, 3), allow_unused=True)
    assert gb is None and ga.tolist() == (counting(2, 2, 3)[:, 0] + 2 * counting(2, 2, 3)[:, 1]).tolist()


@pytest.mark.parametrize("shape", [(2, 3, 1, 4), (2, 3, 4, 1)])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat_keeps_channels_last_where_a_size_is_one(shape, dim):
    x = torch.arange(24.0).reshape(shape).contiguous(memory_format=torch.channels_last)
    joined = torch.cat([x, x], dim)
    assert joined.is_contiguous(memory_format=torch.channels_last) and not joined.is_contiguous()
    assert torch.equal(joined.narrow(dim, 0, x.shape[dim]), x)
    assert torch.cat([x.to("meta")] * 2, dim).stride() == joined.stride()


def test_an_empty_vector_that_cat_skips_has_an_empty_gradient_and_the_others_their_own():
    skipped, x, y = torch.zeros(0).requires_grad_(), counting(2, 3).requires_grad_(), counting(1, 3).requires_grad_()
    weight = counting(3, 3)
    (torch.cat((skipped, x, y)) * weight).sum().backward()
    assert skipped.grad.shape == (0,)
    assert x.grad.tolist() == weight[:2].tolist() and y.grad.tolist() == weight[2:].tolist()


def test_empty_parts_keep_their_history_in_vmap():
    nothing = torch.zeros(4, 0, requires_grad=True)
    out = torch.vmap(lambda a: torch.cat([torch.ones(2, 3), a], 1))(nothing)
    assert out.shape == (4, 2, 3) and out.requires_grad
    out.sum().backward()
    assert nothing.grad.shape == (4, 0)


def test_tensors_of_the_common_shape_are_themselves() -> None:
    x, y = torch.ones(2, 3), torch.ones(3)
    a, b = torch.broadcast_tensors(x, y)
    assert a is x and b.shape == (2, 3) and b._base is y
