"""What every optimizer is: parameter groups, state per parameter, hooks, and a `step` that subclasses write.

In come parameters (or groups of them with options of their own); `step` changes them in place. `state` maps a parameter
to its own dict; `state_dict` numbers parameters in the order of the groups, so it can be loaded into another process.
A subclass's `step` is wrapped once, where the class is defined, so that hooks run around the outermost `step` only.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from copy import deepcopy
from itertools import chain
from typing import Any

from ..autograd.methods import RemovableHandle
from ..core import modes
from ..core.dtype import float32
from ..core.modes import ambient, set_grad_enabled
from ..core.tensor import Tensor

StateDict = dict[str, Any]
ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()  # the default of an option that every group must give

_global_pre_hooks: OrderedDict = OrderedDict()
_global_post_hooks: OrderedDict = OrderedDict()

_HOOK_TABLES = (
    "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks", "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks", "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks",
)  # fmt: skip


def _add(table: OrderedDict, hook: Callable, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before every optimizer's step; it may return new (args, kwargs)."""
    return _add(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after every optimizer's step."""
    return _add(_global_post_hooks, hook)


def type_name(x: object) -> str:
    """A type as error messages name it: `torch.FloatTensor`, or the Python type's name."""
    return x.type() if isinstance(x, Tensor) else type(x).__name__


def use_grad_for_differentiable(step: Callable) -> Callable:
    """A `step` that is recorded only if the optimizer was made with `differentiable=True`."""

    @functools.wraps(step)
    def recorded(self, *args, **kwargs):
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return step(self, *args, **kwargs)

    return recorded


_use_grad_for_differentiable = use_grad_for_differentiable  # the name that optimizers outside import


def _labelled(optimizer: Optimizer, action: str):
    """A block with the optimizer's name in profiles; nothing while none runs."""
    if not ambient.mode & modes.PROFILE:
        return nullcontext()
    from ..autograd.profiler import record_function

    return record_function(f"Optimizer.{action}#{type(optimizer).__name__}.{action}")


def _with_hooks(step: Callable) -> Callable:
    """`step` between its pre- and post-hooks, unless it is called by the step of a subclass.

    A subclass that wraps another optimizer and does not call `__init__` has no hooks: the one that it wraps has.
    """

    @functools.wraps(step)
    def hooked(self, *args, **kwargs):
        if getattr(type(self), "step", None) is not hooked or "_optimizer_step_pre_hooks" not in vars(self):
            return step(self, *args, **kwargs)
        with _labelled(self, "step"):
            for hook in (*_global_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
                result = hook(self, (self, *args), kwargs)
                if result is None:
                    continue
                if not isinstance(result, tuple) or len(result) != 2:
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                (_, *args), kwargs = result
            out = step(self, *args, **kwargs)
            for hook in (*self._optimizer_step_post_hooks.values(), *_global_post_hooks.values()):
                hook(self, (self, *args), kwargs)
            return out

    hooked.hooked = True
    return hooked


class Optimizer:
    """Base of all optimizers: `params` is an iterable of tensors, of (name, tensor) pairs, or of dicts (groups).

    >>> class Descent(torch.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     @torch.no_grad()
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p.sub_(group["lr"] * p.grad)
    >>> w = torch.nn.Parameter(torch.tensor([1.0]))
    >>> (w * w).sum().backward()
    >>> Descent([w], lr=0.25).step()
    >>> w.detach()
    tensor([0.5000])
    """

    state: defaultdict
    param_groups: list[dict[str, Any]]

    profile_hook_step = staticmethod(_with_hooks)

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices: bool = False) -> dict:
        """Parallel lists of tensors, split by the device and dtype of the first."""
        from .grouping import group_by_device_and_dtype

        return group_by_device_and_dtype(tensorlistlist, with_indices)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not getattr(step, "hooked", False):
            cls.step = _with_hooks(step)

    def __init__(self, params: Iterable, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + type_name(params)
            )
        self.defaults = defaults
        self._make_hook_tables()
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def _make_hook_tables(self) -> None:
        for name in _HOOK_TABLES:
            self.__dict__.setdefault(name, OrderedDict())

    # ---- as a value
    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hook_tables()
        for group in self.param_groups:  # options that came after the state was saved
            for name, value in self.defaults.items():
                group.setdefault(name, value)

    def __repr__(self) -> str:
        groups = []
        for i, group in enumerate(self.param_groups):
            options = [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
            groups.append(f"\nParameter Group {i}\n{''.join(options)}")
        return f"{type(self).__name__} ({''.join(groups)})"

    # ---- hooks
    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return new (args, kwargs)."""
        return _add(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return _add(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return _add(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return another one."""
        return _add(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; it may return another one."""
        return _add(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return _add(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ---- state
    def state_dict(self) -> StateDict:
        """{"state": per parameter number, "param_groups": options and parameter numbers}."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        for p in chain.from_iterable(g["params"] for g in self.param_groups):
            numbers.setdefault(id(p), len(numbers))
        groups = [
            {**{k: v for k, v in g.items() if k != "params"}, "params": [numbers[id(p)] for p in g["params"]]}
            for g in self.param_groups
        ]
        state = {(numbers[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        result: StateDict = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            result = _or(hook(self, result), result)
        return result

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Take over a state: tensors are copied, and cast to their parameter's dtype and device."""
        given = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            given = _or(hook(self, given), given)
        groups, saved = self.param_groups, deepcopy(given["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        owners = {
            number: (p, s)
            for g, s in zip(groups, saved, strict=True)
            for number, p in zip(s["params"], g["params"], strict=True)
        }
        state: defaultdict = defaultdict(dict)
        for key, value in given["state"].items():
            if key in owners:
                p, group = owners[key]
                state[p] = _adapted(value, p, group)
            else:
                state[key] = value
        for g, s in zip(groups, saved, strict=True):
            s["params"] = g["params"]
            if "param_names" in g:
                s.setdefault("param_names", g["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # ---- training
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients: None, or zeros in their place."""
        with _labelled(self, "zero_grad"):
            self._zero_grad(set_to_none)

    def _zero_grad(self, set_to_none: bool) -> None:
        for p in chain.from_iterable(g["params"] for g in self.param_groups):
            if set_to_none:  # whatever there is: so a step that is captured does not depend on whether it is the first
                p.grad = None
                continue
            if p.grad is None:
                continue
            if p.grad.grad_fn is not None:
                p.grad.detach_()
            else:
                p.grad.requires_grad_(False)
            p.grad.zero_()

    def step(self, closure: Callable | None = None):
        """Change the parameters by their gradients; a closure recomputes the loss first and returns it."""
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        _split_names(param_group, [params] if isinstance(params, Tensor) else list(params))
        self._check_params(param_group["params"])
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        self._check_group(param_group)
        self.param_groups.append(param_group)

    def _check_params(self, params: list) -> None:
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type_name(p)}")
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")

    def _check_group(self, group: dict) -> None:
        params, named = group["params"], "param_names" in group
        if len(params) != len(set(params)):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=4,
            )
        if any(("param_names" in g) != named for g in self.param_groups):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with names' if named else 'without names'} to the optimizer"
            )
        if not set(params).isdisjoint(chain.from_iterable(g["params"] for g in self.param_groups)):
            raise ValueError("some parameters appear in more than one parameter group")


def _or(result, otherwise):
    return otherwise if result is None else result


def _split_names(group: dict, params: list) -> None:
    """Pairs (name, parameter) become `params` and `param_names`."""
    names = [p[0] for p in params if isinstance(p, tuple)]
    group["params"] = [p[1] if isinstance(p, tuple) else p for p in params]
    if not names:
        return
    if len(names) != len(params):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    group["param_names"] = names


def _adapted(value, p: Tensor, group: dict, key: str | None = None):
    """A loaded value for a parameter: tensors take its dtype and device (a step count keeps its own)."""
    if isinstance(value, Tensor):
        if key == "step":
            moved = group.get("capturable") or group.get("fused")
            return value.to(dtype=_float32(), device=p.device) if moved else value
        if p.is_floating_point() or p.is_complex():
            return value.to(dtype=p.dtype, device=p.device)
        return value.to(device=p.device)
    if isinstance(value, dict):
        return {k: _adapted(v, p, group, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return type(value)(_adapted(v, p, group) for v in value)  # type: ignore[call-arg]
    return value


def _float32():
    return float32
