"""Answers where a CUDA device would be needed: there is none, in PyTorch's words."""

from __future__ import annotations

NO_CUDA = "Torch not compiled with CUDA enabled"


def require_device(*args, **kwargs):
    """Raise: whatever was asked for needs a device."""
    raise AssertionError(NO_CUDA)


def needs_device(name: str, doc: str):
    """A public function that needs a device."""

    def function(*args, **kwargs):
        require_device()

    function.__name__ = function.__qualname__ = name
    function.__module__ = "pullback.cuda"
    function.__doc__ = doc
    return function


class DeviceObject:
    """Base of objects that live on a device: none can be made."""

    def __new__(cls, *args, **kwargs):
        raise RuntimeError(f"torch.cuda.{cls.__name__} requires CUDA support. {NO_CUDA}")
