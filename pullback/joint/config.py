"""Settings of ahead-of-time autograd, as its parts call them."""

from __future__ import annotations

from ..capture.front.config import ahead as config

__all__ = ["config"]
