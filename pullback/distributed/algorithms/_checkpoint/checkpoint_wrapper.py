"""Modules that checkpoint themselves: what is saved for backward inside one is computed again, or kept elsewhere.

A wrapper has the wrapped module's attributes, and its names in `named_parameters` and state dicts are the wrapped module's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

from ....autograd.saved import save_on_cpu
from ....nn.module import Module
from ....utils.checkpoint import checkpoint
from ...fsdp.wrap import lambda_auto_wrap_policy, wrap_children

_INSIDE = "_checkpoint_wrapped_module"
_PREFIX = f"{_INSIDE}."


class CheckpointImpl(Enum):
    """The two ways of `torch.utils.checkpoint`."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """A module around another that goes by the other's names."""

    def __init__(self, mod: Module):
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self.register_state_dict_post_hook(self._without_prefix)
        self.register_load_state_dict_pre_hook(self._with_prefix)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: Any) -> Any:
        return self._checkpoint_wrapped_module[key]  # type: ignore[index]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), parameter

    @staticmethod
    def _without_prefix(module: Module, state: dict, prefix: str, *args: Any) -> None:
        for key in [k for k in state if k.startswith(prefix + _PREFIX)]:
            state[prefix + key[len(prefix) + len(_PREFIX) :]] = state.pop(key)

    @staticmethod
    def _with_prefix(module: Module, state: dict, prefix: str, *args: Any) -> None:
        for key in [k for k in state if k.startswith(prefix)]:
            state[prefix + _PREFIX + key[len(prefix) :]] = state.pop(key)


class OffloadWrapper(ActivationWrapper):
    """A module whose saved tensors wait for backward in host memory."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with save_on_cpu(pin_memory=False):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """A module that runs again in backward instead of saving what is inside it."""

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable | None = None,
        **checkpoint_fn_kwargs: Any,
    ):
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
            self.checkpoint_fn: Callable = partial(checkpoint, use_reentrant=reentrant, **checkpoint_fn_kwargs)
        else:
            self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        inside = self._checkpoint_wrapped_module
        if self.checkpoint_impl is CheckpointImpl.REENTRANT and kwargs:  # which takes no keywords itself
            return self.checkpoint_fn(lambda *values: inside(*values, **kwargs), *args)
        return self.checkpoint_fn(inside, *args, **kwargs)


def offload_wrapper(module: Module) -> Module:
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda module: True,
    auto_wrap_policy: Callable[..., bool] | None = None,
) -> None:
    """Wrap the modules below `model` that `check_fn`, or a policy in its place, wants."""
    wrap_children(
        model, auto_wrap_policy or partial(lambda_auto_wrap_policy, lambda_fn=check_fn), checkpoint_wrapper_fn
    )
