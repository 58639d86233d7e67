"""How modules take converted and loaded tensors over (`torch.__future__`): two settings of the process.

`overwrite`: a conversion makes new parameters, and who holds the old ones keeps them as they were. `swap`: a parameter changes
places with the converted or loaded one, so that it may change its class and keeps its identity.
"""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]


class Flags:
    """The settings as they are now."""

    overwrite = False
    swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether `module.to()` and its kin give a module new parameters rather than change the data of those it has."""
    Flags.overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    return Flags.overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether `module.to()`, its kin and `load_state_dict` let parameters change places with their new values."""
    Flags.swap = value


def get_swap_module_params_on_conversion() -> bool:
    return Flags.swap
