"""Handles that remove hooks, and what is said of hooks when tensors are saved."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from ..autograd.methods import RemovableHandle
from ..core.tensor import Tensor


def unserializable_hook(f: Callable) -> Callable:
    """Mark a hook that must not be saved with its tensor; saving is then silent about it."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Warn of each hook that saving a tensor leaves out."""
    a = tensor._autograd
    for hook in (a.hooks or {}).values() if a is not None else ():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )


__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]
