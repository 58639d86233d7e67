"""Gradients that results keep (`retain_grad`), where backwards run inside vmap."""

from __future__ import annotations

import pullback as torch


def test_batched_backwards_meet_a_retained_gradient_again():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    y.retain_grad()
    out = y * 3
    for _ in range(2):
        (jacobian,) = torch.autograd.grad(out, x, torch.eye(2), is_grads_batched=True, retain_graph=True)
        assert jacobian.tolist() == [[6.0, 0.0], [0.0, 12.0]]


def test_a_plain_backward_after_a_batched_one_keeps_its_own_gradient():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    y.retain_grad()
    out = y * 3
    torch.autograd.grad(out, x, torch.eye(2), is_grads_batched=True, retain_graph=True)
    out.sum().backward(retain_graph=True)
    assert y.grad.tolist() == [3.0, 3.0]
    out.sum().backward()
    assert y.grad.tolist() == [6.0, 6.0]
