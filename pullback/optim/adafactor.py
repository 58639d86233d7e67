"""Adafactor: the average square of a matrix's gradient kept as a row and a column, to save memory."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.dtype import finfo
from ..core.tensor import Tensor
from .per_parameter import PerParameter, advance, counter, larger, move, number, read, smaller, zeros_like


class Adafactor(PerParameter):
    """Adafactor with a bound on the relative step (`lr`).

    >>> w = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adafactor([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> bool(w < 1)
    True
    """

    refuses_sparse = "Adafactor does not support sparse gradients"

    def __init__(
        self, params: Iterable, lr: float | Tensor = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
        foreach: bool | None = None, maximize: bool = False,
    ):  # fmt: skip
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        for i, e in enumerate(eps, 1):
            if e is not None and not e >= 0.0:
                raise ValueError(f"epsilon{i} should be >= 0 but is: {e}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(
            params,
            dict(
                lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay, foreach=foreach,
                maximize=maximize,
            ),
        )  # fmt: skip

    def start(self, p: Tensor, group: dict) -> dict:
        if p.dtype.is_complex:
            raise RuntimeError("Adafactor does not support complex parameters")
        if p.ndim < 2:
            return {"step": counter(group), "variance": zeros_like(p)}
        rows, columns = (*p.shape[:-1], 1), (*p.shape[:-2], 1, p.shape[-1])
        return {"step": counter(group), "row_var": p.new_zeros(rows), "col_var": p.new_zeros(columns)}

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        step, lr = advance(state), number(group["lr"])
        eps1, eps2 = group["eps"]
        eps1 = finfo(p.dtype).eps if eps1 is None else eps1
        scale = larger(eps2, rms(p)) * smaller(lr, 1 / step**0.5)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        variance = _variance(g, state, step ** group["beta2_decay"], eps1)
        change = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(g)
        move(p, change, scale / larger(1.0, rms(change) / group["d"]))


def rms(x: Tensor) -> float | Tensor:
    """The root mean square of a tensor's elements."""
    return read(x.norm(2)) / x.numel() ** 0.5


def _variance(g: Tensor, state: dict, weight: float | Tensor, eps1: float) -> Tensor:
    """The running average square of the gradient, which for a matrix is the product of its two factors."""
    if "variance" in state:
        return state["variance"].lerp_(g * g, weight).clone()
    rows, columns = state["row_var"], state["col_var"]
    rows.lerp_(g.norm(dim=-1, keepdim=True).square_().div_(g.shape[-1]), weight)
    columns.lerp_(g.norm(dim=-2, keepdim=True).square_().div_(g.shape[-2]), weight)
    return (rows @ columns).div_(rows.mean(dim=-2, keepdim=True).clamp_(min=eps1))
