"""Inputs that a compiled function writes are written where they are, when nothing needs the old values any more: and never before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as torch
import pullback.nn.functional as F
from pullback.codegen import Native
from pullback.runtime.build import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


def landed(made: list[Native]) -> int:
    return sum(len(s.source.landed) for s in made[-1].segments)


def agree(f, *state, times: int = 3) -> None:
    """A function that writes its arguments gives the same, and leaves the same behind, compiled and not."""
    here, there = ([t.clone() for t in state] for _ in range(2))
    places, versions = [t.data_ptr() for t in there], [t._version for t in there]
    compiled = torch.compile(f)
    for _ in range(times):
        got, want = compiled(*there), f(*here)
        for g, w in zip([*there, *(got or ())], [*here, *(want or ())], strict=True):
            torch.testing.assert_close(g, w, rtol=1e-4, atol=1e-5)
    assert places == [t.data_ptr() for t in there]
    expected = [t._version > 0 for t in here]
    assert [t._version > v for t, v in zip(there, versions, strict=True)] == expected


def training(make, optimizer, whole: bool) -> list:
    torch.manual_seed(0)
    model, loss = make()
    updates = optimizer(model.parameters())

    def step():
        value = loss()
        value.backward()
        updates.step()
        updates.zero_grad()
        return value

    run = torch.compile(step) if whole else step
    values = [float(run().detach()) for _ in range(5)]
    return [*values, *[p.detach().numpy() for p in model.parameters()]]


def perceptron():
    model = torch.nn.Sequential(
        torch.nn.Linear(12, 24), torch.nn.GELU(), torch.nn.LayerNorm(24), torch.nn.Linear(24, 24), torch.nn.ReLU(), torch.nn.Linear(24, 5)
    )  # fmt: skip
    x, y = torch.randn(16, 12), torch.randint(0, 5, (16,))
    return model, lambda: F.cross_entropy(model(x), y)


def words():
    """One table at both ends, so that its gradient comes from both."""
    table, inner, x = torch.nn.Embedding(17, 12), torch.nn.Linear(12, 12), torch.randint(0, 17, (6, 5))
    model = torch.nn.ModuleList([table, inner])
    return model, lambda: F.cross_entropy((inner(table(x)) @ table.weight.t()).flatten(0, 1), x.flatten())


def image():
    """Places of maxima are always in bounds, so that nothing waits for them."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)
    )
    x, y = torch.randn(6, 2, 8, 8), torch.randint(0, 5, (6,))
    return model, lambda: F.cross_entropy(model(x), y)


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, 1e-2),
    "adamw": lambda p: torch.optim.AdamW(p, 1e-2, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-2, momentum=0.5, centered=True),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("make", [perceptron, words, image])
def test_a_whole_training_step_writes_parameters_and_state_in_place(make, optimizer, made):
    want, got = (training(make, OPTIMIZERS[optimizer], whole) for whole in (False, True))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-4, atol=2e-5)
    places = len(made[-1].module.meta["written"])
    assert landed(made) >= places - 6, (
        "what the kernel of its gradient reads for each element is copied, and little else"
    )


def test_an_index_out_of_bounds_leaves_everything_as_it_was():
    table, other = torch.nn.Embedding(7, 4), torch.nn.Linear(4, 4)
    parameters = [*table.parameters(), *other.parameters()]
    optimizer = torch.optim.SGD(parameters, 0.5)

    @torch.compile
    def step(x):
        loss = other(table(x)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    step(torch.tensor([1, 2, 3])), step(torch.tensor([1, 2, 3]))
    before = [p.detach().clone() for p in parameters]
    with pytest.raises(IndexError):
        step(torch.tensor([1, 9, 3]))
    assert all(torch.equal(a, b) for a, b in zip(before, parameters, strict=True))


def test_an_index_is_looked_at_before_anything_is_written(made):
    def f(a, b, index):
        a.add_(1)
        b.copy_(a[index])

    agree(f, torch.zeros(5), torch.zeros(3), torch.tensor([0, 4, 2]))
    compiled, a, b = torch.compile(f), torch.zeros(5), torch.zeros(3)
    compiled(a, b, torch.tensor([1, 1, 1]))
    with pytest.raises(IndexError):
        compiled(a, b, torch.tensor([1, 5, 1]))
    assert b.tolist() == [1, 1, 1]


def test_what_comes_out_too_is_apart_from_what_is_written(made):
    def f(a, b):
        old = a.clone()
        new = a * 2 + b
        a.copy_(new)
        b.copy_(new[0].expand(3))
        return old, new, new[1]

    agree(f, torch.rand(3, 3), torch.rand(3))


def test_an_index_of_two_numbers_is_looked_at_for_each_pair():
    def f(a, b, table, i, j):
        b.copy_(table[i + j].sum().expand(3))
        a.copy_((a * 2 + 1) * table[(i[:, None] + j[None, :])].sum())

    compiled = torch.compile(f)
    a, b, table = torch.ones(3), torch.ones(3), torch.rand(9)
    compiled(a, b, table, torch.tensor([0, 1, 0]), torch.tensor([1, 0, 0]))
    before = a.clone(), b.clone()
    with pytest.raises(IndexError):  # of every pair in a row none is out of bounds, but of all pairs one is
        compiled(a, b, table, torch.tensor([0, 8, 0]), torch.tensor([8, 0, 0]))
    assert torch.equal(a, before[0]) and torch.equal(b, before[1])


def test_values_that_change_places():
    def f(a, b):
        old = a.clone()
        a.copy_(b)
        b.copy_(old)

    agree(f, torch.rand(3, 3), torch.rand(3, 3))


def test_what_is_read_elsewhere_is_not_written_over():
    def f(a, b):
        a.copy_(a.t() + a.flip(0))
        b.copy_(b / b.sum(0))
        return ((a @ b).sum(1),)

    agree(f, torch.rand(5, 5), torch.rand(5, 5))


def test_arrays_that_are_not_to_be_written_are_left_to_operators():
    compiled = torch.compile(lambda a: (a.add_(1), 0)[1])
    memory = np.zeros(4, np.float32)
    compiled(torch.from_numpy(memory))
    assert memory.tolist() == [1] * 4
    fixed = np.zeros(4, np.float32)
    t = torch.from_numpy(fixed)
    t._array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled(t)
    assert fixed.tolist() == [0] * 4


def test_inputs_on_one_memory():
    def f(a, b):
        a.mul_(2)
        b.add_(a.sum())
        return (b * 1,)

    here, there = torch.arange(8.0), torch.arange(8.0)
    compiled = torch.compile(f)
    compiled(torch.ones(4), torch.ones(4))
    got, want = compiled(there[:4], there[2:6]), f(here[:4], here[2:6])
    assert torch.equal(here, there) and torch.equal(got[0], want[0])


def test_gradients_make_room_for_each_other(made):
    """Each is gone when its parameter is written, before the next is computed."""
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64, bias=False) for _ in range(12)])
    optimizer, x = torch.optim.SGD(model.parameters(), 0.1), torch.rand(2, 64)

    @torch.compile
    def step():
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    assert landed(made) == 12 and made[-1].segments[0].source.arena < 3 * 64 * 64 * 4


