"""Schedules that go up and down, and move the momentum the other way."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, check_optimizer, per_group, set_value


class _WithMomentum(LRScheduler):
    """A schedule that may also set the momentum: `momentum`, or the first of `betas`."""

    cycle_momentum: bool

    def _start_momentum(self, base, largest, last_epoch: int) -> tuple[list, list]:
        """Put the bounds into the groups; (lowest, highest) per group."""
        options = self.optimizer.defaults
        if "momentum" not in options and "betas" not in options:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in options
        lows = per_group("base_momentum", self.optimizer, base)
        highs = per_group("max_momentum", self.optimizer, largest)
        if last_epoch == -1:
            for low, high, group in zip(lows, highs, self.optimizer.param_groups, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return lows, highs

    def _set_momentum(self, group: dict, value) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_WithMomentum):
    """Between `base_lr` and `max_lr`, `step_size_up` steps up and `step_size_down` down.

    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=0.5, step_size_up=2)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(round(optimizer.param_groups[0]["lr"], 4))
    0.3
    0.5
    0.3
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: float | list[float], max_lr: float | list[float],
        step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: float = 0.8, max_momentum: float = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    @property
    def _scale_fn_ref(self) -> Callable[[float], float]:
        """What `scale_fn` asks: the user's function, or that of the mode."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom
        gamma = self.gamma
        modes: dict[str, Callable[[float], float]] = {
            "triangular": lambda x: 1.0, "triangular2": lambda x: 1 / 2.0 ** (x - 1), "exp_range": lambda x: gamma**x,
        }  # fmt: skip
        return modes[self.mode]

    def scale_fn(self, x: float) -> float:
        """How high a cycle (or an iteration) goes, relative to the first."""
        return self._scale_fn_ref(x)

    def get_lr(self) -> list:
        self._check_called_within_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True)
            for low, high, group in bounds:
                self._set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """As of any schedule; a scale function is kept only if it is an object with attributes."""
        state = super().state_dict()
        function = state["_scale_fn_custom"]
        plain = function is None or isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else function.__dict__.copy()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        kept = state_dict["_scale_fn_custom"]
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if kept is not None:
            self._scale_fn_custom.__dict__.update(kept)


class OneCycleLR(_WithMomentum):
    """One cycle over the whole training: up to `max_lr`, then down far below where it started.

    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=4)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(round(optimizer.param_groups[0]["lr"], 4))
    0.8117
    0.2831
    0.0
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: float | list[float], total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
        anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        for group, high in zip(optimizer.param_groups, per_group("max_lr", optimizer, max_lr), strict=True):
            if last_epoch == -1:
                group["initial_lr"], group["max_lr"] = high / div_factor, high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _annealing_cos(start, end, pct: float):
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start, end, pct: float):
        return (end - start) * pct + start

    def _between(self, start, end, part: float):
        kind = getattr(self, "_anneal_func_type", None)
        if kind is None:  # of a state that an early version kept, with the function itself in it
            return self.anneal_func(start, end, part)
        return (self._annealing_cos if kind == "cos" else self._annealing_linear)(start, end, part)

    def get_lr(self) -> list:
        self._check_called_within_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin, phase = 0.0, self._schedule_phases[0]
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        part = (step - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(*ends, part))
        return rates


def _total_steps(total: int | None, epochs: int | None, per_epoch: int | None) -> int:
    if total is None and (epochs is None or per_epoch is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    given = {"total_steps": total} if total is not None else {"epochs": epochs, "steps_per_epoch": per_epoch}
    for name, value in given.items():
        if value <= 0 or not isinstance(value, int):
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())


def _phases(total: int, start: float, three: bool) -> list[dict]:
    """Which of the group's rates and momenta each phase goes between, and the step at which it ends."""

    def phase(end: float, rates: tuple[str, str], momenta: tuple[str, str]) -> dict:
        return {
            "end_step": end, "start_lr": rates[0], "end_lr": rates[1], "start_momentum": momenta[0],
            "end_momentum": momenta[1],
        }  # fmt: skip

    high, low = "max_momentum", "base_momentum"
    up = phase(float(start * total) - 1, ("initial_lr", "max_lr"), (high, low))
    if not three:
        return [up, phase(total - 1, ("max_lr", "min_lr"), (low, high))]
    down = phase(float(2 * start * total) - 2, ("max_lr", "initial_lr"), (low, high))
    return [up, down, phase(total - 1, ("initial_lr", "min_lr"), (high, high))]
