"""Random operators: public forms, streams recorded from PyTorch 2.13, gradients, and generators' states."""

import copy
import pickle

import pytest

import pullback as torch
from pullback.ops.system.operator import exports


def rounded(t) -> list:
    return [round(v, 4) for v in t.reshape(-1).tolist()]


@pytest.mark.parametrize(
    "draw, expected",
    [
        (lambda: torch.rand(3), [0.4963, 0.7682, 0.0885]),
        (lambda: torch.rand([3]), [0.4963, 0.7682, 0.0885]),
        (lambda: torch.rand(size=(3,), dtype=torch.float64), [0.9701, 0.7078, 0.4594]),
        (lambda: torch.randn(3), [1.5410, -0.2934, -2.1788]),
        (lambda: torch.randn_like(torch.zeros(3)), [1.5410, -0.2934, -2.1788]),
        (lambda: torch.rand_like(torch.zeros(3)), [0.4963, 0.7682, 0.0885]),
        (lambda: torch.randint(0, 10, (4,)), [4, 9, 3, 0]),
        (lambda: torch.randint(10, (4,)), [4, 9, 3, 0]),
        (lambda: torch.randint(high=10, size=(4,)), [4, 9, 3, 0]),
        (lambda: torch.randint_like(torch.zeros(4), 10), [4, 9, 3, 0]),
        (lambda: torch.randint_like(torch.zeros(4), 1, 11), [5, 10, 4, 1]),
        (lambda: torch.empty(3).uniform_(-1, 1), [-0.0075, 0.5364, -0.8230]),
        (lambda: torch.empty(3).normal_(2.0, 3.0), [6.6230, 1.1197, -4.5364]),
        (lambda: torch.normal(2.0, 3.0, (3,)), [6.6230, 1.1197, -4.5364]),
        (lambda: torch.normal(torch.zeros(3), torch.ones(3)), [1.5410, -0.2934, -2.1788]),
        (lambda: torch.empty(4, dtype=torch.int64).random_(10), [4, 9, 3, 0]),
        (lambda: torch.empty(4).random_(0, 10), [4, 9, 3, 0]),
        (lambda: torch.randperm(4), [0, 1, 3, 2]),
    ],
)
def test_same_seed_same_numbers(draw, expected):
    torch.manual_seed(0)
    assert rounded(draw()) == expected


def test_a_generator_draws_apart_from_the_default_one():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    ours = torch.Generator().manual_seed(0)
    assert rounded(torch.rand(2, generator=ours)) == [0.4963, 0.7682]
    assert rounded(torch.empty(1).uniform_(generator=ours)) == [0.0885]
    assert torch.get_rng_state().tolist() == before.tolist()
    with pytest.raises(TypeError, match="argument 'generator' must be torch.Generator, not int"):
        torch.rand(2, generator=3)


def test_states_go_back_and_forth():
    state = torch.get_rng_state()
    assert state.dtype is torch.uint8 and tuple(state.shape) == (5056,)
    first = torch.randn(5).tolist()
    torch.set_rng_state(state)
    assert torch.randn(5).tolist() == first
    gen = torch.Generator().manual_seed(3)
    copies = [copy.deepcopy(gen), pickle.loads(pickle.dumps(gen)), torch.Generator().set_state(gen.get_state())]
    assert all(torch.rand(3, generator=t).tolist() == torch.rand(3, generator=copy.copy(gen)).tolist() for t in copies)
    with pytest.raises(TypeError, match="expected a torch.ByteTensor, but got int"):
        torch.set_rng_state(3)


def test_fork_rng_leaves_no_trace():
    before = torch.get_rng_state().tolist()
    with torch.random.fork_rng():
        torch.rand(10)
    assert torch.get_rng_state().tolist() == before


def test_out_is_drawn_in_its_own_memory_order():
    torch.manual_seed(0)
    out = torch.rand(2, 3, out=torch.empty(3, 2).t())
    assert rounded(out) == [0.4963, 0.0885, 0.3074, 0.7682, 0.1320, 0.6341]
    with pytest.raises(RuntimeError, match=r"dtype Double does not match dtype of out parameter \(Float\)"):
        torch.rand(2, out=torch.empty(2), dtype=torch.float64)


