"""RAdam: Adam whose adaptive part waits until its variance is known well enough."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.tensor import Tensor
from ..ops.system.operator import public
from .per_parameter import (
    PerParameter,
    advance,
    check_at_least_zero,
    check_betas,
    check_lr,
    counter,
    decay,
    larger,
    move,
    number,
    settled,
    zeros_like,
)  # fmt: skip

where = public("torch", "where")


class RAdam(PerParameter):
    """Rectified Adam.

    >>> w = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.RAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> bool(w < 1)
    True
    """

    refuses_sparse = "RAdam does not support sparse gradients"

    def __init__(
        self, params: Iterable, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        check_lr(lr)
        check_at_least_zero(epsilon=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize, foreach=foreach,
                capturable=capturable, decoupled_weight_decay=decoupled_weight_decay, differentiable=differentiable,
            ),
        )  # fmt: skip

    def start(self, p: Tensor, group: dict) -> dict:
        return {"step": counter(group), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        lr, (beta1, beta2) = number(group["lr"]), group["betas"]
        step = advance(state)
        if group["weight_decay"] and group["decoupled_weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        else:
            g = decay(p, g, group["weight_decay"])
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(g, 1 - beta1)
        square.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        known = 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / known  # of the average that the variance is taken over
        direction = settled(mean, group) / (1 - beta1**step)
        plain = direction * lr
        if not isinstance(length, Tensor) and length <= 5.0:
            return move(p, plain, 1.0)
        root = settled(square, group).sqrt().add(group["eps"])
        trusted = larger(length, 5.0)  # where a graph decides, the other branch shall make no NaN
        rect = ((trusted - 4) * (trusted - 2) * longest / ((longest - 4) * (longest - 2) * trusted)) ** 0.5
        adapted = plain * (root.reciprocal() * known**0.5) * rect  # as a number over a tensor is computed
        return move(p, where(length > 5.0, adapted, plain) if isinstance(length, Tensor) else adapted, 1.0)
