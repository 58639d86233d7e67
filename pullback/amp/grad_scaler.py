"""`GradScaler`: keeps small gradients of a lower precision from vanishing.

The loss is multiplied by a scale before backward; gradients are divided by it before the optimizer sees them. Where a
gradient is not finite the step is skipped and the scale goes down; after enough good steps it goes up. Always holds:
between two `update()` calls an optimizer's gradients are divided once, and all its steps see the same scale.
"""

from __future__ import annotations

import inspect
import warnings
from enum import Enum
from typing import Any

from ..core import dtype as dtypes
from ..core.cupy_library import device_count
from ..core.modes import no_grad
from ..core.tensor import SPARSE, Tensor
from ..ops.make.factories import full


class OptState(Enum):
    """Where an optimizer is between two updates of the scale."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Scales losses, unscales gradients, skips steps that are not finite, adapts the scale.

    >>> w = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.SGD([w], lr=0.5)
    >>> scaler = torch.GradScaler("cpu", init_scale=1024.0)
    >>> scaler.scale((w * w).sum()).backward()
    >>> scaler.step(optimizer)
    >>> w.detach()
    tensor([0.])
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ):  # fmt: skip
        self._device = device
        self._enabled = enabled
        if enabled and device != "cpu" and not (device == "cuda" and device_count()):
            name = device.upper()
            warnings.warn(
                f"torch.{device}.amp.GradScaler is enabled, but {name} is not available.  Disabling.", stacklevel=2
            )
            self._enabled = False
        if self._enabled:
            if growth_factor <= 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._growth_factor, self._backoff_factor, self._growth_interval = (
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        self._init_growth_tracker = 0
        self._scale: Any = None  # made at the first use, so that the default device is known
        self._growth_tracker: Any = None
        self._stages: dict[int, OptState] = {}
        self._found: dict[int, bool | None] = {}  # optimizer -> whether a gradient of it was not finite

    # ---- the scale
    def _lazy_init(self) -> None:
        if self._scale is None:
            self._scale = full((), self._init_scale, dtype=dtypes.float32)
            self._growth_tracker = full((), self._init_growth_tracker, dtype=dtypes.int32)

    def _require_scale(self, caller: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {caller} but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale

    def scale(self, outputs):
        """Outputs (a tensor, or an iterable of them, nested) times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            self._lazy_init()
            return outputs * self._scale.to(outputs.device)
        if isinstance(outputs, (list, tuple)):
            scaled = [self.scale(o) for o in outputs]
            return type(outputs)(*scaled) if hasattr(outputs, "_fields") else type(outputs)(scaled)
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    # ---- gradients and steps
    def unscale_(self, optimizer) -> None:
        """Divide an optimizer's gradients by the scale, e.g. to clip them before `step`."""
        if not self._enabled:
            return
        scale = self._require_scale("unscale_")
        stage = self._stages.get(id(optimizer), OptState.READY)
        if stage is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._found[id(optimizer)] = _unscale(optimizer, 1.0 / float(scale.double()), allow_float16=False)
        self._stages[id(optimizer)] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """`optimizer.step(...)`, unless one of its gradients is not finite. A closure cannot be used."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._require_scale("step")
        stage = self._stages.get(id(optimizer), OptState.READY)
        if stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._hand_over(optimizer, stage, args, kwargs)
            self._stages[id(optimizer)] = OptState.STEPPED
            return result
        if stage is OptState.READY:
            self.unscale_(optimizer)
        if id(optimizer) not in self._found or self._found[id(optimizer)] is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if self._found[id(optimizer)] else optimizer.step(*args, **kwargs)
        self._stages[id(optimizer)] = OptState.STEPPED
        return result

    def _hand_over(self, optimizer, stage: OptState, args: tuple, kwargs: dict):
        """The step of an optimizer that divides by the scale itself, and skips what is not finite: it is told both.

        They are its attributes `grad_scale` (None where gradients were divided already) and `found_inf` while it steps; one whose
        `step` takes a `grad_scaler` gets this object instead.
        """
        if stage is OptState.READY:
            self._found[id(optimizer)] = _unscale(optimizer, None, allow_float16=True)
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future "
                "GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the optimizer "
                "use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        optimizer.grad_scale = None if stage is OptState.UNSCALED else self._scale
        optimizer.found_inf = full((), float(bool(self._found[id(optimizer)])), dtype=dtypes.float32)
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale to what was found since the last update, or set it."""
        if not self._enabled:
            return
        scale = self._require_scale("update")
        if new_scale is not None:
            self._set_scale(scale, new_scale)
        else:
            found = [f for f in self._found.values() if f is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._adapt(scale, any(found))
        self._stages.clear()
        self._found.clear()

    def _set_scale(self, scale: Tensor, new_scale: float | Tensor) -> None:
        if isinstance(new_scale, Tensor) and (new_scale.numel() != 1 or new_scale.requires_grad):
            raise AssertionError(
                "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                "requires_grad=False."
            )
        with no_grad():
            scale.fill_(float(new_scale))

    def _adapt(self, scale: Tensor, found: bool) -> None:
        with no_grad():
            if found:
                scale.mul_(self._backoff_factor)
                self._growth_tracker.zero_()
                return
            good = int(self._growth_tracker) + 1
            if good == self._growth_interval:
                grown = scale * self._growth_factor
                if bool(grown.isfinite()):  # a scale that has reached infinity would never come back
                    scale.copy_(grown)
                good = 0
            self._growth_tracker.fill_(good)

    # ---- settings
    def get_scale(self) -> float:
        """The scale as a number; 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale)

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker)

    def is_enabled(self) -> bool:
        return self._enabled

    # ---- state
    def state_dict(self) -> dict:
        """The scale and its settings; {} when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._get_growth_tracker(),
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict) -> None:
        """Take over what `state_dict()` gave."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        if self._scale is not None:
            with no_grad():
                self._scale.fill_(self._init_scale)
                self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict:
        """To be pickled between iterations only: what was found since the last update belongs to living optimizers."""
        if self._enabled and self._stages:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end "
                "after scaler.update()."
            )
        state = dict(self.__dict__)
        state["_init_scale"], state["_init_growth_tracker"] = self.get_scale(), self._get_growth_tracker()
        state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)


def _unscale(optimizer, factor: float | None, allow_float16: bool) -> bool | None:
    """Multiply all gradients by `factor`, if there is one; whether any was not finite, None where there is none at all."""
    found = None
    with no_grad():
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                g = parameter.grad
                if g is None:
                    continue
                if g.dtype is dtypes.float16 and not allow_float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                values = g.coalesce().values() if g._keys & SPARSE else g
                found = bool(found) or not bool(values.isfinite().all())
                if factor is not None:
                    g.mul_(factor)
    return found
