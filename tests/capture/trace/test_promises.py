"""What a program says of numbers that depend on data holds, or the compiled program raises as the program itself does."""

import pytest

import pullback as torch
from pullback.capture.front.config import config


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
