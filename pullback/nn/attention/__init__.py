"""Which implementations of scaled dot-product attention may run.

On the CPU there are two: the blocked operator (FLASH_ATTENTION) and the computation written out (MATH). `sdpa_kernel`
restricts the choice inside a block or a function.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from enum import IntEnum

from ...core.modes import process

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """Implementations of attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self) -> str:
        return f"<SDPBackend.{self.name}: {self.value}>"


@contextmanager
def sdpa_kernel(backends: SDPBackend | Iterable[SDPBackend], set_priority: bool = False):
    """Only these implementations may run inside."""
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    before = process.attention_backends
    process.attention_backends = frozenset([backends] if isinstance(backends, SDPBackend) else backends)
    try:
        yield {}
    finally:
        process.attention_backends = before


def _cur_sdpa_kernel_backends() -> list[SDPBackend]:
    """The implementations that may run now."""
    known = [backend for backend in SDPBackend if backend not in (SDPBackend.ERROR, SDPBackend.OVERRIDEABLE)]
    allowed = process.attention_backends
    return known if allowed is None else [backend for backend in known if backend in allowed]


# ---- other implementations of flash attention, which programs for other devices register
_registered: dict[str, Callable] = {"FA3": None, "FA4": None}  # known by name; without code here
_active: list[str] = []


def register_flash_attention_impl(impl: str, *, register_fn: Callable) -> None:
    """Make an implementation known; `register_fn()` is called when it is activated."""
    _registered[impl] = register_fn


def activate_flash_attention_impl(impl: str) -> None:
    """Use a registered implementation."""
    if impl not in _registered:
        raise ValueError(f"Unknown flash attention impl '{impl}'. Available implementations: {list(_registered)}")
    if _registered[impl] is None:
        raise ImportError(f"flash attention impl '{impl}' is not installed")
    _registered[impl]()
    _active.append(impl)


def list_flash_attention_impls() -> list[str]:
    """Names that can be activated."""
    return sorted(_registered)


def current_flash_attention_impl() -> str | None:
    """The implementation that was activated last."""
    return _active[-1] if _active else None


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Go back to the built-in implementation."""
    if not _active and _raise_warn:
        warnings.warn("No flash attention impl is active; nothing was restored", stacklevel=2)
    _active.clear()


__all__ = [
    "WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "activate_flash_attention_impl", "current_flash_attention_impl",
    "list_flash_attention_impls", "register_flash_attention_impl", "restore_flash_attention_impl", "sdpa_kernel",
]  # fmt: skip
