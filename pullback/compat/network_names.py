"""`torch._C._nn`: functions of networks, and the operators of networks that have no public function.

A name that is both is the operator where the two differ in what they take or give: losses take the number of a reduction in the place
where functions have old flags, and pools give the places as well.
"""

from __future__ import annotations

from typing import Any

from ..nn import functional
from ..ops.system.operator import exports, find, packets
from ..ops.system.packet import packet


def _differs(name: str) -> bool:
    """Whether an operator takes or gives something else than the function of its name."""
    if name not in packets or "default" not in packet("aten", name).overloads():
        return False
    schema = find(f"{name}.default").schema
    return len(schema.returns) > 1 or any(a.name == "reduction" for a in schema.arguments)


def __getattr__(name: str) -> Any:
    if _differs(name):
        return exports["_nn"].get(name) or packet("aten", name)
    if hasattr(functional, name):
        return getattr(functional, name)
    if name in packets:
        return packet("aten", name)
    raise AttributeError(f"module 'torch._C._nn' has no attribute {name!r}")
