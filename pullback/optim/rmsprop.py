"""RMSprop: steps divided by the running root mean square of the gradient."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.tensor import Tensor
from .per_parameter import (
    PerParameter,
    check_at_least_zero,
    check_lr,
    counter,
    decay,
    move,
    move_ratio,
    number,
    settled,
    zeros_like,
)  # fmt: skip


class RMSprop(PerParameter):
    """RMSprop; `centered` divides by the standard deviation instead.

    >>> w = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.RMSprop([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> bool(w < 1)
    True
    """

    refuses_sparse = "RMSprop does not support sparse gradients"

    def __init__(
        self, params: Iterable, lr: float | Tensor = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0, momentum: float = 0, centered: bool = False, capturable: bool = False,
        foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        check_lr(lr)
        check_at_least_zero(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(
            params,
            dict(
                lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered, weight_decay=weight_decay,
                capturable=capturable, foreach=foreach, maximize=maximize, differentiable=differentiable,
            ),
        )  # fmt: skip

    def start(self, p: Tensor, group: dict) -> dict:
        state = {"step": counter(group), "square_avg": zeros_like(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = zeros_like(p)
        return state

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        alpha, square = group["alpha"], state["square_avg"]
        state["step"] += 1
        g = decay(p, g, group["weight_decay"])
        square.mul_(alpha).addcmul_(g, g, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"]
            mean.lerp_(g, 1 - alpha)
            mean = settled(mean, group)
            root = square.addcmul(mean, mean, value=-1).sqrt().add(group["eps"])
        else:
            root = settled(square, group).sqrt().add(group["eps"])
        if group["momentum"] > 0:
            kept = state["momentum_buffer"]
            kept.mul_(group["momentum"]).addcdiv_(g, root)
            move(p, settled(kept, group), number(group["lr"]))
        else:
            move_ratio(p, g, root, number(group["lr"]))
