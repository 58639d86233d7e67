"""MIOpen, for devices of AMD: absent. `immediate` (take the first algorithm that there is, instead of the fastest) chooses nothing."""

from __future__ import annotations

from .switches import assign, assigned, guard

SWITCHES = ("immediate",)
immediate = False


def set_flags(_immediate: bool | None = None) -> tuple:
    """Set the switch; the old value comes back."""
    return assign(globals(), {"immediate": _immediate})


def flags(immediate: bool = False):
    """Context manager: the switch inside a block."""
    return assigned(globals(), {"immediate": immediate})


guard(__name__)
