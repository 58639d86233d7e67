"""Adam for sparse gradients: only what has a gradient is updated."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..core.tensor import Tensor
from .per_parameter import PerParameter, check_betas, number, zeros_like


class SparseAdam(PerParameter):
    """A masked Adam: averages move only where the gradient has entries.

    >>> table = torch.nn.Embedding(4, 2, sparse=True)
    >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> table(torch.tensor([1])).sum().backward()
    >>> optimizer.step()
    """

    counters = ()  # its step is a Python number

    def __init__(
        self, params: Iterable, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        maximize: bool = False,
    ):  # fmt: skip
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        places = [(i, j, p) for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"])]
        if sparse := [[i, j] for i, j, p in places if p.is_sparse]:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        if mixed := [[i, j] for i, j, p in places if p.is_complex()]:
            raise ValueError(f"Complex params at indices {mixed}: SparseAdam does not support complex parameters")

    def start(self, p: Tensor, group: dict) -> dict:
        return {"step": 0, "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        if not g.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state["step"] += 1
        g = g.coalesce()
        where, values = tuple(g.indices()), g.values()
        if not values.numel():
            return
        beta1, beta2 = group["betas"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        means = mean[where].lerp(values, 1 - beta1)
        squares = square[where].lerp(values * values, 1 - beta2)
        mean[where], square[where] = means, squares
        step = state["step"]
        size = number(group["lr"]) * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        p[where] -= size * means / (squares.sqrt() + group["eps"])
