"""Making modules without drawing their weights, and changing how weights lie in memory."""

from __future__ import annotations

import inspect

from .. import conv
from ..module import Module


def skip_init(module_cls, *args, **kwargs) -> Module:
    """A module with uninitialized parameters: made on device `meta`, where nothing is drawn, and given memory after.

    >>> torch.nn.utils.skip_init(torch.nn.Linear, 2, 3).weight.shape
    torch.Size([3, 2])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **{**kwargs, "device": "meta"}).to_empty(device=device)


def _convert(module: Module, memory_format, rank: int) -> Module:
    kinds = {4: (conv.Conv2d, conv.ConvTranspose2d), 5: (conv.Conv3d, conv.ConvTranspose3d)}[rank]
    for child in module.modules():
        if isinstance(child, kinds):
            child.weight.data = child.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format) -> Module:
    """Weights of all two-dimensional convolutions in another memory format.

    >>> layer = torch.nn.utils.convert_conv2d_weight_memory_format(torch.nn.Conv2d(2, 4, 3), torch.channels_last)
    >>> layer.weight.is_contiguous(memory_format=torch.channels_last)
    True
    """
    return _convert(module, memory_format, 4)


def convert_conv3d_weight_memory_format(module: Module, memory_format) -> Module:
    """Weights of all three-dimensional convolutions in another memory format.

    >>> layer = torch.nn.utils.convert_conv3d_weight_memory_format(torch.nn.Conv3d(2, 4, 3), torch.channels_last_3d)
    >>> layer.weight.is_contiguous(memory_format=torch.channels_last_3d)
    True
    """
    return _convert(module, memory_format, 5)
