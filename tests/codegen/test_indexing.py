"""Indexing in native code, where shapes are degenerate."""

import pytest

import pullback as torch


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize(("shape", "at"), [((5,), torch.tensor(2)), ((), torch.tensor([0])), ((), torch.tensor(0))])
def test_gather_between_numbers_and_vectors(shape: tuple, at, dynamic: bool) -> None:
    x = torch.randn(shape, requires_grad=True)
    ours = torch.compile(lambda x: x.gather(0, at) * 2, backend="inductor", dynamic=dynamic)(x)
    eager = x.gather(0, at) * 2
    torch.testing.assert_close(ours, eager)
    torch.testing.assert_close(torch.autograd.grad(ours.sum(), x), torch.autograd.grad(eager.sum(), x))
