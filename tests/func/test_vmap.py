"""vmap: equals a loop, for one level and for several."""

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.func import chunk_vmap, vmap


@pytest.fixture
def x():
    return torch.arange(24, dtype=torch.float64).view(2, 3, 4)


def close(got, wanted):
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12)


def looped(function, x, dim=0, out_dim=0):
    return torch.stack([function(x.select(dim, i)) for i in range(x.shape[dim])], out_dim)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize(
    "function",
    [
        lambda a: a.sum(0),
        lambda a: a.softmax(-1),
        lambda a: a @ a.t(),
        lambda a: a.sort(-1)[0],
        lambda a: a.cumsum(0),
        lambda a: torch.cat([a, a * 2]),
        lambda a: a[1:],
        lambda a: a.transpose(0, 1).reshape(-1),
        lambda a: torch.where(a > 3, a, a * 0),
        lambda a: a.amax(),
    ],
)
def test_equals_a_loop(function, dim, x):
    close(vmap(function, in_dims=dim)(x), looped(function, x, dim))


def test_nests(x):
    got = vmap(vmap(lambda a: a * a.sum()))(x)
    close(got, x * x.sum(-1, keepdim=True))


def test_out_dims_and_unbatched_results(x):
    a, b = vmap(lambda row: (row.t(), torch.ones(2)), out_dims=(2, 0))(x)
    assert tuple(a.shape) == (4, 3, 2) and tuple(b.shape) == (2, 2)


def test_in_place_writes_reach_the_batch(x):
    def function(a):
        a = a.clone()
        a.mul_(2)
        a[0] += 1
        return a

    close(vmap(function)(x), looped(function, x))


def test_in_place_write_of_a_batched_tensor_into_an_unbatched_one_is_refused(x):
    target = torch.zeros(3, 4, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="vmapped over but `self` not being vmapped"):
        vmap(lambda a: target.add_(a))(x)
    assert not target.any()


def test_randomness(x):
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda a: torch.randn(3))(x)
    same = vmap(lambda a: torch.randn(3), randomness="same")(x)
    different = vmap(lambda a: torch.randn(3) + a.sum() * 0, randomness="different")(x)
    assert torch.equal(same[0], same[1])
    assert not torch.equal(different[0], different[1])


def test_chunks(x):
    wanted = vmap(lambda a: a * 2, in_dims=2)(x)
    close(vmap(lambda a: a * 2, in_dims=2, chunk_size=3)(x), wanted)
    close(chunk_vmap(lambda a: a * 2, in_dims=2, chunks=2)(x), wanted)


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda: vmap(lambda a, b: a + b)(torch.ones(3), torch.ones(4)),
            "Expected all tensors to have the same size in the mapped dimension",
        ),
        (lambda: vmap(lambda: 0)(), "got no inputs"),
        (lambda: vmap(lambda a: a)(3), "We cannot vmap over non-Tensor arguments"),
        (lambda: vmap(lambda a: a, in_dims=3)(torch.ones(2)), "so expected in_dim to satisfy"),
        (lambda: vmap(lambda a: 3)(torch.ones(2)), "must only return Tensors"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_gradients_flow_through(x):
    leaf = x.clone().requires_grad_()
    vmap(lambda a: (a * a).sum())(leaf).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), 2 * x.numpy())


def test_examples_meet_in_the_dtype_that_they_would_meet_in_alone():
    """The batch of a number has a dimension, and its examples have none: they yield to tensors that have some."""
    wide, matrix = torch.rand(3, dtype=torch.float64), torch.rand(3, 2)
    for op in (torch.add, torch.sub, torch.mul, torch.div, torch.pow, torch.atan2, torch.maximum):
        assert torch.vmap(op)(matrix, wide).dtype is torch.float32
        assert torch.vmap(op)(wide, matrix).dtype is torch.float32
        assert torch.vmap(op, (None, 0))(matrix, wide).dtype is torch.float32
    lone = torch.tensor(2.0, dtype=torch.float64)
    assert torch.vmap(lambda x: x * lone)(torch.rand(3)).dtype is torch.float64
    assert torch.vmap(lambda x: x * lone)(matrix).dtype is torch.float32
    assert torch.vmap(lambda x, y: x.int() + y)(matrix, wide).dtype is torch.float64
    assert torch.vmap(lambda x, y: x.add_(y))(matrix.clone(), wide).dtype is torch.float32


def test_views_of_examples_without_dimensions_check_theirs():
    batch = torch.ones(3)
    for view in (lambda x: x.squeeze(1), lambda x: x.transpose(0, 1), lambda x: x.squeeze((0, 1))):
        with pytest.raises(IndexError, match="out of range"):
            torch.vmap(view)(batch)
    assert torch.vmap(lambda x: x.squeeze(0))(batch)._base is batch


def test_new_empty_strided_gives_each_example_memory():
    result = torch.vmap(lambda x: x.new_empty_strided((2,), (2,)).fill_(0).add_(x))(torch.arange(3.0))
    assert result.stride() == (3, 2) and result[:, 0].tolist() == [0.0, 1.0, 2.0]


