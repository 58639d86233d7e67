"""Answers where a CUDA device would be needed and there is none, in PyTorch's words; and CuPy where there is one."""

from __future__ import annotations

from functools import wraps

from ..core.cupy_library import NO_CUDA, device_count, load
from ..core.device import device as device_type
from ..core.device import indexed


def require_device(*args, **kwargs):
    """CuPy, or PyTorch's error: whatever was asked for needs a device."""
    return load(indexed("cuda")).cupy


def needs_device(name: str, doc: str):
    """A public function that is not supported, with or without a device."""

    def function(*args, **kwargs):
        require_device()
        raise NotImplementedError(f"torch.cuda.{name}() is not supported")

    function.__name__ = function.__qualname__ = name
    function.__module__ = "pullback.cuda"
    function.__doc__ = doc
    return function


def on_device(function):
    """A public function that gets CuPy as its first argument; it raises where there is no device."""

    @wraps(function)
    def call(*args, **kwargs):
        return function(require_device(), *args, **kwargs)

    call.__module__ = "pullback.cuda"
    return call


def index_of(device) -> int:
    """The number of a device; None, and a device without one, stand for the one in use."""
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    found = indexed("cuda" if device is None else device_type(device))
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {found}")
    return found.index or 0


class DeviceObject:
    """Base of objects that live on a device: without one none can be made."""

    def __new__(cls, *args, **kwargs):
        if not device_count():
            name = cls.__name__
            raise RuntimeError(
                f"Tried to instantiate dummy base class {name}: torch.cuda.{name} requires CUDA support. {NO_CUDA}"
            )
        return object.__new__(cls)


class Unsupported(DeviceObject):
    """Base of objects that no device can have yet."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(f"torch.cuda.{type(self).__name__} is not supported")
