"""The functions of the old package `functorch`: those of `torch.func`, each with a warning that says where it is now."""

from __future__ import annotations

import functools
import warnings

from .. import func
from ..func import functional_modules

_RENAMED = {
    "vmap": "torch.vmap",
    "make_functional": "torch.func.functional_call",
    "make_functional_with_buffers": "torch.func.functional_call",
    "combine_state_for_ensemble": "torch.func.stack_module_state",
}


def _deprecated(name: str, function):
    now = _RENAMED.get(name, f"torch.func.{name}")

    @functools.wraps(function)
    def warned(*args, **kwargs):
        warnings.warn(
            f"`functorch.{name}` is deprecated: we've integrated functorch into PyTorch. Please use `{now}` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    return warned


def __getattr__(name: str):
    home = functional_modules if hasattr(functional_modules, name) else func
    if name.startswith("__") or not hasattr(home, name):
        raise AttributeError(f"module 'functorch' has no attribute '{name}'")
    function = globals()[name] = _deprecated(name, getattr(home, name))
    return function
