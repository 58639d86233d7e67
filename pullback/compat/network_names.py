"""`torch._C._nn`: functions of networks, and the operators of networks that have no public function."""

from __future__ import annotations

from typing import Any

from ..nn import functional
from ..ops.system.operator import packets
from ..ops.system.packet import packet


def __getattr__(name: str) -> Any:
    if hasattr(functional, name):
        return getattr(functional, name)
    if name in packets:
        return packet("aten", name)
    raise AttributeError(f"module 'torch._C._nn' has no attribute {name!r}")
