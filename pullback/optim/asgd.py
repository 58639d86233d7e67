"""Averaged stochastic gradient descent: alongside the parameters, their average over the steps."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.tensor import Tensor
from ..ops.system.operator import public
from .per_parameter import (
    PerParameter,
    advance,
    check_at_least_zero,
    check_lr,
    counter,
    decay,
    larger,
    move,
    number,
    read,
    zeros_like,
)  # fmt: skip

where = public("torch", "where")


class ASGD(PerParameter):
    """ASGD; the average is `state[p]["ax"]`.

    >>> w = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.ASGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> bool(w < 1)
    True
    """

    refuses_sparse = "ASGD does not support sparse gradients"
    counters = ("step", "eta", "mu")

    def __init__(
        self, params: Iterable, lr: float | Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ):  # fmt: skip
        check_lr(lr)
        check_at_least_zero(weight_decay=weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                differentiable=differentiable, capturable=capturable,
            ),
        )  # fmt: skip

    def start(self, p: Tensor, group: dict) -> dict:
        lr = float(group["lr"])
        return {"step": counter(group), "eta": counter(group, lr), "mu": counter(group, 1.0), "ax": zeros_like(p)}

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        step = advance(state)
        g = decay(p, g, group["weight_decay"])
        eta, mu, average = read(state["eta"]), read(state["mu"]), state["ax"]
        p.mul_(1 - group["lambd"] * eta)
        move(p, g, eta)
        if isinstance(mu, Tensor):
            average.copy_(where(mu != 1, average + p.sub(average).mul_(mu), p))
        elif mu != 1:
            average.add_(p.sub(average).mul_(mu))
        else:
            average.copy_(p)
        lr = number(group["lr"])
        state["eta"].fill_(lr / (1 + group["lambd"] * lr * step) ** group["alpha"])
        state["mu"].fill_(1 / larger(1.0, step - group["t0"]))
