"""Which operators make tensors like others, and which take the device to make them on by position."""

from __future__ import annotations

from ...ops.system.operator import registry

LIKE = tuple(op for op in registry.values() if op.namespace == "aten" and op.name.endswith("_like"))
DEVICE_BY_POSITION = tuple(
    op
    for op in registry.values()
    if any(a.base == "Device" and not a.kwarg_only for a in op.schema.arguments)
    and any(
        t.startswith("Tensor") for t in (*(a.base for a in op.schema.arguments), *(r.type for r in op.schema.returns))
    )
)
