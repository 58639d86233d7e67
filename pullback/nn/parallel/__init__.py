"""One module on several devices of one process: `DataParallel` and the steps it is made of.

Inputs are cut along the batch, each piece goes to a replica of the module on its device, and results are joined.
Without accelerators there is one device, and the module is simply called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.device import device as device_type
from ...core.layers import above
from ...core.tensor import Tensor
from ...ops.system.operator import public
from ..module import Module


def scatter(inputs: Any, target_gpus: Sequence, dim: int = 0) -> list:
    """Pieces of nested inputs, one for each device; what is no tensor is repeated."""
    n = len(target_gpus)
    if isinstance(inputs, Tensor):
        return [piece.to(device) for piece, device in zip(inputs.chunk(n, dim), target_gpus, strict=False)]
    if isinstance(inputs, tuple) and hasattr(inputs, "_fields"):
        return [type(inputs)(*pieces) for pieces in zip(*(scatter(i, target_gpus, dim) for i in inputs), strict=False)]
    if isinstance(inputs, (tuple, list)) and inputs:
        return [type(inputs)(pieces) for pieces in zip(*(scatter(i, target_gpus, dim) for i in inputs), strict=False)]
    if isinstance(inputs, dict) and inputs:
        pieces = zip(*(scatter(v, target_gpus, dim) for v in inputs.values()), strict=False)
        return [type(inputs)(zip(inputs, p, strict=True)) for p in pieces]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple, kwargs: dict[str, Any] | None, target_gpus: Sequence, dim: int = 0
) -> tuple[tuple, tuple]:
    """Positional and named inputs in pieces, one pair for each device; where one has fewer pieces, empty ones follow."""
    positional = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(positional), len(named))
    return (
        tuple(positional) + ((),) * (count - len(positional)),
        (*named, *({} for _ in range(count - len(named)))),
    )


def gather(outputs: Any, target_device, dim: int = 0) -> Any:
    """Nested results of several devices, joined on one."""
    first = outputs[0]
    if isinstance(first, Tensor):
        moved = [o.to(target_device) for o in outputs]
        return public("torch", "cat")(moved, dim) if first.dim() else public("torch", "stack")(moved, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(first) == len(o) for o in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((k, gather([o[k] for o in outputs], target_device, dim)) for k in first)
    if hasattr(first, "_fields"):
        return type(first)(*(gather(parts, target_device, dim) for parts in zip(*outputs, strict=True)))
    return type(first)(gather(parts, target_device, dim) for parts in zip(*outputs, strict=True))


def replicate(network: Module, devices: Sequence, detach: bool = False) -> list[Module]:
    """Copies of a module that share its parameters' history, one on each device."""
    return [_replica(network, device_type(d), detach, {}) for d in devices]


def _replica(module: Module, device, detach: bool, result: dict) -> Module:
    if module in result:
        return result[module]
    copy = result[module] = module._replicate_for_data_parallel()
    place = lambda t: t.detach().to(device) if detach else t.to(device)
    for name, child in module._modules.items():
        copy._modules[name] = None if child is None else _replica(child, device, detach, result)
    for name, param in module._parameters.items():
        # Not a leaf: gradients flow back to the original, so it is no parameter of the copy.
        copy.__dict__[name] = None if param is None else place(param)
    for name, buffer in module._buffers.items():
        copy._buffers[name] = None if buffer is None else place(buffer)
    return copy


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence,
    kwargs_tup: Sequence[dict] | None = None,
    devices: Sequence | None = None,
) -> list:
    """Each module on its inputs."""
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    kwargs = kwargs_tup or ({},) * len(modules)
    whole = lambda given: given if isinstance(given, (tuple, list)) else (given,)
    return [m(*whole(given), **k) for m, given, k in zip(modules, inputs, kwargs, strict=True)]


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence | None = None,
    output_device=None,
    dim: int = 0,
    module_kwargs=None,
) -> Tensor:
    """Call a module on several devices at once; without device ids, simply call it."""
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    kwargs = module_kwargs or {}
    if not device_ids:
        return module(*inputs, **kwargs)
    pieces, keywords = scatter(inputs, device_ids, dim), scatter(kwargs, device_ids, dim)
    used = device_ids[: len(pieces)]
    if len(used) == 1:
        return module(*pieces[0], **keywords[0])
    out = parallel_apply(replicate(module, used), pieces, keywords[: len(used)], used)
    return gather(out, device_ids[0] if output_device is None else output_device, dim)


class DataParallel(Module):
    """A module whose calls are spread over devices.

    >>> model = torch.nn.DataParallel(torch.nn.Linear(2, 3))
    >>> model(torch.ones(4, 2)).shape
    torch.Size([4, 3])
    """

    def __init__(self, module: Module, device_ids: Sequence | None = None, output_device=None, dim: int = 0) -> None:
        super().__init__()
        self.dim = dim
        self.module = module
        self.device_ids = list(device_ids or [])
        self.output_device = output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return data_parallel(self.module, inputs, self.device_ids, self.output_device, self.dim, kwargs)


def __getattr__(name: str):
    if name == "DistributedDataParallel":
        return above.package().distributed.DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["DataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]
