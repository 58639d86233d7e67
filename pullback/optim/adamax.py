"""Adamax: Adam with the largest gradient seen in place of the average square."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.tensor import Tensor
from .per_parameter import (
    PerParameter,
    advance,
    check_at_least_zero,
    check_betas,
    check_lr,
    counter,
    decay,
    move_ratio,
    number,
    settled,
    zeros_like,
)  # fmt: skip


class Adamax(PerParameter):
    """Adam under the infinity norm.

    >>> w = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adamax([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> bool(w < 1)
    True
    """

    refuses_sparse = "Adamax does not support sparse gradients"

    def __init__(
        self, params: Iterable, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ):  # fmt: skip
        check_lr(lr)
        check_at_least_zero(epsilon=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                differentiable=differentiable, capturable=capturable,
            ),
        )  # fmt: skip

    def start(self, p: Tensor, group: dict) -> dict:
        return {"step": counter(group), "exp_avg": zeros_like(p), "exp_inf": zeros_like(p)}

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        beta1, beta2 = group["betas"]
        step = advance(state)
        g = decay(p, g, group["weight_decay"])
        mean, largest = state["exp_avg"], state["exp_inf"]
        mean.lerp_(g, 1 - beta1)
        largest.copy_((largest * beta2).maximum(g.abs() + group["eps"]))
        move_ratio(p, settled(mean, group), settled(largest, group), number(group["lr"]) / (1 - beta1**step))
