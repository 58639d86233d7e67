"""Adagrad: steps divided by the root of the sum of squared gradients."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.tensor import Tensor
from .per_parameter import (
    PerParameter,
    advance,
    check_at_least_zero,
    check_kernel_flags,
    check_lr,
    counter,
    decay,
    full_like,
    move_ratio,
    number,
    settled,
)  # fmt: skip


class Adagrad(PerParameter):
    """Adagrad; takes sparse gradients.

    >>> w = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adagrad([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> bool(w < 1)
    True
    """

    def __init__(
        self, params: Iterable, lr: float | Tensor = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ):  # fmt: skip
        check_lr(lr)
        check_at_least_zero(
            lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )  # fmt: skip
        super().__init__(
            params,
            dict(
                lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
                initial_accumulator_value=initial_accumulator_value, foreach=foreach, maximize=maximize,
                differentiable=differentiable, fused=fused,
            ),
        )  # fmt: skip
        check_kernel_flags(foreach, fused, differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].update(self.start(p, group))

    def share_memory(self) -> None:
        """Move the sums to memory that processes share."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def start(self, p: Tensor, group: dict) -> dict:
        value = group["initial_accumulator_value"]
        start = complex(value, value) if p.dtype.is_complex else value
        return {"step": counter(group), "sum": full_like(p, start, requires_grad=False)}

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        step, total = advance(state), state["sum"]
        lr = number(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        if g.is_sparse:
            _update_sparse(p, g, total, lr, group)
            return
        g = decay(p, g, group["weight_decay"])
        total.addcmul_(g, g, value=1)
        move_ratio(p, g, settled(total, group).sqrt() + group["eps"], lr)


def _update_sparse(p: Tensor, g: Tensor, total: Tensor, lr: float, group: dict) -> None:
    """Only the rows that have a gradient change."""
    if group["weight_decay"] != 0:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    g = g.coalesce()
    where, values = tuple(g.indices()), g.values()
    total[where] += values * values
    p[where] -= lr * values / (total[where].sqrt() + group["eps"])
