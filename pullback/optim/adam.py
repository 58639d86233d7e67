"""Adam: steps scaled by running averages of the gradient and of its square."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..core import elements
from ..core.dtype import float32, float64
from ..core.modes import ambient
from ..core.tensor import CUDA, Tensor
from ..ops.eager.functions import is_overridden
from ..ops.system.inplace import bump
from ..runtime import updates
from .per_parameter import (
    PerParameter,
    advance,
    check_at_least_zero,
    check_betas,
    check_kernel_flags,
    check_lr,
    counter,
    decay,
    move_ratio,
    number,
    settled,
    zeros_like,
)  # fmt: skip


class Adam(PerParameter):
    """Adam; with `decoupled_weight_decay` it is AdamW.

    >>> w = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> bool(w < 1)
    True
    """

    refuses_sparse = "Adam does not support sparse gradients, please consider SparseAdam instead"
    replayable = True

    def __init__(
        self, params: Iterable, lr: float | Tensor = 1e-3, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):  # fmt: skip
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_lr(lr)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay)
        _check_beta_types(betas, foreach, capturable)
        betas = tuple(b.squeeze() if isinstance(b, Tensor) and b.ndim else b for b in betas)
        super().__init__(
            params,
            dict(
                lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize,
                foreach=foreach, capturable=capturable, differentiable=differentiable, fused=fused,
                decoupled_weight_decay=decoupled_weight_decay,
            ),
        )  # fmt: skip
        check_kernel_flags(foreach, fused, differentiable)

    def start(self, p: Tensor, group: dict) -> dict:
        state = {"step": counter(group), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(p)
        return state

    def update_together(self, params: list[Tensor], group: dict) -> list[Tensor]:
        if not params or not _plain_group(group):
            return params
        takes, run = (_in_table, updates.adam) if _on_device(params[0]) else (_in_list, _adam_in_c)
        together: dict[tuple, list[tuple[Tensor, dict]]] = {}
        rest = []
        for p in params:
            state = self.state.get(p)
            if state and takes(p, p.grad, state):
                together.setdefault((p.dtype, p.device, _count_step(state)), []).append((p, state))
            else:
                rest.append(p)
        for (_, _, step), members in together.items():
            run([_arrays(p, p.grad, state) for p, state in members], **_numbers(group, step))
            for p, state in members:
                _count_writes(p, state, group)
        return rest

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        lr, (beta1, beta2) = number(group["lr"]), map(number, group["betas"])
        step = advance(state)
        if _in_one_step(p, g, state, group, (lr, beta1, beta2, step)) and _whole_update(p, g, state, group, step):
            return
        if group["weight_decay"] and group["decoupled_weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        else:
            g = decay(p, g, group["weight_decay"])
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(g, 1 - beta1)
        if isinstance(beta2, Tensor):
            square.lerp_(g * g, 1 - beta2)
        else:
            square.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            square = largest.copy_(settled(largest, group).maximum(square))
        scale = (1 - beta2**step) ** 0.5
        root = settled(square, group).sqrt().div(scale).add_(group["eps"])
        move_ratio(p, settled(mean, group), root, lr / (1 - beta1**step))


def _on_device(p: Tensor) -> bool:
    return bool(p._keys & CUDA)


def _plain_group(group: dict) -> bool:
    """Whether a group's numbers are Python's, its update is Adam's own, and nothing listens."""
    if (
        ambient.mode
        or is_overridden()
        or any(group[k] for k in ("amsgrad", "differentiable", "maximize", "capturable"))
    ):
        return False
    return not any(isinstance(n, Tensor) for n in (group["lr"], *group["betas"], group["weight_decay"]))


def _in_table(p: Tensor, g: Tensor, state: dict) -> bool:
    """Whether the kernel for many parameters takes this one."""
    tensors = (p, state["exp_avg"], state["exp_avg_sq"], g)
    if p.dtype not in (float32, float64) or any(t._keys != CUDA or t.device is not p.device for t in tensors):
        return False
    return not state["step"]._keys and updates.applies(*[t._array for t in tensors])


def _in_list(p: Tensor, g: Tensor, state: dict) -> bool:
    """Whether the loop in C takes this parameter, with others in one call."""
    step = state["step"]
    if p._keys or g._keys or state["exp_avg"]._keys or state["exp_avg_sq"]._keys or step._keys:
        return False
    return elements.fits(*_arrays(p, g, state))


def _adam_in_c(rows: list[tuple], **numbers: float) -> None:
    elements.update_all("adam", rows, tuple(numbers.values()))


def _count_step(state: dict) -> float:
    """As `advance`, for a plain counter: there are as many as parameters."""
    step = state["step"]
    np.add(step._array, 1, out=step._array)
    bump(step)
    return step._array.item()


def _arrays(p: Tensor, g: Tensor, state: dict) -> tuple:
    return p._array, state["exp_avg"]._array, state["exp_avg_sq"]._array, g._array


def _numbers(group: dict, step: float) -> dict[str, float]:
    """What the kernels take, in their order."""
    lr, (beta1, beta2) = number(group["lr"]), map(number, group["betas"])
    decay, apart = group["weight_decay"], group["decoupled_weight_decay"]
    return dict(
        decay=0.0 if apart else decay, shrink=1 - lr * decay if apart else 1.0, fresh=1 - beta1, keep=beta2, news=1 - beta2,
        scale=(1 - beta2**step) ** 0.5, eps=group["eps"], rate=lr / (1 - beta1**step),
    )  # fmt: skip


def _in_one_step(p: Tensor, g: Tensor, state: dict, group: dict, numbers: tuple) -> bool:
    """Whether one kernel may do the whole update: plain tensors of one dtype and device, and nothing listens."""
    if ambient.mode or p._keys & ~CUDA or is_overridden() or group["amsgrad"] or group["differentiable"]:
        return False
    if any(isinstance(n, Tensor) for n in (*numbers, group["weight_decay"])) or p.dtype not in (float32, float64):
        return False
    return all(t._keys == p._keys and t.dtype is p.dtype for t in (g, state["exp_avg"], state["exp_avg_sq"]))


def _whole_update(p: Tensor, g: Tensor, state: dict, group: dict, step: float) -> bool:
    """The update by one kernel; False where there is none for these arrays, and nothing has changed."""
    numbers, arrays = _numbers(group, step), _arrays(p, g, state)
    if p._keys:
        if not updates.applies(*arrays):
            return False
        updates.adam([arrays], **numbers)
    elif not elements.update("adam", arrays, tuple(numbers.values())):
        return False
    _count_writes(p, state, group)
    return True


def _count_writes(p: Tensor, state: dict, group: dict) -> None:
    """Decay apart from the gradient is a write of its own."""
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    for t in (p, p, mean, square) if group["decoupled_weight_decay"] and group["weight_decay"] else (p, mean, square):
        bump(t)


def _check_beta_types(betas: tuple, foreach: bool | None, capturable: bool) -> None:
    both = [isinstance(b, Tensor) for b in betas[:2]]
    if not (all(both) or all(isinstance(b, float) for b in betas[:2])):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, b in enumerate(betas[:2]):
        if not isinstance(b, Tensor):
            continue
        if not capturable and foreach:
            raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
        if b.numel() != 1:
            raise ValueError(f"Tensor betas[{i}] must be 1-element")
