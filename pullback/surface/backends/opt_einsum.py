"""opt_einsum: absent. `einsum` contracts from left to right unless it is given a path."""

from __future__ import annotations

from .switches import assigned

enabled = False
strategy: str | None = None


def is_available() -> bool:
    return False


def get_opt_einsum():
    """The package, if it were used."""
    return None


def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> tuple:
    """Set the switches; the old values come back. Turning it on raises."""
    _check(_enabled, _strategy)
    return enabled, strategy


def flags(enabled: bool | None = None, strategy: str | None = None):
    """Context manager: switches inside a block. Turning it on raises."""
    _check(enabled, strategy)
    return assigned(globals(), {})


def _check(on: bool | None, strategy: str | None) -> None:
    if on:
        raise ValueError(
            "opt_einsum is not available, so setting `enabled` to True will not reap the benefits of calculating an "
            "optimal path for einsum. torch.einsum will fall back to contracting from left to right."
        )
    if strategy is not None:
        raise ValueError(f"opt_einsum is not available, so setting `strategy` to {strategy} will not be meaningful.")
