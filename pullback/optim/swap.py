"""Run an optimizer on other parameters and state for a while."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from typing import Any

from ..core.tensor import Tensor
from .optimizer import Optimizer

_NAME = "swap_in_optimizer_params_and_state requires"


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
):
    """Inside the block, `optimizer` works on the given parameters (in its own order) and state (a `state_dict`)."""
    state, groups = _checked(optimizer, swapin_optim_state)
    given = list(swapin_parameters.values())
    if sum(len(g["params"]) for g in groups) > len(given):
        raise RuntimeError(f"{_NAME} the explicit parameter state to match optimizer.param_groups ordering.")
    before_state, before_groups = optimizer.state, [dict(g) for g in optimizer.param_groups]
    try:
        swapped: defaultdict = defaultdict(dict)
        at = 0
        for live, group in zip(optimizer.param_groups, groups, strict=True):
            numbers = group["params"]
            params = given[at : at + len(numbers)]
            at += len(numbers)
            live.update({**group, "params": params})
            swapped.update({p: dict(state.get(n, {})) for p, n in zip(params, numbers, strict=True)})
        optimizer.state = swapped
        yield
    finally:
        for live, kept in zip(optimizer.param_groups, before_groups, strict=True):
            live.clear()
            live.update(kept)
        optimizer.state = before_state


def _checked(optimizer: Optimizer, given: dict[str, Any]) -> tuple[dict, list[dict]]:
    """The state and groups of a `state_dict`, or an error that says what does not fit the optimizer."""
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} initialized optimizer state.")
    if not isinstance(given, dict):
        raise RuntimeError(f"{_NAME} a DCP-style optimizer state_dict.")
    state, groups = given.get("state"), given.get("param_groups")
    if not isinstance(state, dict):
        raise RuntimeError(
            f"{_NAME} swapin_optim_state['state'] to be a dict mapping packed parameter ids to per-param state dicts, "
            f"got {type(state).__name__}."
        )
    if any(isinstance(k, Tensor) for k in state):
        raise RuntimeError(f"{_NAME} optimizer.state_dict()-style state keyed by packed parameter ids.")
    if any(isinstance(k, int) and not isinstance(v, dict) for k, v in state.items()):
        raise RuntimeError(f"{_NAME} per-parameter optimizer state entries to be dictionaries.")
    if not isinstance(groups, list):
        raise RuntimeError(
            f"{_NAME} swapin_optim_state['param_groups'] to be a list of param-group dicts, "
            f"got {type(groups).__name__}."
        )
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError("swapin_optim_state has a different number of parameter groups than the live optimizer.")
    for i, (live, group) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        _check_group(i, live, group)
    known = {n for g in groups for n in g["params"]}
    if extra := [k for k in state if k not in known]:
        raise RuntimeError(
            f"{_NAME} swapin_optim_state['state'] to be keyed only by packed parameter ids from "
            f"param_groups[*]['params']; got extra keys {extra!r}."
        )
    return state, groups


def _check_group(i: int, live: dict, group: Any) -> None:
    if not isinstance(group, dict):
        raise RuntimeError(f"{_NAME} each optimizer param group to be a dictionary.")
    numbers = group.get("params")
    if not isinstance(numbers, list) or not all(isinstance(n, int) for n in numbers):
        raise RuntimeError(
            f"{_NAME} optimizer.state_dict()-style param_groups[*]['params'] entries keyed by packed parameter ids."
        )
    if len(numbers) != len(live["params"]):
        raise RuntimeError(
            f"swapin_optim_state param group {i} has a different number of params than the live optimizer param group."
        )
    added, lost = [k for k in group if k not in live], [k for k in live if k not in group]
    if added or lost:
        raise RuntimeError(
            f"{_NAME} optimizer.state_dict()-style param group keys to exactly match the live optimizer group keys for "
            f"group {i}. Keys only in swap-in: {added}. Keys only in live: {lost}."
        )
