"""State of models and optimizers under the names of parameters, whatever wraps them: `get_state_dict`, `set_state_dict`.

What comes out can be saved by one number of ranks and loaded by another: optimizer state goes by the names of parameters,
not by their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...core.tensor import Tensor
from ...nn.module import Module
from ...ops.system.operator import public
from ..tensor.dtensor import DTensor


@dataclass
class StateDictOptions:
    """How state is given: whole on every rank, or as it lies."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False


def _plain_name(name: str) -> str:
    return name.removeprefix("module.").removeprefix("_orig_mod.")


def _given(value: Any, options: StateDictOptions) -> Any:
    return value.full_tensor() if options.full_state_dict and isinstance(value, DTensor) else value


def get_model_state_dict(
    model: Module, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    options = options or StateDictOptions()
    return {_plain_name(n): _given(v, options) for n, v in model.state_dict().items()}


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Put state into a model; a whole tensor goes into its parts."""
    options = options or StateDictOptions()
    own = model.state_dict()
    names = {_plain_name(n): n for n in own}
    unknown = sorted(set(model_state_dict) - set(names))
    missing = sorted(set(names) - set(model_state_dict))
    if options.strict and (unknown or missing):
        raise RuntimeError(f"set_model_state_dict: missing {missing}, unexpected {unknown}")
    for name, value in model_state_dict.items():
        if name in names:
            _copy(own[names[name]], value)
    return missing, unknown


def _copy(target: Any, value: Any) -> None:
    if not isinstance(target, Tensor):
        return
    if isinstance(target, DTensor) and not isinstance(value, DTensor):
        places = tuple(slice(b, b + n) for b, n in target._spec.local_part())
        target._local_tensor.detach().copy_(value.detach()[places] if places else value.detach())
    else:
        target.detach().copy_(value.detach())


def _parameter_names(model: Module) -> dict[int, str]:
    return {id(p): _plain_name(n) for n, p in model.named_parameters()}


def make_state(optimizer: Any) -> None:
    """Let an optimizer make the state that it will have, by a step that changes nothing; the state is then zero."""
    if optimizer.state:
        return
    params = [p for g in optimizer.param_groups for p in g["params"] if p.requires_grad]
    grads = [p.grad for p in params]
    rates = [g["lr"] for g in optimizer.param_groups if "lr" in g]
    for p in params:
        p.grad = public("torch", "zeros_like")(p.detach())
    for g in optimizer.param_groups:
        if "lr" in g:
            g["lr"] = 0.0
    optimizer.step()
    for values in optimizer.state.values():
        for v in values.values():
            if isinstance(v, Tensor):
                v.detach().zero_()
    for g, rate in zip((g for g in optimizer.param_groups if "lr" in g), rates, strict=True):
        g["lr"] = rate
    for p, g in zip(params, grads, strict=True):
        p.grad = g


def get_optimizer_state_dict(
    model: Module, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict:
    options = options or StateDictOptions()
    names = _parameter_names(model)
    state: dict[str, dict] = {}
    groups: list[dict] = []
    for optimizer in optimizers if isinstance(optimizers, (list, tuple)) else [optimizers]:
        make_state(optimizer)
        for p, values in optimizer.state.items():
            state[names[id(p)]] = {k: _given(v, options) for k, v in values.items()}
        for g in optimizer.param_groups:
            groups.append(
                {**{k: v for k, v in g.items() if k != "params"}, "params": [names[id(p)] for p in g["params"]]}
            )
    return {"state": state, "param_groups": groups}


def set_optimizer_state_dict(
    model: Module, optimizers: Any, optim_state_dict: dict, *, options: StateDictOptions | None = None
) -> None:
    names = _parameter_names(model)
    groups = iter(optim_state_dict["param_groups"])
    for optimizer in optimizers if isinstance(optimizers, (list, tuple)) else [optimizers]:
        make_state(optimizer)
        for g in optimizer.param_groups:
            g.update({k: v for k, v in next(groups).items() if k != "params"})
        for p, values in optimizer.state.items():
            given = optim_state_dict["state"].get(names[id(p)], {})
            for key, have in values.items():
                if isinstance(have, Tensor) and key in given:
                    _copy(have, given[key])
                elif key in given:
                    values[key] = given[key]


def get_state_dict(
    model: Module, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> tuple[dict, dict]:
    """(the model's state, its optimizers')."""
    return get_model_state_dict(model, options=options), get_optimizer_state_dict(model, optimizers, options=options)


def set_state_dict(
    model: Module,
    optimizers: Any,
    *,
    model_state_dict: dict,
    optim_state_dict: dict,
    options: StateDictOptions | None = None,
) -> Any:
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
