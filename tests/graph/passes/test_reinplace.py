"""Calls made writes: where memory is the graph's own and nothing reads it again, and nowhere else."""

import random

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.func import functionalize
from pullback.graph.passes.reinplace import reinplace


def targets(gm):
    return [n.target.__name__ for n in gm.graph.nodes if n.op == "call_function" and hasattr(n.target, "overload")]


def changed(f, *args):
    """The targets after the pass; results and inputs must be what they were."""
    gm = make_fx(functionalize(f))(*[a.clone() for a in args])
    first, second = [a.clone() for a in args], [a.clone() for a in args]
    expected = gm(*first)
    gm = reinplace(gm, *[a.clone() for a in args])
    for _ in range(2):
        again = [a.clone() for a in args]
        torch.testing.assert_close(gm(*again), expected)
    gm(*second)
    torch.testing.assert_close(second, first)
    return targets(gm)


def test_a_value_that_nothing_reads_again_is_overwritten():
    assert changed(lambda x: (x + 1).mul(2).relu(), torch.randn(3)) == ["add.Tensor", "mul_.Tensor", "relu_.default"]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.mul(2),  # an input
        lambda x: (lambda y: (y.mul(2), y))(x + 1),  # read by the caller
        lambda x: (lambda y: (y.mul(2), y.t()))(x + 1),  # in another shape
        lambda x: (lambda y: y.mul(2) @ y.select(0, 1))(x + 1),  # read by a later call
        lambda x: (x + 1).unsqueeze(0).expand(2, 3, 3).mul(2),  # shown several times
        lambda x: (x + 1)[0].add(x),  # of another shape
        lambda x: (x + 1).mul(2j),  # of another dtype
        lambda x: (lambda y: y[:2].add(y[1:]))(x + 1),  # read by the same call
    ],
)
def test_what_is_read_again_stays(f):
    assert not any("_." in t for t in changed(f, torch.randn(3, 3)))


def test_what_wants_a_gradient_stays():
    gm = make_fx(lambda x: (x + 1).exp())(torch.randn(3))
    assert targets(reinplace(gm, torch.randn(3, requires_grad=True))) == ["add.Tensor", "exp.default"]


def test_a_write_to_a_view_of_new_memory_is_one_again():
    def f(x):
        y = torch.zeros(4, 4)
        y[1].fill_(1)
        y[:, 2:].add_(x)
        y.diagonal()[1:3].mul_(3)
        return y

    after = changed(f, torch.randn(4, 2))
    assert not any("scatter" in t for t in after) and "copy_.default" not in after


def test_a_value_computed_elsewhere_is_copied_into_the_view():
    after = changed(lambda x: (x + 1).select_scatter(x[0], 0, 1), torch.randn(3, 3))
    assert after == ["add.Tensor", "select.int", "select.int", "copy_.default"]


def test_a_scatter_whose_base_is_read_again_stays():
    def f(x):
        y = x + 1
        return y.select_scatter(x[0], 0, 1), y

    assert "select_scatter.default" in changed(f, torch.randn(3, 3))


def test_constants_stay():
    c = torch.zeros(3)
    gm = make_fx(lambda x: torch.ops.aten.add.Tensor(c, x).mul(2))(torch.ones(3))
    assert targets(reinplace(gm, torch.ones(3))) == ["add.Tensor", "mul_.Tensor"]
    assert gm(torch.ones(3)).tolist() == gm(torch.ones(3)).tolist() == [2, 2, 2] and c.tolist() == [0, 0, 0]


@pytest.mark.parametrize("seed", range(25))
def test_random_programs_compute_the_same(seed):
    def f(x):
        chance = random.Random(seed)
        live = [x, x + 1, torch.ones(4, 4)]
        for _ in range(8):
            a, b = chance.choice(live), chance.choice(live)
            view = chance.choice(
                [lambda t: t, lambda t: t.t(), lambda t: t[1:3], lambda t: t[:, 1], lambda t: t.diagonal()]
            )
            do = chance.choice(["write", "write", "compute", "alias", "combine"])
            if do == "write":
                view(a).mul_(chance.choice([0.5, -1])).add_(1)
            elif do == "compute":
                live.append(chance.choice([torch.sin, torch.relu, torch.neg])(a))
            elif do == "alias":
                live.append(a.t())
            else:
                live.append(a + b * 0.5)
        return tuple(chance.sample(live, 3))

    changed(f, torch.randn(4, 4))
