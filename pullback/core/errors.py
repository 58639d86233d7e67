"""Exceptions with names of their own, for programs that catch them, and warnings that are given once."""

from __future__ import annotations

import warnings


class OutOfMemoryError(RuntimeError):
    """A device has no memory left.

    >>> issubclass(torch.OutOfMemoryError, RuntimeError)
    True
    """


class HostMemoryError(RuntimeError, MemoryError):
    """This machine has not the memory that a result takes; programs that catch either class find it."""


def no_memory(error: MemoryError) -> MemoryError:
    """The error that says, as PyTorch's allocator does, what could not be allocated."""
    if isinstance(error, HostMemoryError):
        return error
    count = getattr(error, "_total_size", None)
    asked = f"you tried to allocate {count} bytes. " if count is not None else ""
    return HostMemoryError(f"DefaultCPUAllocator: can't allocate memory: {asked}Error code 12 (Cannot allocate memory)")


class AcceleratorError(RuntimeError):
    """A device reported an error.

    >>> issubclass(torch.AcceleratorError, RuntimeError)
    True
    """


class FatalError(Exception):
    """The process cannot go on.

    >>> issubclass(torch.FatalError, RuntimeError)
    False
    """


_warned: set[str] = set()


def warn_once(message: str, stacklevel: int = 4) -> None:
    """A warning that is given once, or always if the process asks for that."""
    from .modes import process

    if message not in _warned or process.warn_always:
        _warned.add(message)
        warnings.warn(message, UserWarning, stacklevel=stacklevel)
