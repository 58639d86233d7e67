"""Optimizers that treat each parameter on its own: `update(p, g, state, group)` is all that a subclass writes.

`p` and `g` are real (complex parameters and their state appear as pairs of real numbers), `g` is negated where the
objective is maximised, and `state` holds what `start(p, group)` made. Nothing is recorded unless the optimizer was made
with `differentiable=True`. `foreach` and `fused` name faster kernels that PyTorch has elsewhere: here one loop serves
all of them, with the same numbers, and the flags are only checked; what can be updated together is, whatever they say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ..capture.ahead import Seen, done_ahead
from ..core import modes
from ..core.dtype import float32, float64
from ..core.modes import ambient, process
from ..core.tensor import Tensor
from ..ops.system.operator import public
from .optimizer import Optimizer, use_grad_for_differentiable

zeros_like = public("torch", "zeros_like")
full_like = public("torch", "full_like")
make_tensor = public("torch", "tensor")
maximum, minimum = public("torch", "maximum"), public("torch", "minimum")
view_as_real = public("torch", "view_as_real")

PLAIN = (bool, int, float, str, type(None))
_CAPTURABLE = ["cuda", "xpu", "hpu", "privateuseone", "xla"]


def begun_ahead(seen: Seen, optimizer: PerParameter) -> None:
    """`optimizer.begin()` for real, while a program that calls it is captured: so its first graph is that of all other steps.

    A start may depend on plain numbers of a group, and not on tensors, which the program may change before.
    """
    state = vars(optimizer).get("state")
    if type(state) is not defaultdict or not seen.is_unread(state):
        return
    for group in optimizer.param_groups:
        numbers = {k: v for k, v in group.items() if type(v) in PLAIN}
        for p in group["params"]:
            g = seen.gradient(p)
            if g is None or g.is_sparse or state.get(p) or group.get("differentiable"):
                continue
            try:
                optimizer._begun(p, g, numbers)
            except (KeyError, RuntimeError):  # it depends on what may change, or the program is told of an error
                return


class PerParameter(Optimizer):
    """See the module's docstring."""

    refuses_sparse: str | None = None  # the error for sparse gradients, where they are not supported
    splits_complex = True  # `update` sees complex numbers as pairs of real ones, and changes state in place
    replayable = False  # whether a step that a CUDA graph has captured, with its count on the device, can be run again
    counters: tuple[str, ...] = ("step",)  # state that is a 0-dimensional tensor

    def start(self, p: Tensor, group: dict) -> dict[str, Any]:
        """The state of a parameter before its first update."""
        raise NotImplementedError

    def update(self, p: Tensor, g: Tensor, state: dict, group: dict) -> None:
        """Change `p` in place."""
        raise NotImplementedError

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for p in group["params"]:
                kept = self.state.get(p) or {}
                for name in self.counters:  # saved as a number by earlier versions
                    if name in kept and not isinstance(kept[name], Tensor):
                        kept[name] = counter(group, float(kept[name]))

    @use_grad_for_differentiable
    def step(self, closure: Callable | None = None):
        """One step; `closure` recomputes the loss, which is returned."""
        loss = None
        if closure is not None:
            with modes.masked(0, modes.GRAD):
                loss = closure()
        if process.cuda_captures:
            self._check_capture()
        if ambient.mode & modes.CAPTURE:
            self.begin()
        for group in self.param_groups:
            for p in self.update_together([p for p in group["params"] if p.grad is not None], group):
                self._update(p, p.grad, group)
        return loss

    @done_ahead(begun_ahead)
    def begin(self) -> None:
        """Make the state that the first step makes, for all parameters at once."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None and not self.state.get(p):
                    self._begun(p, p.grad, group)

    def _begun(self, p: Tensor, g: Tensor, group: dict) -> dict[str, Any]:
        """The state of a parameter that has none, made and kept."""
        if self.refuses_sparse and g.is_sparse:
            raise RuntimeError(self.refuses_sparse)
        if group.get("fused"):
            check_fused(p)
        state = self.start(p, group)
        if self.replayable and group.get("capturable") and "step" in state:
            state["step"] = state["step"].to(p.device)
        if state:
            self.state[p] = state
        return state

    def update_together(self, params: list[Tensor], group: dict) -> list[Tensor]:
        """Update those parameters that one kernel can take together; the others are given back."""
        return params

    def _check_capture(self) -> None:
        """Raise where a step that is captured in a CUDA graph would be run again with the numbers of the first."""
        name = type(self).__name__
        if not self.replayable:
            raise RuntimeError(
                f"Attempting CUDA graph capture of step() for an instance of {name}, which cannot be captured"
            )
        if any(not group.get("capturable", True) for group in self.param_groups):
            raise RuntimeError(
                f"Attempting CUDA graph capture of step() for an instance of {name} but param_groups' capturable is False."
            )

    def _update(self, p: Tensor, g: Tensor, group: dict) -> None:
        if self.refuses_sparse and g.is_sparse:
            raise RuntimeError(self.refuses_sparse)
        state = self.state.get(p) or self._begun(p, g, group)
        if group.get("capturable"):
            check_capturable(p)
        if group.get("maximize"):
            g = -g
        if p.dtype.is_complex and self.splits_complex:
            seen = {k: real_view(v) for k, v in state.items()}
            self.update(real_view(p), real_view(g), seen, group)
        else:
            self.update(p, g, state, group)


def real_view(x):
    """A complex tensor as pairs of real numbers on the same memory; anything else as it is."""
    return view_as_real(x) if isinstance(x, Tensor) and x.dtype.is_complex else x


def counter(group: dict, value: float = 0.0) -> Tensor:
    """A 0-dimensional tensor that counts."""
    wide = ambient.default_dtype is float64 and not group.get("fused")
    return make_tensor(value, dtype=float64 if wide else float32)


def advance(state: dict) -> float | Tensor:
    """Count one more step; how many there are now: in a graph, a tensor of as many digits as a Python number."""
    step = state["step"]
    step += 1
    return read(step)


def read(x: Tensor) -> float | Tensor:
    """The number in a tensor; while a graph records, a tensor of as many digits, which may hold another in the next call."""
    return x.to(float64) if ambient.mode & modes.CAPTURE or process.cuda_captures else x.item()


def larger(a: float | Tensor, b: float | Tensor) -> float | Tensor:
    """The larger of a number that was read and another."""
    return maximum(*_as_tensors(a, b)) if isinstance(a, Tensor) or isinstance(b, Tensor) else max(a, b)


def smaller(a: float | Tensor, b: float | Tensor) -> float | Tensor:
    return minimum(*_as_tensors(a, b)) if isinstance(a, Tensor) or isinstance(b, Tensor) else min(a, b)


def _as_tensors(a: float | Tensor, b: float | Tensor) -> tuple[Tensor, ...]:
    return tuple(x if isinstance(x, Tensor) else make_tensor(x, dtype=float64) for x in (a, b))


def number(x):
    """A hyperparameter as the update uses it: a number, or a 0-dimensional tensor where its gradient is wanted.

    In a graph a tensor stays one (`read`).
    """
    if not isinstance(x, Tensor):
        return x
    flat = x.squeeze() if x.ndim else x
    return flat if ambient.mode & modes.GRAD and x.requires_grad else read(flat)


def move(p: Tensor, direction: Tensor, by) -> None:
    """`p -= by * direction`."""
    if isinstance(by, Tensor):
        p.addcmul_(direction, by, value=-1)
    else:
        p.add_(direction, alpha=-by)


def move_ratio(p: Tensor, above: Tensor, below: Tensor, by) -> None:
    """`p -= by * above / below`."""
    if isinstance(by, Tensor):
        p.addcdiv_(above * -by, below)
    else:
        p.addcdiv_(above, below, value=-by)


def settled(x: Tensor, group: dict) -> Tensor:
    """State that a later step overwrites, kept as it is now where the update is recorded."""
    return x.clone() if group["differentiable"] else x


def decay(p: Tensor, g: Tensor, weight_decay) -> Tensor:
    """The gradient of the objective with `weight_decay / 2 * |p|^2` added."""
    weight_decay = number(weight_decay)
    if isinstance(weight_decay, Tensor):
        return g + p.clone() * weight_decay
    return g.add(p, alpha=weight_decay) if weight_decay != 0 else g


# ---- checks of arguments, with PyTorch's words
def check_lr(lr) -> None:
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_at_least_zero(**values) -> None:
    """`name=value` for values that must not be negative; `epsilon` and others are named as PyTorch names them."""
    for name, value in values.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas) -> None:
    for i, b in enumerate(betas[:2]):
        if not 0.0 <= b < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {b}")


def check_kernel_flags(foreach: bool | None, fused: bool | None, differentiable: bool) -> None:
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_fused(p: Tensor) -> None:
    if not p.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported devices: "
            f"['cpu', 'cuda'] but {p.dtype} and {p.device.type}"
        )


def check_capturable(p: Tensor) -> None:
    if p.device.type not in _CAPTURABLE:
        raise AssertionError(f"If capturable=True, params and state_steps must be on supported devices: {_CAPTURABLE}.")
