"""Convolutions, plain, transposed and lazy, in one, two and three dimensions.

Sizes are given once or per dimension and kept as tuples. Padding that is not of zeros is done by `F.pad` before the
convolution.
"""

from __future__ import annotations

import math

from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..ops.system.operator import public
from . import functional as F
from . import init
from .lazy import LazyModuleMixin, empty
from .module import Module
from .parameter import Parameter, UninitializedParameter
from .sizes import pair, reversed_twice, single, triple

_SIZES = {1: single, 2: pair, 3: triple}
_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    __constants__ = [
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels", "out_channels",
        "kernel_size",
    ]  # fmt: skip
    bias: Tensor | None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: tuple, stride: tuple, padding, dilation: tuple,
        transposed: bool, output_padding: tuple, groups: int, bias: bool, padding_mode: str, device=None, dtype=None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check_settings(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._explicit_padding()
        shape = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(empty((*shape, *kernel_size), device, dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, device, dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _explicit_padding(self) -> list[int]:
        """Padding as `F.pad` takes it: both ends of each dimension, the last dimension first."""
        if not isinstance(self.padding, str):
            return list(reversed_twice(self.padding, 2))
        out: list[int] = []
        for d, k in zip(reversed(self.dilation), reversed(self.kernel_size), strict=True):
            total = d * (k - 1) if self.padding == "same" else 0
            out += [total // 2, total - total // 2]
        return out

    def reset_parameters(self) -> None:
        with no_grad():
            if self.weight.is_contiguous():
                init.kaiming_uniform_(self.weight, a=math.sqrt(5))
            else:  # draws go in the order of the indices, whatever the order of the memory
                drawn = public("torch", "empty")(self.weight.shape, dtype=self.weight.dtype, device=self.weight.device)
                self.weight.copy_(init.kaiming_uniform_(drawn, a=math.sqrt(5)))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        s = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            s += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            s += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            s += f", output_padding={self.output_padding}"
        if self.groups != 1:
            s += f", groups={self.groups}"
        if self.bias is None:
            s += ", bias=False"
        if self.padding_mode != "zeros":
            s += f", padding_mode={self.padding_mode}"
        return s

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


def _check_settings(
    in_channels: int, out_channels: int, stride: tuple, padding, groups: int, padding_mode: str
) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups != 0:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in _PADDING_MODES:
        names = "{" + ", ".join(map(repr, _PADDING_MODES)) + "}"
        raise ValueError(f"padding_mode must be one of {names}, but got padding_mode='{padding_mode}'")


class _Conv(_ConvNd):
    """What the three plain convolutions share."""

    dims = 0

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1, groups: int = 1,
        bias: bool = True, padding_mode: str = "zeros", device=None, dtype=None,
    ) -> None:  # fmt: skip
        size = _SIZES[self.dims]
        super().__init__(
            in_channels, out_channels, size(kernel_size), size(stride),
            padding if isinstance(padding, str) else size(padding), size(dilation), False, size(0), groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        function = getattr(F, f"conv{self.dims}d")
        if self.padding_mode == "zeros":
            return function(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return function(padded, weight, bias, self.stride, (0,) * self.dims, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Convolution over (N, C, L).

    >>> torch.nn.Conv1d(1, 4, 3, padding=1)(torch.ones(2, 1, 8)).shape
    torch.Size([2, 4, 8])
    """

    dims = 1


class Conv2d(_Conv):
    """Convolution over (N, C, H, W).

    >>> torch.nn.Conv2d(3, 8, 3, stride=2)(torch.ones(1, 3, 9, 9)).shape
    torch.Size([1, 8, 4, 4])
    """

    dims = 2


class Conv3d(_Conv):
    """Convolution over (N, C, D, H, W).

    >>> torch.nn.Conv3d(1, 2, 2)(torch.ones(1, 1, 3, 3, 3)).shape
    torch.Size([1, 2, 2, 2, 2])
    """

    dims = 3


class _ConvTransposeNd(_ConvNd):
    """What the three transposed convolutions share."""

    dims = 0

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0, groups: int = 1,
        bias: bool = True, dilation=1, padding_mode: str = "zeros", device=None, dtype=None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        size = _SIZES[self.dims]
        super().__init__(
            in_channels, out_channels, size(kernel_size), size(stride), size(padding), size(dilation), True,
            size(output_padding), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: list[int] | None) -> tuple:
        """What must be added so that the result has the size asked for."""
        if output_size is None:
            return self.output_padding
        lead = 2 if input.dim() == self.dims + 2 else 1
        wanted = list(output_size)
        if len(wanted) == lead + self.dims:
            wanted = wanted[lead:]
        if len(wanted) != self.dims:
            raise ValueError(
                f"ConvTranspose{self.dims}D: for {input.dim()}D input, output_size must have {self.dims} or "
                f"{lead + self.dims} elements (got {len(wanted)})"
            )
        least = [
            (input.size(d + lead) - 1) * self.stride[d]
            - 2 * self.padding[d]
            + self.dilation[d] * (self.kernel_size[d] - 1)
            + 1
            for d in range(self.dims)
        ]
        most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
        if any(not low <= size <= high for size, low, high in zip(wanted, least, most, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} to {most} (for an "
                f"input of {input.size()[2:]})"
            )
        return tuple(size - low for size, low in zip(wanted, least, strict=True))

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        function = getattr(F, f"conv_transpose{self.dims}d")
        return function(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution over (N, C, L).

    >>> torch.nn.ConvTranspose1d(1, 4, 2, stride=2)(torch.ones(2, 1, 8)).shape
    torch.Size([2, 4, 16])
    """

    dims = 1


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution over (N, C, H, W).

    >>> torch.nn.ConvTranspose2d(3, 8, 2, stride=2)(torch.ones(1, 3, 4, 4)).shape
    torch.Size([1, 8, 8, 8])
    """

    dims = 2


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution over (N, C, D, H, W).

    >>> torch.nn.ConvTranspose3d(1, 2, 2)(torch.ones(1, 1, 3, 3, 3)).shape
    torch.Size([1, 2, 4, 4, 4])
    """

    dims = 3


class _LazyConv(LazyModuleMixin):
    """A convolution that learns `in_channels` from its first input."""

    def __init__(self, out_channels: int, kernel_size, *args, device=None, dtype=None, **kwargs) -> None:
        bias = self._wanted_bias(args, kwargs)
        # Nothing is drawn for zero channels; the tensors come after.
        super().__init__(0, 0, kernel_size, *args, **kwargs)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)
        else:
            self._parameters["bias"] = None

    def _wanted_bias(self, args: tuple, kwargs: dict) -> bool:
        at = 4  # after stride, padding, dilation (or output padding) and groups
        return args[at] if len(args) > at else kwargs.get("bias", True)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args, **kwargs) -> None:
        if not self.has_uninitialized_params():
            return
        if input.dim() not in (self.dims + 1, self.dims + 2):
            raise RuntimeError(
                f"Expected {self.dims + 1}D (unbatched) or {self.dims + 2}D (batched) input to {type(self).__name__}, "
                f"but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[1] if input.dim() == self.dims + 2 else input.shape[0]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        ends = (self.in_channels, self.out_channels // self.groups)
        if not self.transposed:
            ends = (self.out_channels, self.in_channels // self.groups)
        self.weight.materialize((*ends, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class LazyConv1d(_LazyConv, Conv1d):
    """A lazy Conv1d.

    >>> layer = torch.nn.LazyConv1d(4, 3)
    >>> layer(torch.ones(2, 1, 8)).shape, layer.in_channels
    (torch.Size([2, 4, 6]), 1)
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A lazy Conv2d.

    >>> layer = torch.nn.LazyConv2d(4, 3)
    >>> layer(torch.ones(1, 3, 9, 9)).shape, layer.in_channels
    (torch.Size([1, 4, 7, 7]), 3)
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A lazy Conv3d.

    >>> layer = torch.nn.LazyConv3d(4, 2)
    >>> layer(torch.ones(1, 1, 3, 3, 3)).shape, layer.in_channels
    (torch.Size([1, 4, 2, 2, 2]), 1)
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConv, ConvTranspose1d):
    """A lazy ConvTranspose1d.

    >>> layer = torch.nn.LazyConvTranspose1d(4, 2)
    >>> layer(torch.ones(2, 1, 8)).shape, layer.in_channels
    (torch.Size([2, 4, 9]), 1)
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConv, ConvTranspose2d):
    """A lazy ConvTranspose2d.

    >>> layer = torch.nn.LazyConvTranspose2d(4, 2)
    >>> layer(torch.ones(1, 3, 4, 4)).shape, layer.in_channels
    (torch.Size([1, 4, 5, 5]), 3)
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConv, ConvTranspose3d):
    """A lazy ConvTranspose3d.

    >>> layer = torch.nn.LazyConvTranspose3d(4, 2)
    >>> layer(torch.ones(1, 1, 3, 3, 3)).shape, layer.in_channels
    (torch.Size([1, 4, 4, 4, 4]), 1)
    """

    cls_to_become = ConvTranspose3d
