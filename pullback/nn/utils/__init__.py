"""Helpers around modules: gradient clipping, parameters as vectors, packed sequences, weight norms, parametrizations."""

from __future__ import annotations

from . import rnn

__all__ = ["rnn"]
