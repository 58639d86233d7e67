"""The base of all schedules.

A schedule writes `get_lr()`, which gives one learning rate per group from `last_epoch`, `base_lrs` and the groups as
they are ("chainable"), and may write `_get_closed_form_lr()`, which needs no history. Making a schedule takes its first
step, so that the groups have the rates of epoch 0. A learning rate that is a tensor is changed in place.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from typing import Any

from ...core.tensor import Tensor
from ..optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_ORDER = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


def own(value):
    """A value nobody else changes: tensors are copied."""
    return value.clone() if isinstance(value, Tensor) else value


def group_values(optimizer: Optimizer, key: str) -> list:
    """One option of every group."""
    return [own(group[key]) for group in optimizer.param_groups]


def set_value(group: dict, key: str, value) -> None:
    """Set an option of a group; a tensor stays the same tensor."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.squeeze() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def per_group(name: str, optimizer: Optimizer, value) -> list:
    """An argument that is one value for all groups or a list with one for each."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * count
    elif len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
            f"has {count}."
        )
    return [own(v) for v in value]


def check_optimizer(optimizer) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _note_steps(optimizer: Optimizer) -> None:
    """Make the optimizer note that it was stepped, so that a wrong order of calls can be told."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    known = weakref.ref(optimizer)
    step = optimizer.step.__func__

    @functools.wraps(step)
    def noted(*args, **kwargs):
        target = known()
        target._opt_called = True
        return step(target, *args, **kwargs)

    noted._wrapped_by_lr_sched = True
    optimizer.step = noted


class _enable_get_lr_call:
    """While it is entered, `get_lr` of a scheduler is asked for by a step, and does not warn."""

    def __init__(self, o: LRScheduler) -> None:
        self.o = o

    def __enter__(self) -> _enable_get_lr_call:
        self.o._get_lr_called_within_step = True
        return self

    def __exit__(self, *error: Any) -> None:
        self.o._get_lr_called_within_step = False


class LRScheduler:
    """Base of the schedules; see the module's docstring.

    >>> class Halved(torch.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [base / 2**self.last_epoch for base in self.base_lrs]
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    >>> scheduler = Halved(optimizer)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    _get_lr_called_within_step = False
    _is_initial = False  # whether the step taken now is the one that makes the schedule
    last_epoch: int

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", own(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch "
                    ">= 0.\nThis typically happens when:\n1. You're trying to resume training from a checkpoint but "
                    "haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 for a fresh training "
                    "run (not recommended)"
                )
        self.base_lrs = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _note_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """All that the schedule knows, except the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list:
        """The learning rates that the last step set."""
        return self._last_lr

    def get_lr(self) -> list:
        """The learning rates of this epoch."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch."""
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _check_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                f"Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. {_ORDER}",
                UserWarning,
                stacklevel=3,
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to "
                f"do this will result in PyTorch skipping the first value of the learning rate schedule. {_ORDER}",
                UserWarning,
                stacklevel=3,
            )

    def _update_lr(self, epoch: int | None = None) -> None:
        closed = getattr(self, "_get_closed_form_lr", None) if epoch is not None else None
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set_rates(closed or self.get_lr)

    def _set_rates(self, compute) -> None:
        with _enable_get_lr_call(self):
            rates = compute()
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = group_values(self.optimizer, "lr")

    # ---- for subclasses
    def _check_called_within_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def _times(self, factor) -> list:
        """The groups' rates times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _unchanged(self) -> list:
        return group_values(self.optimizer, "lr")


class _LRScheduler(LRScheduler):
    """The base under its earlier name.

    >>> issubclass(torch.optim.lr_scheduler._LRScheduler, torch.optim.lr_scheduler.LRScheduler)
    True
    """