def test_like_keeps_memory_order_and_factories_take_options():
    assert torch.rand_like(torch.empty(3, 4).t()).stride() == (1, 4)
    assert torch.rand(2, requires_grad=True).requires_grad
    assert torch.rand(2, 3, device="meta").device.type == "meta"
    assert torch.randperm(5, dtype=torch.int32).dtype is torch.int32
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        torch.randint(3, (2,), requires_grad=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'sise'"):
        torch.rand(2, sise=3)


@pytest.mark.parametrize(
    "change, node",
    [
        (lambda x: x.uniform_(), "UniformBackward0"),
        (lambda x: x.normal_(), "NormalBackward0"),
        (lambda x: x.random_(1, 5), "RandomBackward0"),
        (lambda x: x.random_(5), "RandomBackward1"),
        (lambda x: x.random_(), "RandomBackward2"),
        (lambda x: x.bernoulli_(torch.rand(3)), "BernoulliBackward1"),
        (lambda x: x.bernoulli_(), "BernoulliBackward2"),
        (lambda x: x.exponential_(), "ExponentialBackward0"),
        (lambda x: x.log_normal_(), "LogNormalBackward0"),
        (lambda x: torch.bernoulli(x), "BernoulliBackward0"),
        (lambda x: torch.poisson(x), "PoissonBackward0"),
        (lambda x: torch.normal(x, 1.0), "NormalBackward1"),
        (lambda x: torch.normal(1.0, x), "NormalBackward2"),
        (lambda x: torch.normal(x, torch.ones(3)), "NormalBackward3"),
    ],
)
def test_gradients_are_zero(change, node):
    x = torch.full((3,), 0.5, requires_grad=True)
    y = change(x * 1)
    assert type(y.grad_fn).__name__ == node
    y.backward(torch.ones(3))
    assert x.grad.tolist() == [0, 0, 0]


def test_leaves_are_not_overwritten():
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        torch.ones(3, requires_grad=True).uniform_()


def test_gamma_numbers_move_with_their_shape():
    alpha = torch.tensor([0.3, 2.0, 12.0], dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    x = torch._standard_gamma(alpha)
    x.backward(torch.ones(3, dtype=torch.float64))
    # Against PyTorch's approximation of the derivative, which is good to three digits or so.
    assert alpha.grad.tolist() == pytest.approx([0.00023372, 0.57441248, 1.02333111], rel=2e-3)
    total = torch.full((2,), 5.0, dtype=torch.float64)
    moved = torch._dirichlet_grad(torch.tensor([0.2, 0.7], dtype=torch.float64), total - 3, total)
    assert moved.tolist() == pytest.approx([0.15868032, 0.30697701], rel=2e-3)


def test_binomial_has_no_gradient_and_says_so():
    y = torch.binomial(torch.ones(3), torch.full((3,), 0.5, requires_grad=True))
    with pytest.raises(RuntimeError, match="derivative for aten::binomial is not implemented"):
        y.backward(torch.ones(3))


def test_names_are_where_pytorch_has_them():
    for name in ("manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "default_generator"):
        assert getattr(torch, name) is getattr(torch.random, name)
    assert {"random_", "uniform_", "normal_", "cauchy_", "geometric_", "bernoulli_"} <= set(exports["Tensor"])


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: torch.rand(3, dtype=torch.int64), NotImplementedError, "\"check_uniform_bounds\" .* for 'Long'"),
        (lambda: torch.rand(-1), RuntimeError, r"negative dimension -1: \[-1\]"),
        (lambda: torch.rand(), TypeError, "invalid combination of arguments"),
        (lambda: torch.randint(0, 2**63, (2,)), ValueError, "Overflow when unpacking long long"),
        (lambda: torch.empty(3).bernoulli_(torch.rand(2)), RuntimeError, r"expanded size of the tensor \(3\)"),
        (lambda: torch.normal(torch.zeros(2), torch.ones(3)), RuntimeError, r"size of tensor a \(2\)"),
        (lambda: torch.zeros(1).expand(4).uniform_(), RuntimeError, "more than one element of the written-to tensor"),
        (lambda: torch.empty(3).random_(1, 2, 3), TypeError, "invalid combination of arguments"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
