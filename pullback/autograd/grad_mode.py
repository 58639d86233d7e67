"""Switches of recording, under the names that programs import them by."""

from __future__ import annotations

from ..core.modes import ambient, enable_grad, inference_mode, no_grad, set_grad_enabled
from .accumulation import grad_layout
from .versions import unsafe_preserve_version_counter as _unsafe_preserve_version_counter
from .views import original_view_tracking as _force_original_view_tracking


class set_multithreading_enabled:
    """Whether a backward may use several threads; set at once, as a context manager until the block ends."""

    def __init__(self, mode: bool) -> None:
        self.mode, self.before = mode, ambient.multithreading
        ambient.multithreading = bool(mode)

    def __enter__(self) -> None:
        ambient.multithreading = bool(self.mode)

    def __exit__(self, *exc: object) -> None:
        ambient.multithreading = self.before

    def clone(self) -> set_multithreading_enabled:
        return type(self)(self.mode)


class enforce_grad_layout_policy:
    """Whether gradients take the strides of their leaf; set at once, as a context manager until the block ends."""

    def __init__(self, mode: bool) -> None:
        self.mode, self.before = mode, grad_layout.enforced
        grad_layout.enforced = bool(mode)

    def __enter__(self) -> None:
        grad_layout.enforced = bool(self.mode)

    def __exit__(self, *exc: object) -> None:
        grad_layout.enforced = self.before


__all__ = [
    "_force_original_view_tracking", "_unsafe_preserve_version_counter", "enable_grad", "enforce_grad_layout_policy",
    "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip
