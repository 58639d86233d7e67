"""Adadelta: steps in the units of the parameters, from running averages of squared gradients and squared steps."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.tensor import Tensor
from .per_parameter import PerParameter, check_at_least_zero, check_lr, counter, decay, move, number, zeros_like


class Adadelta(PerParameter):
    """Adadelta.

    >>> w = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adadelta([w], lr=1.0)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> bool(w < 1)
    True
    """

    refuses_sparse = "Adadelta does not support sparse gradients"

    def __init__(
        self, params: Iterable, lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_at_least_zero(epsilon=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize, capturable=capturable,
                foreach=foreach, differentiable=differentiable,
            ),
        )  # fmt: skip

    def start(self, p: Tensor, group: dict) -> dict:
        return {"step": counter(group), "square_avg": zeros_like(p), "acc_delta": zeros_like(p)}

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        rho, eps = group["rho"], group["eps"]
        state["step"] += 1
        g = decay(p, g, group["weight_decay"])
        square, steps = state["square_avg"], state["acc_delta"]
        square.mul_(rho).addcmul_(g, g, value=1 - rho)
        delta = steps.add(eps).sqrt() / square.add(eps).sqrt() * g
        steps.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        move(p, delta, number(group["lr"]))
