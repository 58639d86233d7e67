"""Examples under vmap: random numbers by mode, ranks of one example, empty batches, what a batch cannot answer."""

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.func import vmap

ones = torch.ones(5)
DRAWS = {
    "dropout": lambda a: F.dropout(a, 0.5),
    "dropout_of_captured": lambda a: F.dropout(ones, 0.5),
    "dropout1d": lambda a: F.dropout1d(a.reshape(5, 1), 0.5, True),
    "alpha_dropout": lambda a: F.alpha_dropout(a, 0.5, True),
    "randn": lambda a: torch.randn(5),
    "randn_like": lambda a: torch.randn_like(a),
    "bernoulli": lambda a: torch.bernoulli(a * 0.5),
    "uniform_": lambda a: a.clone().uniform_(),
    "normal_": lambda a: a.clone().normal_(),
    "random_": lambda a: a.clone().random_(),
    "multinomial": lambda a: torch.multinomial(a, 5),
    "normal": lambda a: torch.normal(a, 1.0),
    "rrelu": lambda a: F.rrelu(-a, training=True),
    "gumbel_softmax": lambda a: F.gumbel_softmax(a),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_refused_the_same_or_different(name):
    f, x = DRAWS[name], torch.ones(3, 5)
    with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness error mode"):
        vmap(f)(x)
    torch.manual_seed(1)
    same = vmap(f, randomness="same")(x)
    assert torch.equal(same[0], same[1]) and torch.equal(same[1], same[2])
    torch.manual_seed(1)
    assert torch.allclose(same[0], f(ones))
    different = vmap(f, randomness="different")(torch.ones(8, 5))
    assert any(not torch.equal(different[0], d) for d in different[1:])


def test_the_same_draw_moves_the_generator_as_one_draw_does():
    torch.manual_seed(0)
    vmap(lambda a: torch.randn_like(a), randomness="same")(torch.ones(3, 4))
    after = torch.rand(())
    torch.manual_seed(0)
    torch.randn(4)
    assert torch.equal(after, torch.rand(()))


def test_different_numbers_do_not_fit_into_one_tensor():
    with pytest.raises(RuntimeError, match="Cannot ask for different inplace randomness on an unbatched tensor"):
        vmap(lambda a: a + torch.zeros(5).uniform_(), randomness="different")(torch.ones(3, 5))


@pytest.mark.parametrize(
    "f, shapes",
    [
        (torch.mm, [(2, 4, 4), (2, 4, 4)]),
        (torch.dot, [(4, 4), (4, 4)]),
        (torch.bmm, [(4, 4), (4, 4)]),
        (torch.addmm, [(4, 4), (2, 4, 4), (2, 4, 4)]),
        (lambda a: F.avg_pool2d(a, 2), [(2, 2, 2, 4, 4)]),
    ],
)
def test_an_example_must_have_the_rank_that_the_function_takes(f, shapes):
    with pytest.raises(RuntimeError):
        vmap(f)(*[torch.ones(3, *s) for s in shapes])


def test_an_empty_batch_goes_through_a_loop():
    assert vmap(lambda a: torch.cummax(a, 0)[0])(torch.ones(0, 3)).shape == (0, 3)


def test_one_hot_needs_the_number_of_classes():
    x = torch.tensor([[0, 2], [1, 1]])
    assert torch.equal(vmap(lambda a: F.one_hot(a, 3))(x), F.one_hot(x, 3))
    with pytest.raises(RuntimeError, match=r"calling .item\(\) on a Tensor"):
        vmap(F.one_hot)(x)


def test_shapes_change_in_place():
    def f(x, t):
        y = (x * 2).squeeze_(0)
        return (y - t).sum(), y

    x, t = torch.randn(4, 1, 3), torch.randn(4, 3)
    total, y = vmap(f)(x, t)
    assert torch.equal(y, 2 * x[:, 0]) and torch.allclose(total, (2 * x[:, 0] - t).sum(1))


def test_numbers_and_decisions_are_refused():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match=r"It looks like you're calling .item\(\) on a Tensor"):
        vmap(lambda a: a * a.item())(x)
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        vmap(lambda a: a if a > 0 else -a)(x)


def test_dimensions_are_checked():
    x = torch.ones(2, 3)
    with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\], but got 2"):
        vmap(lambda a: a, out_dims=2)(x)
    with pytest.raises(ValueError, match="`out_dims` must be an int, None or a python collection of ints"):
        vmap(lambda a: a, out_dims="lol")(x)
    with pytest.raises(ValueError, match="out_dims is not compatible with the structure of `outputs`"):
        vmap(lambda a: a, out_dims=(0, 0))(x)
    with pytest.raises(ValueError, match="Expected at least one Tensor to vmap over"):
        vmap(lambda a: a, in_dims=(None,))(x)
    with pytest.raises(ValueError, match="expected `in_dims` to be int or a"):
        vmap(lambda a: a, in_dims=[0])(x)
    assert vmap(lambda a: (a, "kept"), out_dims=(1, None))(x)[1] == "kept"
    assert vmap(lambda a: a, out_dims=(1,))(x).shape == (3, 2)


def test_an_empty_batch_of_sums():
    assert vmap(lambda a: a.sum())(torch.ones(0, 3)).shape == (0,)
    assert vmap(lambda a: a.roll(1))(torch.ones(0, 3)).shape == (0, 3)


def test_a_custom_function_inside_two_vmaps():
    class Cubed(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 3 * g * ctx.saved_tensors[0] ** 2

    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(vmap(vmap(Cubed.apply))(x), x**3)