STATEMENTS = [
    lambda s, i, j: s[i].add_(s[j]),
    lambda s, i, j: s[i].mul_(0.5).add_(s[j].t().clone(), alpha=0.3),
    lambda s, i, j: s[i].copy_((s[i] @ s[j]).tanh()),
    lambda s, i, j: s[i].sub_(s[j].mean(0)),
    lambda s, i, j: s[i].copy_(torch.softmax(s[j], 1)),
    lambda s, i, j: s[i].lerp_(s[j], 0.1),
    lambda s, i, j: s[i][1:].copy_(s[j][:-1] * 2),
    lambda s, i, j: s[i].div_(s[j].norm() + 1),
    lambda s, i, j: s.append(s[i] * 2 - s[j]),
    lambda s, i, j: s[i].copy_(s[j]),
    lambda s, i, j: s[i].copy_(s[j].flip(0).sin()),
    lambda s, i, j: s[i].fill_(0.25),
    lambda s, i, j: s.append(s[i].clone()),
    lambda s, i, j: s[i].add_(s[j].topk(2, -1)[0].mean(1)),  # what has no loops, between stages that have
    lambda s, i, j: s[i].mul_((s[i].topk(2, -1)[0] @ s[j].t()[:2]).mean()),
]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.integers(0, len(STATEMENTS) - 1), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=9
    )
)
def test_random_programs_that_write_their_inputs(lines):
    def f(a, b, c, d):
        s = [a, b, c, d]
        for which, i, j in lines:
            STATEMENTS[which](s, i, j)
        return s[4:]

    agree(f, *[torch.rand(4, 4) for _ in range(4)], times=2)


# ---- graphs with stages
def chosen():
    """A graph with an operator that has no loops between the first use of parameters and their updates."""
    model = torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.Tanh(), torch.nn.Linear(24, 9))
    x = torch.randn(16, 12)
    return model, lambda: model(x).topk(3, -1)[0].square().mean()


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_last_stage_writes_in_place(optimizer, made):
    ours = training(chosen, OPTIMIZERS[optimizer], whole=True)
    assert made[-1].fallbacks and len(made[-1].segments) > 1
    assert len(made[-1].segments[-1].source.landed) >= 2
    for got, want in zip(ours, training(chosen, OPTIMIZERS[optimizer], whole=False), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_views_of_earlier_stages_show_old_values(made):
    def f(a, w):
        columns = w.t()
        best = (a @ columns).topk(2, -1)[0]  # an operator between two stages
        w.mul_(best.sum())
        return ((best @ columns[:2]) * 1,)

    agree(f, torch.randn(4, 3), torch.randn(3, 3))


def test_an_operator_that_fails_leaves_everything_as_it_was():
    def f(a, at):
        a.mul_(2)
        best = a.topk(2, -1)[0]
        return (best.gather(0, at),)

    there = torch.arange(12.0).reshape(4, 3)
    compiled = torch.compile(f)
    compiled(there.clone(), torch.zeros(1, 2, dtype=torch.int64))
    before = there.clone()
    with pytest.raises((IndexError, RuntimeError)):
        compiled(there, torch.full((1, 2), 9))
    assert torch.equal(there, before)
