"""Exceptions with names of their own, for programs that catch them."""

from __future__ import annotations


class OutOfMemoryError(RuntimeError):
    """A device has no memory left."""


class AcceleratorError(RuntimeError):
    """A device reported an error."""


class FatalError(Exception):
    """The process cannot go on."""
