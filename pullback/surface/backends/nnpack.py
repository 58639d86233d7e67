"""NNPACK: absent."""

from __future__ import annotations

from .switches import assign, assigned, guard

SWITCHES = ("enabled",)
enabled = False


def is_available() -> bool:
    return False


def set_flags(_enabled: bool) -> tuple:
    """Set the switch; the old value comes back."""
    return assign(globals(), {"enabled": _enabled})


def flags(enabled: bool = False):
    """Context manager: the switch inside a block."""
    return assigned(globals(), {"enabled": enabled})


guard(__name__)
