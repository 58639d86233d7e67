"""Batches of views, picks and joins: one call over a batch is the calls over its examples, wherever the batch lies."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch

BATCH = 3


def normal(*shape, seed):
    return torch.from_numpy(np.asarray(np.random.RandomState(seed).randn(*shape)))


def places(high: int):
    return lambda *shape, seed: torch.from_numpy(np.asarray(np.random.RandomState(seed).randint(0, high, shape)))


def case(function, *arguments):
    return pytest.param(function, arguments, id=str(len(arguments)))


CASES = [
    case(lambda x: x.transpose(0, -1), (normal, (2, 3))),
    case(lambda x: x.t(), (normal, (2, 3))),
    case(lambda x: x.permute(2, 0, 1), (normal, (2, 3, 4))),
    case(lambda x: x.squeeze(), (normal, (1, 3, 1))),
    case(lambda x: x.squeeze(-1), (normal, (1, 3, 1))),
    case(lambda x: x.unsqueeze(-1), (normal, ())),
    case(lambda x: x[1:, 0], (normal, (2, 3))),
    case(lambda x: x.diagonal(1, -1, 0), (normal, (2, 3))),
    case(lambda x: x.unfold(-1, 2, 1), (normal, (2, 3))),
    case(lambda x: x.reshape(3, -1), (normal, (2, 3))),
    case(lambda x: x.expand(4, 2, 3), (normal, (2, 1))),
    case(lambda x: torch.cat(x.split(2, -1), 0), (normal, (2, 4))),
    case(lambda x: torch.stack(x.unbind(-1)), (normal, (2, 3))),
    case(lambda x: x.as_strided((2, 2), (1, 2)), (normal, (2, 3))),
    case(lambda x: x.flip(0).roll(1, -1).tril(), (normal, (2, 3))),
    case(lambda x: x.repeat(2, 1, 2), (normal, (2, 3))),
    case(lambda x, y: torch.cat((x, y), -1), (normal, (2, 3)), (normal, (2, 1))),
    case(lambda x, y: torch.stack((x, y), -1), (normal, (2, 3)), (normal, (2, 3))),
    case(lambda x, i: x[i], (normal, (4, 3)), (places(4), (2,))),
    case(lambda x, i: x[:, i], (normal, (3, 4)), (places(4), (2,))),
    case(lambda x, i, j: x[i, :, j], (normal, (3, 2, 4)), (places(3), (2,)), (places(4), (2,))),
    case(lambda x, i, j: x[:, i, j], (normal, (5, 3, 4)), (places(3), (2,)), (places(4), (2, 2))),
    case(lambda x, i, v: x.index_put((i,), v, accumulate=True), (normal, (4, 3)), (places(4), (5,)), (normal, (5, 3))),
    case(lambda x, i, v: x.index_put((None, i), v, True), (normal, (2, 4, 3)), (places(4), (5,)), (normal, (5, 3))),
    case(lambda x, i: x.gather(1, i), (normal, (2, 4)), (places(4), (2, 3))),
    case(lambda x, i, s: x.scatter_add(-1, i, s), (normal, (2, 4)), (places(4), (2, 3)), (normal, (2, 3))),
    case(lambda x, i, s: x.scatter_reduce(1, i, s, "amax"), (normal, (2, 4)), (places(4), (2, 3)), (normal, (2, 3))),
    case(lambda x, i: x.index_select(-1, i), (normal, (2, 4)), (places(4), (3,))),
    case(lambda x, i, s: x.index_add(1, i, s), (normal, (2, 4)), (places(4), (3,)), (normal, (2, 3))),
    case(lambda x, i: x.take(i), (normal, (2, 4)), (places(8), (3,))),
    case(lambda x, s: x.select_scatter(s, 1, 0), (normal, (2, 3)), (normal, (2,))),
    case(lambda x, s: x.diagonal_scatter(s), (normal, (3, 3)), (normal, (3,))),
    case(lambda x: torch.view_as_real(torch.complex(x, x)), (normal, (2, 3))),
]


@pytest.mark.parametrize("where", ["first", "last", "mixed", "partly"])
@pytest.mark.parametrize(("function", "arguments"), CASES)
def test_a_batch_is_its_examples(function, arguments, where):
    values, dims = [], []
    for k, (make, shape) in enumerate(arguments):
        dim = {"first": 0, "last": len(shape), "mixed": k % (len(shape) + 1), "partly": 0 if k == 0 else None}[where]
        full = shape if dim is None else (*shape[:dim], BATCH, *shape[dim:])
        values.append(make(*full, seed=k))
        dims.append(dim)
    result = torch.vmap(function, tuple(dims))(*values)
    for i in range(BATCH):
        example = [v if d is None else v.select(d, i) for v, d in zip(values, dims, strict=True)]
        assert np.allclose(result[i].numpy(), function(*example).numpy())


def test_rolling_examples_without_dimensions():
    x = torch.arange(3.0)
    assert torch.equal(torch.func.vmap(lambda e: e.roll(1))(x), x)
    assert torch.equal(torch.func.vmap(lambda e: e.roll(1))(torch.zeros(2, 0)), torch.zeros(2, 0))


@pytest.mark.parametrize(
    "dtype, dim", [(torch.float32, 0), (torch.int64, 0), (torch.int64, 1), (torch.int16, 0)], ids=str
)
def test_views_as_another_dtype(dtype, dim):
    x = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)
    examples = [one.contiguous().view(dtype).tolist() for one in x.unbind(dim)]
    assert torch.func.vmap(lambda one: one.view(dtype), in_dims=dim)(x).tolist() == examples


def test_single_numbers_are_not_viewed_as_others_of_another_size():
    with pytest.raises(RuntimeError, match=r"self.dim\(\) cannot be 0 to view Double as Float"):
        torch.func.vmap(lambda one: one.view(torch.float32))(torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize("dims", [{"in_dims": 2}, {"out_dims": 2}])
def test_nested_tensors_are_batched_along_their_first_dimension(dims):
    nt = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)
    with pytest.raises(RuntimeError, match="Nested tensors can only be vmapped over dim=0"):
        torch.vmap(lambda t: t, **dims)(nt)
