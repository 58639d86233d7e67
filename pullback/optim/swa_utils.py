"""Averages of a model's weights over training: stochastic weight averaging and exponential moving averages."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..nn.batchnorm import _BatchNorm
from ..nn.module import Module
from ..ops.system.operator import public
from .lr_scheduler.base import LRScheduler, per_group
from .optimizer import Optimizer

make_tensor = public("torch", "tensor")


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _is_inexact(x: Tensor) -> bool:
    return x.dtype.is_floating_point or x.dtype.is_complex


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """A function that moves a list of averages towards a list of values by `1 - decay`."""
    _check_decay(decay)

    @no_grad()
    def ema_update(averages: list[Tensor], values: list[Tensor], _) -> None:
        for average, value in zip(averages, values, strict=True):
            if _is_inexact(average):
                average.lerp_(value, 1 - decay)
            else:
                average.copy_(average * decay + value * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable:
    """A function that adds a list of values to a list of equal-weight averages."""

    @no_grad()
    def swa_update(averages: list[Tensor], values: list[Tensor], num_averaged: Tensor | int) -> None:
        count = int(num_averaged)
        for average, value in zip(averages, values, strict=True):
            if _is_inexact(average):
                average.lerp_(value, 1 / (count + 1))
            else:
                average.copy_(average + (value - average) / (count + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """A function that gives an average moved towards a value by `1 - decay`."""
    _check_decay(decay)

    @no_grad()
    def ema_update(average: Tensor, value: Tensor, num_averaged) -> Tensor:
        return decay * average + (1 - decay) * value

    return ema_update


def get_swa_avg_fn() -> Callable:
    """A function that gives the equal-weight average with one more value."""

    @no_grad()
    def swa_update(average: Tensor, value: Tensor, num_averaged: Tensor | int) -> Tensor:
        return average + (value - average) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters (and buffers, on request) are averages over `update_parameters` calls."""

    def __init__(
        self, model: Module, device=None, avg_fn: Callable | None = None, multi_avg_fn: Callable | None = None,
        use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", make_tensor(0, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the model's parameters as they are now into the averages."""
        averages, values = ([t.detach() for t in self._averaged(m)] for m in (self.module, model))
        values = [v.to(a.device) for a, v in zip(averages, values, strict=True)]
        if int(self.n_averaged) == 0:
            for average, value in zip(averages, values, strict=True):
                average.copy_(value)
        elif self.avg_fn is not None:
            for average, value in zip(averages, values, strict=True):
                average.copy_(self.avg_fn(average, value, self.n_averaged.to(average.device)))
        else:
            self._update_lists(averages, values)
        if not self.use_buffers:
            for mine, other in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(other.detach())
        self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        return itertools.chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()

    def _update_lists(self, averages: list[Tensor], values: list[Tensor]) -> None:
        """Lists of one device and dtype each, as functions over lists expect."""
        groups: dict = {}
        for average, value in zip(averages, values, strict=True):
            pair = groups.setdefault((average.device, average.dtype), ([], []))
            pair[0].append(average)
            pair[1].append(value)
        update = self.multi_avg_fn or get_swa_multi_avg_fn()
        for (device, _), (mine, other) in groups.items():
            update(mine, other, self.n_averaged.to(device))


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device=None) -> None:
    """Compute the running statistics of batch normalisation anew, by one pass over the data."""
    momenta = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for m in momenta:
        m.reset_running_stats()
        m.momentum = None  # None: an average with equal weights
    for batch in loader:
        given = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(given if device is None else given.to(device))
    for m, momentum in momenta.items():
        m.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the optimizer's rate to `swa_lr` in `anneal_epochs` epochs, and then constant."""

    def __init__(
        self, optimizer: Optimizer, swa_lr: float | list[float], anneal_epochs: int = 10, anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        for rate, group in zip(per_group("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _weight(self, step: int) -> float:
        """How much of `swa_lr` the rate has after a number of steps."""
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list:
        self._check_called_within_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._weight(step - 1), self._weight(step)
        rates = []
        for group in self.optimizer.param_groups:
            lr, target = group["lr"], group["swa_lr"]
            start = target if before == 1 else (lr - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates
