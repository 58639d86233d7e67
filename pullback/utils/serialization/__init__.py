"""`torch.utils.serialization`: the settings of saving and loading (`config`)."""

from __future__ import annotations

from ...serialization.options import config

__all__ = ["config"]
