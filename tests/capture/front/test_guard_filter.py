"""Conditions that a user asks to leave out."""

import pytest

import pullback as torch
from pullback.capture.front import guard_filter
from pullback.capture.front.compile import RecompileError
from pullback.surface.compiler_decorators import set_stance

NUMBER = 1


def compiled(f, keeps):
    return torch.compile(f, backend="eager", options={"guard_filter_fn": keeps})


def plus_number(x):
    return x + NUMBER


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.k, self.norm = 2.0, torch.nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(x) * self.k


@pytest.fixture(autouse=True)
def restored():
    global NUMBER
    NUMBER = 1
    yield
    NUMBER = 1


def test_globals_are_not_asked_about():
    global NUMBER
    f, plain = (
        compiled(plus_number, guard_filter.skip_guard_on_globals_unsafe),
        torch.compile(plus_number, backend="eager"),
    )
    x = torch.zeros(2)
    assert f(x).tolist() == plain(x).tolist() == [1, 1]
    NUMBER = 5
    assert f(x).tolist() == [1, 1] and plain(x).tolist() == [5, 5]
    with set_stance("fail_on_recompile"), pytest.raises(RecompileError):
        f(torch.zeros(3, dtype=torch.float64))  # what is left is tested


@pytest.mark.parametrize("keeps", [guard_filter.skip_guard_on_all_nn_modules_unsafe, guard_filter.keep_tensor_guards_unsafe, guard_filter.skip_all_guards_unsafe])  # fmt: skip
def test_modules_are_not_asked_about(keeps):
    m = Scaled()
    f, x = compiled(m, keeps), torch.randn(3, 4)
    first = f(x)
    m.k = 3.0
    assert torch.equal(f(x), first)


def test_modules_of_the_package_alone():
    m = Scaled()
    f, x = compiled(m, guard_filter.skip_guard_on_inbuilt_nn_modules_unsafe), torch.randn(3, 4)
    first = f(x)
    m.norm.eps = 0.5
    assert torch.equal(f(x), first)
    m.k = 4.0
    torch.testing.assert_close(f(x), m(x))


def test_the_function_is_given_what_is_tested():
    seen = []

    def keeps(entries):
        seen.extend(entries)
        return [not (e.name == "y" and e.value is None) for e in entries]

    f = compiled(lambda x, y: x if y is None else x + y, keeps)
    x = torch.ones(2)
    assert f(x, None) is x and f(x, torch.ones(2)) is x
    assert {e.guard_type for e in seen if e.name == "x"} == {"TENSOR_MATCH"}
    assert not any(e.is_global for e in seen)


def test_answers_for_other_conditions_are_refused():
    with pytest.raises(ValueError, match="guard_filter_fn gave 0 answers for"):
        compiled(plus_number, lambda entries: [])(torch.ones(2))


def test_a_backend_does_not_hear_of_the_filter():
    def backend(graph, examples, **options):
        assert not options
        return graph

    assert torch.compile(lambda x: x + 1, backend=backend, options={"guard_filter_fn": guard_filter.skip_all_guards_unsafe})(torch.zeros(1)) == 1  # fmt: skip
