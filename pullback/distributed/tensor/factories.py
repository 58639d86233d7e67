"""Distributed tensors and modules that are made whole at once: `zeros`, `randn`, `distribute_module`, ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...nn.module import Module
from ...nn.parameter import Parameter
from ...ops.system.operator import public
from ..device_mesh import DeviceMesh, init_device_mesh
from ..groups import get_world_size
from .dtensor import DTensor, distribute_tensor
from .placements import Replicate
from .spec import Spec, normal_placements


def _made(name: str, size: Any, mesh: DeviceMesh | None, placements: Any, fill: tuple = (), **options: Any) -> DTensor:
    """A tensor of constants: each rank makes its own part."""
    shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else tuple(size)
    mesh = mesh if mesh is not None else init_device_mesh("cpu", (get_world_size(),))
    spec = Spec(mesh, normal_placements(mesh, placements, len(shape)), shape)
    requires_grad = options.pop("requires_grad", False)
    local = public("torch", name)([n for _, n in spec.local_part()], *fill, **options)
    return DTensor(local, spec, requires_grad=requires_grad)


def zeros(*size: Any, device_mesh: DeviceMesh | None = None, placements: Any = None, **options: Any) -> DTensor:
    return _made("zeros", size, device_mesh, placements, **options)


def ones(*size: Any, device_mesh: DeviceMesh | None = None, placements: Any = None, **options: Any) -> DTensor:
    return _made("ones", size, device_mesh, placements, **options)


def empty(*size: Any, device_mesh: DeviceMesh | None = None, placements: Any = None, **options: Any) -> DTensor:
    return _made("empty", size, device_mesh, placements, **options)


def full(
    size: Any, fill_value: Any, *, device_mesh: DeviceMesh | None = None, placements: Any = None, **options: Any
) -> DTensor:
    return _made("full", (size,), device_mesh, placements, (fill_value,), **options)


def _random(name: str, size: tuple, mesh: DeviceMesh | None, placements: Any, **options: Any) -> DTensor:
    """Random numbers: every rank draws the whole, so that they do not depend on how it is cut, and the first's count."""
    mesh = mesh if mesh is not None else init_device_mesh("cpu", (get_world_size(),))
    requires_grad = options.pop("requires_grad", False)
    result = distribute_tensor(public("torch", name)(*size, **options), mesh, placements or [Replicate()] * mesh.ndim)
    return result.requires_grad_(requires_grad)


def rand(*size: Any, device_mesh: DeviceMesh | None = None, placements: Any = None, **options: Any) -> DTensor:
    return _random("rand", size, device_mesh, placements, **options)


def randn(*size: Any, device_mesh: DeviceMesh | None = None, placements: Any = None, **options: Any) -> DTensor:
    return _random("randn", size, device_mesh, placements, **options)


def distribute_module(
    module: Module, device_mesh: DeviceMesh, partition_fn: Callable | None = None, input_fn: Callable | None = None,
    output_fn: Callable | None = None,
) -> Module:  # fmt: skip
    """A module with distributed parameters: as `partition_fn(name, submodule, mesh)` places them, or replicated."""
    for name, child in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, child, device_mesh)
        replicate_rest(child, device_mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, device_mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, inputs, out: output_fn(m, out, device_mesh))
    return module


def replicate_rest(module: Module, mesh: DeviceMesh) -> None:
    """Make what a module holds itself, and nobody placed, distributed and whole on every rank."""
    whole = [Replicate()] * mesh.ndim
    for name, p in module._parameters.items():
        if p is not None and not isinstance(p, DTensor):
            module.register_parameter(name, Parameter(distribute_tensor(p.detach(), mesh, whole), p.requires_grad))
    for name, b in module._buffers.items():
        if b is not None and not isinstance(b, DTensor):
            module._buffers[name] = distribute_tensor(b, mesh, whole)
