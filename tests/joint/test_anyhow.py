"""Batches of gradients through compiled functions: each lies in memory as the batch does, not as in the trace."""

from __future__ import annotations

import pytest

import pullback as torch


def turned(v):
    return (v.sin().reshape(-1) * 2).view(3, 2).t()  # the gradient is viewed, as the result lies


def two(v):
    return turned(v), v.cos()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_jacobians_of_compiled_functions(backend) -> None:
    x = torch.arange(6.0).view(2, 3)
    compiled = torch.compile(turned, backend=backend)
    assert torch.allclose(torch.func.jacrev(compiled)(x), torch.func.jacrev(turned)(x))


def test_batched_gradients_where_another_result_gets_none() -> None:
    x, batch = torch.arange(6.0).view(2, 3).requires_grad_(), torch.eye(6).view(6, 2, 3)
    found, expected = (
        torch.autograd.grad(f(x)[0], x, batch, is_grads_batched=True)[0]
        for f in (torch.compile(two, backend="aot_eager"), two)
    )
    assert torch.allclose(found, expected)
