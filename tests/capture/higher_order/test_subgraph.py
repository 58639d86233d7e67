"""Functions as graphs: free tensors, constants, backward graphs."""

from __future__ import annotations

import pullback as torch
from pullback.capture.fake.mode import FakeTensorMode
from pullback.capture.higher_order.subgraph import Example, close_over, examples, is_closed


def test_free_tensors_are_shared_and_in_order():
    a, b = torch.randn(3), torch.randn(3)
    x = torch.randn(3)
    functions = [lambda x: x * a, lambda x: x + b * a]
    closed, free = close_over([(f, examples([x])) for f in functions], FakeTensorMode(allow_non_fake_inputs=True))
    assert [t is want for t, want in zip(free, (a, b), strict=True)] == [True, True]
    assert torch.equal(closed[0](x, b, a), x * b)
    assert torch.equal(closed[1](x, b, a), x + a * b)
    assert all(map(is_closed, closed)) and not is_closed(functions[0])


def test_data_made_on_the_spot_is_a_constant():
    x = torch.randn(2)
    (f,), free = close_over(
        [(lambda x: x + torch.tensor([1.0, 2.0]), examples([x]))], FakeTensorMode(allow_non_fake_inputs=True)
    )
    assert not free and torch.equal(f(x), x + torch.tensor([1.0, 2.0]))


def test_a_slice_is_one_step():
    fake = Example(torch.randn(4, 3).t(), sliced=True).fake(FakeTensorMode())
    assert fake.shape == (4,) and fake.stride() == (3,)
    assert Example(7).fake(FakeTensorMode()) == 7
