"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Iterable

from ..core import elements
from ..core.modes import ambient
from ..core.tensor import Tensor
from ..ops.eager.functions import is_overridden
from ..ops.system.inplace import bump
from .per_parameter import PerParameter, check_kernel_flags, decay, move, number


class SGD(PerParameter):
    """`p -= lr * g`, where `g` may be a running sum of gradients (momentum).

    >>> w = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> bool(w < 1)
    True
    """

    splits_complex = False
    replayable = True

    def __init__(
        self, params: Iterable, lr: float | Tensor = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: float | Tensor = 0, nesterov: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ):  # fmt: skip
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            dict(
                lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov,
                maximize=maximize, foreach=foreach, differentiable=differentiable, fused=fused,
            ),
        )  # fmt: skip
        check_kernel_flags(foreach, fused, differentiable)

    def start(self, p: Tensor, group: dict) -> dict:
        return {"momentum_buffer": None} if group["momentum"] else {}

    def update_together(self, params: list[Tensor], group: dict) -> list[Tensor]:
        """Plain parameters of the CPU by one call of a loop in C."""
        rate, decay, keep = group["lr"], group["weight_decay"], group["momentum"]
        if ambient.mode or is_overridden() or any(group[k] for k in ("differentiable", "maximize", "fused")):
            return params
        if any(isinstance(n, Tensor) for n in (rate, decay, keep)):
            return params
        members: list[tuple[Tensor, tuple]] = []
        rest: list[Tensor] = []
        for p in params:
            kept = self.state[p].get("momentum_buffer") if keep and p in self.state else None
            tensors = (p, p.grad) if not keep else (p, kept, p.grad)
            plain = kept is not None or not keep
            plain = plain and not any(t._keys for t in tensors) and elements.fits(*[t._array for t in tensors])
            if plain:
                members.append((p, tensors))
            else:
                rest.append(p)
        how = "sgd" if not keep else "nesterov" if group["nesterov"] else "momentum"
        numbers = (decay, rate) if not keep else (decay, keep, 1 - group["dampening"], rate)
        if members:
            elements.update_all(how, [tuple([t._array for t in tensors]) for _, tensors in members], numbers)
        for _, tensors in members:
            for t in tensors[:-1]:
                bump(t)
        return rest

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        if _in_one_step(p, g, state, group):
            return
        g = decay(p, g, group["weight_decay"])
        momentum = group["momentum"]
        if momentum:
            kept = state.get("momentum_buffer")
            if kept is None:
                kept = state["momentum_buffer"] = g.detach().clone()
            else:
                kept.mul_(momentum).add_(g, alpha=1 - group["dampening"])
            g = g.add(kept, alpha=momentum) if group["nesterov"] else kept
        move(p, g, number(group["lr"]))


def _in_one_step(p: Tensor, g: Tensor, state: dict, group: dict) -> bool:
    """The whole update by one kernel, where there is one for these tensors: plain ones of the CPU, and nothing listens."""
    rate, decay, keep, kept = group["lr"], group["weight_decay"], group["momentum"], state.get("momentum_buffer")
    if ambient.mode or p._keys or g._keys or is_overridden() or group["differentiable"] or keep and kept is None:
        return False
    if any(isinstance(n, Tensor) for n in (rate, decay, keep)) or g.dtype is not p.dtype:
        return False
    if not keep:
        done = elements.update("sgd", (p._array, g._array), (decay, rate))
    elif kept._keys or kept.dtype is not p.dtype:
        return False
    else:
        how = "nesterov" if group["nesterov"] else "momentum"
        done = elements.update(how, (p._array, kept._array, g._array), (decay, keep, 1 - group["dampening"], rate))
    for t in (p, kept) if done else ():
        if t is not None:
            bump(t)
    return done
