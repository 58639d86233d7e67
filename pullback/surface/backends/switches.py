"""Switches of one library as the global names of its module: set some, and put the old values back after a block.

`Precision` is the switch of one kind of operator (`torch.backends.mkldnn.matmul.fp32_precision`): how float32 numbers may be rounded inside.
Kernels here never round them, so it chooses nothing.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_frozen = False


def flags_frozen() -> bool:
    """Whether switches may be set only by `set_flags` and `flags`."""
    return _frozen


def disable_global_flags() -> None:
    """From now on switches are set by `set_flags` and `flags` only; assigning to one raises."""
    global _frozen
    _frozen = True


@contextmanager
def unfrozen() -> Iterator[None]:
    """A block in which switches may be assigned to, frozen or not."""
    global _frozen
    before, _frozen = _frozen, False
    try:
        yield
    finally:
        _frozen = before


_PRECISIONS = ("none", "ieee", "tf32", "bf16")


def check_precision(value: str) -> str:
    """A precision that PyTorch knows."""
    if value not in _PRECISIONS:
        raise RuntimeError(f"Unknown precision: {value}")
    return value


def everywhere() -> str:
    """What was said for all libraries (`torch.backends.fp32_precision`)."""
    return sys.modules[__package__].fp32_precision  # type: ignore[index, attr-defined]


class Precision:
    """How kernels of one kind may round float32 numbers: as was said here, or ("none") as for the whole library, or for all of them."""

    def __init__(self, own: str = "none", *wider: Callable[[], str]):
        self._own, self._wider = own, wider

    @property
    def fp32_precision(self) -> str:
        if self._own != "none":
            return self._own
        return next((value for value in (ask() for ask in self._wider) if value != "none"), "none")

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        self._own = check_precision(value)


class _Guarded(types.ModuleType):
    """A module whose switches cannot be assigned to once they are frozen."""

    def __setattr__(self, name: str, value: object) -> None:
        if _frozen and name in self.__dict__.get("SWITCHES", ()):
            raise RuntimeError(
                f"not allowed to set {self.__name__.replace('pullback.surface', 'torch')} flags after disable_global_flags; "
                "please use flags() context manager instead"
            )
        if name == "fp32_precision":
            check_precision(value)  # type: ignore[arg-type]
        super().__setattr__(name, value)


def guard(module: str) -> None:
    """Watch assignments to the names in a module's SWITCHES."""
    sys.modules[module].__class__ = _Guarded


def assign(names: dict, values: dict) -> tuple:
    """Give switches their new values (None: as it is); the old values come back, in the same order."""
    before = tuple(names[name] for name in values)
    names.update({name: value for name, value in values.items() if value is not None})
    return before


@contextmanager
def assigned(names: dict, values: dict) -> Iterator[None]:
    """New values inside a block."""
    before = assign(names, values)
    try:
        yield
    finally:
        names.update(zip(values, before, strict=True))
