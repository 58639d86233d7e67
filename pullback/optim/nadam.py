"""NAdam: Adam with Nesterov momentum."""

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


class NAdam(PerParameter):
    """Adam that looks one step of its (slowly growing) momentum ahead.

    >>> w = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.NAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> bool(w < 1)
    True
    """

    refuses_sparse = "NAdam does not support sparse gradients"
    counters = ("step", "mu_product")

    def __init__(
        self, params: Iterable, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        check_lr(lr)
        check_at_least_zero(epsilon=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(
            params,
            dict(
                lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
                decoupled_weight_decay=decoupled_weight_decay, maximize=maximize, foreach=foreach,
                capturable=capturable, differentiable=differentiable,
            ),
        )  # fmt: skip

    def start(self, p: Tensor, group: dict) -> dict:
        return {
            "step": counter(group), "mu_product": counter(group, 1.0), "exp_avg": zeros_like(p),
            "exp_avg_sq": zeros_like(p),
        }  # fmt: skip

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        lr, (beta1, beta2) = number(group["lr"]), group["betas"]
        step = advance(state)
        if group["weight_decay"] and group["decoupled_weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        else:
            g = decay(p, g, group["weight_decay"])
        now = beta1 * (1.0 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
        ahead = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * group["momentum_decay"]))
        so_far = state["mu_product"]
        so_far *= now.to(so_far.dtype) if isinstance(now, Tensor) else now  # as it rounds a number
        product = number(settled(so_far, group))  # the next step writes it
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(g, 1 - beta1)
        square.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        root = square.div(1 - beta2**step).sqrt().add(group["eps"])
        move_ratio(p, g, root, lr * (1.0 - now) / (1.0 - product))
        move_ratio(p, settled(mean, group), root, lr * ahead / (1.0 - product * ahead))
