"""Handles that remove hooks."""

from ..autograd.methods import RemovableHandle

__all__ = ["RemovableHandle"]
