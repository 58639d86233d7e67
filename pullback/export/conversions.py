"""`x.to(...)`, `x.float()`, `x.cpu()` in an exported program: calls of `aten.to`, also where nothing is to be converted.

In: calls of these methods while a module is exported. Out: for each, a check that the tensor is of the dtype and on the device
that was traced, and the operator. What always holds: the operator decides when the program runs, so that its result may be its
argument itself; what it was traced for is checked before it.
"""

from __future__ import annotations

from typing import Any

from ..core import device as devices
from ..core import dtype as dtypes
from ..core.tensor import DISPATCH_SUBCLASS, Tensor
from ..ops.make.conversion import _to_target
from ..ops.system.overrides import TorchFunctionMode
from ..ops.system.packet import ops

CASTS: dict[Any, Any] = {
    getattr(Tensor, name): dtype
    for name, dtype in {
        "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
        "int": dtypes.int32, "long": dtypes.int64, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8,
        "bool": dtypes.bool, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
    }.items()
}  # fmt: skip
OPERATORS = (ops.aten.to.dtype, ops.aten.to.device, ops.aten.to.dtype_layout)


class KeptConversions(TorchFunctionMode):
    """While a module is exported: see the module's docstring."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if args and isinstance(args[0], Tensor) and not args[0]._keys & DISPATCH_SUBCLASS:
            if func is Tensor.to:  # type: ignore[attr-defined]
                return converted(*args, **kwargs)
            if func is Tensor.cpu:  # type: ignore[attr-defined]
                return converted(args[0], devices.cpu)
            if func in CASTS:
                return converted(args[0], CASTS[func], **dict(zip(("memory_format",), args[1:])), **kwargs)
        return func(*args, **kwargs)


def converted(
    self: Tensor, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, copy: bool = False, memory_format: Any = None,
    other: Any = None,
) -> Any:  # fmt: skip
    """`self.to(...)` by the operator that these arguments choose."""
    flags = [a for a in args if isinstance(a, bool)]
    non_blocking, copy = (*flags, *(non_blocking, copy)[len(flags) :])
    dtype, device = _to_target("to", args, dtype, device, other)
    ops.aten._assert_tensor_metadata.default(self, dtype=self.dtype, device=self.device, layout=self.layout)
    rest = (non_blocking, copy, memory_format)
    if dtype is not None and device is not None:
        return ops.aten.to.device(self, device, dtype, *rest)
    if dtype is not None:
        return ops.aten.to.dtype(self, dtype, *rest)
    return ops.aten.to.dtype_layout(
        self, dtype=self.dtype, layout=self.layout, device=device or self.device, non_blocking=non_blocking, copy=copy,
        memory_format=memory_format,
    )  # fmt: skip
