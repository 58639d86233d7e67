"""What running an operator on fake tensors must know of it, and where its results are.

In: an operator, its canonical arguments. Out: facts that hold for every call, found out once and kept with the operator;
and the device of the results of one call.
"""

from __future__ import annotations

import sys

from ...core import device as devices
from ...core import dtype as dtypes
from ...core.cupy_library import device_count
from ...core.modes import ambient
from ...ops.family.base import Family
from ...ops.family.factory import Factory
from ...ops.family.view import VIEW
from ...ops.system.operator import Operator
from .errors import FakeTensorDeviceMismatchError

_INDICES = (dtypes.int64, dtypes.int32)


class Facts:
    """What running an operator on fakes must know of it, found out once."""

    __slots__ = ("own", "device_at", "cross_device", "by_spec", "foldable", "many", "is_view", "uncached")

    def __init__(self, op: Operator):
        from .rules import OWN_RULES

        self.own = OWN_RULES.get(op)
        self.device_at = op.schema.index.get("device")
        # Tensors may be on several devices: the results are where the first one is.
        self.cross_device = op.declared.cross_device or op.declared.indices_anywhere
        # The family's `meta` says all there is to say of the results; others make them themselves, as views do.
        self.by_spec = type(op.family).run_meta is Family.run_meta or isinstance(op.family, Factory)
        self.foldable = not op.declared.tags and "Generator" not in op.text
        self.is_view = op.family is VIEW
        self.uncached = None if self.by_spec or self.is_view else "results of its own making"
        if "Generator" in op.text or op.declared.tags:
            self.uncached = "random or dependent on data"
        self.many = bool(op.schema.returns) and op.schema.returns[0][0].endswith("[]")


def facts_of(op: Operator) -> Facts:
    facts = op.__dict__.get("fake_facts")
    if facts is None:
        facts = op.__dict__["fake_facts"] = Facts(op)
    return facts


def is_tensor_constructor(op: Operator) -> bool:
    """Whether an operator makes one tensor of none."""
    takes = any(a.base == "Tensor" for a in op.schema.arguments)
    return not takes and [kind for kind, _ in op.schema.returns] == ["Tensor"]


def has_accelerator() -> bool:
    """Whether a device besides the CPU can be used: CUDA's, or one that another package serves."""
    served = sys.modules.get("torch.privateuseone")
    return device_count() > 0 or served is not None and bool(served.is_available())


def result_device(op: Operator, facts: Facts, args: tuple, tensors: list):
    """Where the results of an operator are: the `device` argument, the device of its tensors, or the ambient default."""
    at = facts.device_at
    if at is not None and args[at] is not None:
        return devices.indexed(args[at])
    if not tensors:
        return devices.indexed(ambient.default_device)
    found = tensors[0].device
    if facts.cross_device:
        return found
    for t in tensors:
        if t.device is not found:
            return _common_device(op, tensors)
    return found


def _common_device(op: Operator, tensors: list):
    """The one device of several tensors; numbers on the CPU (tensors without dimensions) go anywhere, and whole numbers
    there (indices) to tensors without data, as they do where nothing is fake."""
    found = None
    bare = any(t.device is devices.meta for t in tensors)
    for t in tensors:
        if t.device is devices.cpu and (not t._array.shape or bare and t.dtype in _INDICES):
            continue
        if found is None:
            found = t.device
        elif t.device is not found:
            raise FakeTensorDeviceMismatchError(op, found, t.device)
    return found
