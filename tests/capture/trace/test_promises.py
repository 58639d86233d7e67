"""What a program says of numbers that depend on data holds, or the compiled program raises as the program itself does."""

import pytest

import pullback as torch
from pullback.capture.front.config import config
from tests.capture.trace.asserting import after_effects, asserting, asserting_without_words, caught


@pytest.fixture(autouse=True)
def scalar_outputs():
    before, config.capture_scalar_outputs = config.capture_scalar_outputs, True
    yield
    config.capture_scalar_outputs = before


def doubled_unless_negative(x):
    n = x.item()
    torch._check(n >= 0, lambda: "it must not be negative")
    return x * 2 if n >= 0 else x * 3


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_promise_that_is_broken_raises(backend):
    f = torch.compile(doubled_unless_negative, backend=backend, fullgraph=True)
    assert f(torch.tensor([3])).tolist() == [6]
    for x in (torch.tensor([-2]), torch.tensor([-1])):
        with pytest.raises(RuntimeError, match="u0 >= 0|must not be negative"):
            f(x)
    assert f(torch.tensor([0])).tolist() == [0]


def test_several_promises_in_their_order():
    def f(x):
        a, b = x.tolist()
        torch._check(a > 1)
        torch._check(b < a)
        return torch.zeros(a) + b if b < a else torch.ones(1)

    compiled = torch.compile(f, backend="eager", fullgraph=True)
    assert compiled(torch.tensor([3, 2])).tolist() == [2.0, 2.0, 2.0]
    for wrong in ([1, 0], [3, 4]):
        with pytest.raises(RuntimeError):
            compiled(torch.tensor(wrong))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("f", [asserting, asserting_without_words])
def test_an_assertion_about_data_is_in_the_graph(f, backend):
    compiled = torch.compile(f, backend=backend, fullgraph=True)
    good, bad = torch.tensor([3.0, 4.0]), torch.tensor([2.0, 4.0])
    assert torch.allclose(compiled(good), f(good))
    for _ in range(2):
        with pytest.raises(AssertionError, match="the first is three" if f is asserting else ""):
            compiled(bad)


def test_an_assertion_that_is_caught_or_comes_after_effects_ends_the_graph():
    for x, want in ((torch.tensor([3.0]), "yes"), (torch.tensor([2.0]), "no")):
        assert torch.compile(caught)(x) == want
    x = torch.zeros(1)
    with pytest.raises(AssertionError, match="no"):
        torch.compile(after_effects)(x, log := [])
    assert log == [1] and x.item() == 1


def test_tensors_of_numbers_that_depend_on_data_have_their_dtype():
    f = torch.compile(
        lambda x: (torch.tensor([x.item()]), torch.tensor([x.item(), 1])), backend="eager", fullgraph=True
    )
    for value in (True, 3, 2.5):
        for got, want in zip(f(torch.tensor([value])), (torch.tensor([value]), torch.tensor([value, 1])), strict=True):
            assert got.dtype is want.dtype and torch.equal(got, want)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_a_branch_promises_is_asserted_where_it_runs(backend: str) -> None:
    """A branch that is not taken asserts nothing; one that is, what it was told of its own numbers."""

    def fours(x):
        found = x.nonzero()
        torch._check(found.shape[0] % 4 == 0)
        return torch.ones(found.shape[0]).sum()

    def f(x):
        return torch.cond(x.sum() > 0, fours, lambda x: x.sum(), (x,))

    with config.patch(capture_dynamic_output_shape_ops=True):
        run = torch.compile(f, backend=backend, fullgraph=True)
        assert run(torch.ones(8)) == 8
        assert run(-torch.ones(8)) == -8
        assert run(torch.tensor([-1.0] * 5 + [0.0] * 3)) == -5
        with pytest.raises(RuntimeError, match="Runtime assertion failed"):
            run(torch.tensor([1.0] * 5 + [0.0] * 3))


def test_a_loop_asserts_what_it_is_told_of_its_own_numbers() -> None:
    class Sums(torch.nn.Module):
        def forward(self, x, start):
            def body(at, out, total):
                i = at.item()
                torch._check(i >= 0)
                torch._check(i < x.shape[0])
                total = x[i] + total
                out = out.clone()
                out[i] = total
                return at + 1, out, total

            return torch.while_loop(lambda at, out, _: at < out.shape[0], body, (torch.tensor(0), x * 0, start))[1]

    x, start = torch.arange(12.0).reshape(4, 3), torch.ones(3)
    program = torch.export.export(Sums(), (x, start))
    torch.testing.assert_close(program.module()(x, start), x.cumsum(0) + 1)
