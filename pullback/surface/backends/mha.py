"""The shortcut that attention modules may take at inference: a switch, read by nothing while there is none."""

_enabled = True


def get_fastpath_enabled() -> bool:
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    global _enabled
    _enabled = value
