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
PARAMETERS = ("bernoulli", "multinomial", "normal")  # a tensor says what is drawn: examples cannot share a draw


@pytest.mark.parametrize("name", PARAMETERS)
def test_draws_from_parameters_are_those_of_one_call(name):
    f, x = DRAWS[name], torch.rand(3, 5)
    torch.manual_seed(1)
    each = vmap(f, randomness="different")(x)
    torch.manual_seed(1)
    assert torch.equal(each, f(x))
    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        vmap(lambda p: torch.zeros(5).bernoulli_(p), randomness="different")(x)


@pytest.mark.parametrize(
    "draw", [lambda t: torch.bernoulli(t, 0.5), lambda t: torch.multinomial(t, 3), lambda t: F.dropout(t, 0.5)]
)
def test_a_repeated_tensor_is_drawn_in_the_order_of_its_elements(draw):
    x = torch.ones(4).expand(3, 4)
    torch.manual_seed(0)
    repeated = draw(x)
    torch.manual_seed(0)
    assert torch.equal(repeated, draw(x.contiguous()))


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_refused_the_same_or_different(name):
    f, x = DRAWS[name], torch.ones(3, 5)
    with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness error mode"):
        vmap(f)(x)
    if name in PARAMETERS:
        with pytest.raises(
            RuntimeError, match="does not currently support same randomness with a batched tensor input"
        ):
            vmap(f, randomness="same")(x)
        return
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


def test_a_window_on_an_example_stays_in_its_memory():
    x = torch.arange(12.0).reshape(3, 4)
    assert torch.equal(vmap(lambda t: t.as_strided([2, 2], [2, 1]))(x), x.reshape(3, 2, 2))
    with pytest.raises(RuntimeError, match="not supported inside of vmap"):
        vmap(lambda t: t.as_strided([4], [1], 1))(x)
    with pytest.raises(RuntimeError, match="size and stride must have the same length"):
        vmap(lambda t: t.as_strided([4, 1], [1]))(x)


def test_examples_without_dimensions_are_no_row_of_bytes():
    x = torch.rand(6)
    with pytest.raises(RuntimeError, match=r"dim\(\) cannot be 0 to view Float as Byte"):
        vmap(lambda t: t.view(torch.uint8))(x)
    with pytest.raises(RuntimeError, match="one or more dimensions"):
        vmap(torch.view_as_complex)(torch.rand(2))
    assert vmap(lambda t: t.view(torch.uint8))(x.reshape(3, 2)).shape == (3, 8)


def test_results_of_several_shapes_and_out_are_refused():
    x = torch.tensor([[0.0, 1.0], [1.0, 1.0]])
    with pytest.raises(RuntimeError, match="Attempted to vmap over aten::masked_select"):
        vmap(lambda t: torch.masked_select(t, t > 0))(x)
    with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::abs.out"):
        vmap(lambda a, b: torch.abs(a, out=b))(x, x.clone())
    with pytest.raises(RuntimeError, match="accessing `data` under vmap"):
        vmap(lambda t: t.data)(x)
    with pytest.raises(ValueError, match="in_dims is not compatible with the structure of `inputs`"):
        vmap(lambda z: z[0] + z[1], in_dims=((0, 0),))([x, x])


def test_what_a_vmap_rule_returns_is_checked():
    class Zeros(torch.autograd.Function):
        answer = staticmethod(lambda x: x)

        @staticmethod
        def forward(x):
            return torch.zeros_like(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return Zeros.answer(x)

    with pytest.raises(RuntimeError, match="to have two returns"):
        vmap(Zeros.apply)(torch.rand(2, 3))
    Zeros.answer = staticmethod(lambda x: (x, (None,)))
    with pytest.raises(RuntimeError, match="returned an incompatible"):
        vmap(Zeros.apply)(torch.rand(2, 3))


def test_restore_vmap_says_where_the_batch_is():
    from pullback.batching.vmap import restore_vmap

    x, y = torch.rand(2, 3), torch.rand(4)
    out, dims = restore_vmap(lambda a, b: {"a": a * 2, "b": b}, (0, None), 2, "error")(x, y)
    assert torch.equal(out["a"], 2 * x) and out["b"] is y and dims == {"a": 0, "b": None}


def test_examples_of_a_wrong_rank_are_named_by_the_product():
    x, y = torch.rand(10, 2), torch.rand(10, 2, 2)
    words = r"incorrect dims for {}\(a, b\). a has dim {}and b has dim {}but expected them to have dim {} and dim {}"
    for f, args, expected in (
        (torch.mm, (x, x), ("mm", 1, 1, 2, 2)),
        (torch.bmm, (y, y), ("bmm", 2, 2, 3, 3)),
        (torch.mv, (y, y), ("mv", 2, 2, 2, 1)),
        (torch.addmm, (x, x, x), ("mm", 1, 1, 2, 2)),
    ):
        with pytest.raises(RuntimeError, match=words.format(*expected)):
            vmap(f)(*args)
    with pytest.raises(RuntimeError, match="Got wrong shapes for dot"):
        vmap(torch.dot)(y, y)


def test_one_draw_for_all_tangents():
    """Inside jacfwd only the tangents are batched: a draw from the primal is one draw, whose derivative is zero."""
    assert torch.func.jacfwd(torch.bernoulli, randomness="same")(torch.rand(2)).tolist() == [[0, 0], [0, 0]]
    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.func.jacfwd(torch.bernoulli)(torch.rand(2))


def test_strided_memory_lies_example_after_example():
    new = vmap(lambda x: x.new_empty_strided((2, 3, 5), (15, 5, 1)))
    assert new(torch.rand(7)).stride() == (30, 15, 5, 1)
    assert vmap(new)(torch.rand(7, 11)).stride() == (330, 30, 15, 5, 1)
