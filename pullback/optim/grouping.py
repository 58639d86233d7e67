"""What optimizers outside ask of PyTorch's: lists of tensors by device and dtype, and which kernels a device has.

The optimizers here treat each parameter on its own (`per_parameter`) and need none of it.
"""

from __future__ import annotations

from typing import Any

from ..core.tensor import Parameter, Tensor
from ..ops.system.operator import public

Lists = list[list[Tensor | None]]
Indices = list[int]


def group_by_device_and_dtype(lists: Lists, with_indices: bool = False) -> dict[tuple[Any, Any], tuple[Lists, Indices]]:
    """Parallel lists split by the first: {(device, dtype): (the lists of these tensors, their places)}.

    The places are there only with `with_indices`.
    """
    groups: dict[tuple[Any, Any], tuple[Lists, Indices]] = {}
    for place, row in enumerate(zip(*lists, strict=True)):
        first = row[0]
        if first is None:
            raise RuntimeError(f"the first list says device and dtype, but has no tensor at place {place}")
        parts, places = groups.setdefault((first.device, first.dtype), ([[] for _ in lists], []))
        for part, value in zip(parts, row, strict=True):
            part.append(value)
        if with_indices:
            places.append(place)
    return groups


def devices_with_list_kernels() -> list[str]:
    """The device types on which PyTorch's optimizers take lists by default (`foreach`)."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def devices_with_fused_kernels() -> list[str]:
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def capturable_devices(supports_xla: bool = True) -> list[str]:
    """The device types on which a step can be part of a captured graph of kernels."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def device_takes_lists(device: Any) -> bool:
    return device.type in (*devices_with_list_kernels(), "cpu")


def has_list_support(tensors: list[Tensor | None], device: Any) -> bool:
    """Whether the operators on lists (`torch._foreach_*`) take these tensors."""
    return device_takes_lists(device) and all(t is None or type(t) in (Tensor, Parameter) for t in tensors)


def default_kernels(params: list[Tensor], differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """(fused, foreach) for a user who chose neither: kernels for lists where all parameters are on such a device."""
    if differentiable:
        return False, False

    def on(devices: list[str]) -> bool:
        return all(p is None or type(p) in (Tensor, Parameter) and p.device.type in devices for p in params)

    fused = use_fused and on(devices_with_fused_kernels()) and all(p.is_floating_point() for p in params)
    return fused, not fused and on(devices_with_list_kernels())


def value_of(x: Any) -> Any:
    """The number in a tensor of one element."""
    return x.item() if isinstance(x, Tensor) else x


def as_they_are(x: Any) -> Any:
    """PyTorch stacks lists of numbers here while it compiles; outside of that, and here, they stay lists."""
    return x


def square_root(x: Any) -> Any:
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def view_as_real_(params: list[Tensor], *states: list[Tensor]) -> None:
    """Replace complex parameters, and what goes with them, by their pairs of real numbers, in the lists."""
    as_real = public("torch", "view_as_real")
    for i, p in enumerate(params):
        if p.is_complex():
            params[i] = as_real(p)
            for state in states:
                state[i] = as_real(state[i])