def test_what_vmap_refuses_in_words():
    x = torch.rand(3, 2)
    with pytest.raises(RuntimeError, match=r"Got incorrect dims for mm\(a, b\). a has dim 1and b has dim 1but"):
        torch.vmap(torch.mm)(x, x)
    with pytest.raises(RuntimeError, match="calling out variants of random operations"):
        torch.vmap(lambda t: torch.randn(2, out=t), randomness="same")(x)
    with pytest.raises(RuntimeError, match="calling out variants of random operations"):
        torch.vmap(lambda t: torch.randperm(2, out=torch.zeros(2)), randomness="same")(x)
    with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::equal"):
        torch.vmap(torch.equal)(x, x)
    with pytest.raises(RuntimeError, match="NYI: querying is_contiguous inside of vmap"):
        torch.vmap(lambda t: t.contiguous(memory_format=torch.channels_last))(x)
    with pytest.raises(RuntimeError, match="only supported with memory_format torch.preserve_format"):
        torch.vmap(lambda t: t.clone(memory_format=torch.channels_last))(x)


def test_an_operator_without_results_runs_for_each_example():
    def f(x):
        torch.ops.aten._assert_async(x.sum() > 0)
        return x * 2

    assert torch.vmap(f)(torch.ones(3, 2)).tolist() == [[2.0, 2.0]] * 3
    with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value"):
        torch.vmap(f)(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]))


def test_writes_refuse_results_of_a_higher_category():
    """An example on its own would: the batch must not truncate what it cannot hold."""
    x = torch.tensor([[1, 2], [3, 4]])
    for write in (lambda x: x.clone().div_(2), lambda x: x.clone().sqrt_(), lambda x: x.clone().sub_(0.5)):
        with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
            torch.vmap(write)(x)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Bool"):
        torch.vmap(lambda x: x.clone().add_(1))(x > 2)


def test_checks_see_examples_and_not_the_batch():
    with pytest.raises(RuntimeError, match="trace: expected a matrix, but got tensor with dim 3"):
        torch.vmap(torch.trace)(torch.ones(2, 3, 3, 3))
    with pytest.raises(RuntimeError, match="must have at least 2 dimensions"):
        torch.vmap(torch.matrix_exp)(torch.ones(2, 2))
    with pytest.raises(IndexError):
        torch.vmap(lambda x: torch.nn.functional.batch_norm(x, None, None, training=True))(torch.ones(2, 2))


def test_tensors_that_have_escaped_say_so():
    escaped = []
    torch.vmap(lambda x: (escaped.append(x), x * 2)[1])(torch.ones(3, 3))
    for call in (
        lambda t: t.sin(),
        lambda t: t.mul_(1),
        lambda t: t + 1,
        lambda t: t.view(3),
        lambda t: torch.cat([t, t]),
    ):
        with pytest.raises(RuntimeError, match="your tensor may have escaped from inside a function being vmapped"):
            call(escaped[0])


def written_statistics(x):
    mean, variance = torch.zeros(3), torch.ones(3)
    F.batch_norm(x, mean, variance, training=True)
    return mean


def test_statistics_that_examples_share_are_not_moved_by_each():
    batch, mean, variance = torch.rand(2, 5, 3), torch.zeros(3), torch.ones(3)
    for call in (
        written_statistics,
        lambda x: F.batch_norm(x, mean, variance, training=True),
        lambda x: F.instance_norm(x[None].mT, mean, variance, use_input_stats=True),
    ):
        with pytest.raises(RuntimeError, match="running_mean or running_var, which will be updated in place, were not"):
            torch.vmap(call)(batch)
    assert mean.eq(0).all() and variance.eq(1).all()
    own = torch.zeros(2, 3), torch.ones(2, 3)
    torch.vmap(lambda x, m, v: F.batch_norm(x, m, v, training=True))(batch, *own)
    assert torch.equal(own[0], torch.stack([written_statistics(x) for x in batch]))


def test_the_same_input_for_all_examples_moves_statistics_once():
    x, weights, mean, variance = torch.rand(5, 3), torch.rand(2, 3), torch.zeros(3), torch.ones(3)
    out = torch.vmap(lambda w: F.batch_norm(x, mean, variance, w, training=True))(weights)
    assert torch.equal(mean, written_statistics(x))
    torch.testing.assert_close(out, torch.stack([F.batch_norm(x, None, None, w, training=True) for w in weights]))


def test_an_argument_that_examples_share_is_written_by_none():
    mean = torch.zeros(3)
    with pytest.raises(RuntimeError, match="writes `running_mean`, which is not being vmapped over"):
        torch.vmap(
            lambda x: torch.ops.aten._native_batch_norm_legit(x, None, None, mean, torch.ones(3), True, 0.1, 1e-5)[0]
        )(torch.rand(2, 5, 3))
    with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::add.out"):
        torch.vmap(lambda x: torch.add(x, 1, out=mean))(torch.rand(2, 3))
    assert mean.eq(0).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.zeros(3).set_(x),
        lambda x: x.clone().set_(torch.zeros(3)),
        lambda x: x.clone().resize_(2),
        lambda x: setattr(torch.zeros(3), "data", x),
        lambda x: x.clone().untyped_storage(),
        lambda x: x.clone().data_ptr(),
        lambda x: x.numpy(),
    ],
)
def test_tensors_inside_have_no_memory_of_their_own(call):
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.vmap(call)(torch.ones(2, 3))


def test_detach_in_place_reaches_the_value(x):
    def f(a):
        b = a * 1
        b.detach_()
        return (b * 2).sum() + a.sum()

    ones = torch.ones_like(x)
    assert torch.equal(torch.func.grad(lambda x: vmap(f)(x).sum())(x), ones)
    assert torch.equal(vmap(torch.func.grad(f))(x), ones)
    leaf = x.clone().requires_grad_()
    assert torch.equal(torch.autograd.grad(vmap(f)(leaf).sum(), leaf)[0], ones)
    vmap(lambda a: a.detach_())(torch.arange(4.0).view(2, 2))
