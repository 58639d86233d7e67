"""Rprop: step sizes that grow while the gradient keeps its sign and shrink when it turns."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.tensor import Tensor
from .per_parameter import PerParameter, check_lr, counter, full_like, zeros_like


class Rprop(PerParameter):
    """Resilient backpropagation; only the signs of gradients count.

    >>> w = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Rprop([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> bool(w < 1)
    True
    """

    refuses_sparse = "Rprop does not support sparse gradients"

    def __init__(
        self, params: Iterable, lr: float | Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            dict(
                lr=lr, etas=etas, step_sizes=step_sizes, foreach=foreach, maximize=maximize,
                differentiable=differentiable, capturable=capturable,
            ),
        )  # fmt: skip

    def start(self, p: Tensor, group: dict) -> dict:
        lr = float(group["lr"])
        size = full_like(p, complex(lr, lr) if p.dtype.is_complex else lr, requires_grad=False)
        return {"step": counter(group), "prev": zeros_like(p), "step_size": size}

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        shrink, grow = group["etas"]
        state["step"] += 1
        previous, size = state["prev"], state["step_size"]
        sign = (g * previous.clone()).sign()
        factor = sign.new_ones(sign.shape).masked_fill(sign > 0, grow).masked_fill(sign < 0, shrink)
        size.mul_(factor).clamp_(*group["step_sizes"])
        g = g.masked_fill(sign < 0, 0)  # where it turned, the parameter stays
        p.addcmul_(g.sign(), size.clone(), value=-1)
        previous.copy_(g)
