"""Division: which overload a call records."""

import pullback as torch


def test_a_mode_that_is_given_is_recorded_even_if_it_is_none():
    x = torch.tensor([3.0], requires_grad=True)
    given = torch.div(x, 2.0, rounding_mode=None)
    assert given.grad_fn.name() == "DivBackward2" and given.grad_fn._saved_rounding_mode is None
    assert x.div(2, rounding_mode="floor").grad_fn._saved_rounding_mode == "floor"
    assert x.div(2).grad_fn.name() == (x / 2).grad_fn.name() == "DivBackward0"
    given.backward()
    assert x.grad.item() == 0.5 and given.item() == 1.5
    assert torch.div(torch.tensor([3]), 2, rounding_mode=None).dtype is torch.float32
