"""Pooling: maxima, averages and p-norms of windows; adaptive and fractional forms; and the inverse of max pooling."""

from __future__ import annotations

from ..core.tensor import Tensor
from . import functional as F
from .module import Module
from .sizes import pair, single, triple


class _MaxPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]
    dims = 0

    def __init__(
        self, kernel_size, stride=None, padding=0, dilation=1, return_indices: bool = False, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor):
        function = getattr(F, f"max_pool{self.dims}d")
        return function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """Maxima of windows of (N, C, L).

    >>> torch.nn.MaxPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 4.0]]))
    tensor([[3., 4.]])
    """

    dims = 1


class MaxPool2d(_MaxPoolNd):
    """Maxima of windows of (N, C, H, W).

    >>> torch.nn.MaxPool2d(2)(torch.arange(4.0).view(1, 1, 2, 2))
    tensor([[[[3.]]]])
    """

    dims = 2


class MaxPool3d(_MaxPoolNd):
    """Maxima of windows of (N, C, D, H, W).

    >>> torch.nn.MaxPool3d(2)(torch.ones(1, 2, 4, 4, 4)).shape
    torch.Size([1, 2, 2, 2, 2])
    """

    dims = 3


class _MaxUnpoolNd(Module):
    dims = 0
    size = staticmethod(single)

    def __init__(self, kernel_size, stride=None, padding=0) -> None:
        super().__init__()
        self.kernel_size = self.size(kernel_size)
        self.stride = self.size(stride if stride is not None else kernel_size)
        self.padding = self.size(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: list[int] | None = None) -> Tensor:
        function = getattr(F, f"max_unpool{self.dims}d")
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Maxima of (N, C, L) back in their places.

    >>> torch.nn.MaxUnpool1d(2)(torch.tensor([[3.0, 4.0]]), torch.tensor([[1, 3]]))
    tensor([[0., 3., 0., 4.]])
    """

    dims = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """Maxima of (N, C, H, W) back in their places.

    >>> torch.nn.MaxUnpool2d(2)(torch.ones(1, 1, 1, 1), torch.tensor([[[[3]]]]))
    tensor([[[[0., 0.],
              [0., 1.]]]])
    """

    dims = 2
    size = staticmethod(pair)


class MaxUnpool3d(_MaxUnpoolNd):
    """Maxima of (N, C, D, H, W) back in their places.

    >>> torch.nn.MaxUnpool3d(2)(torch.ones(1, 1, 1, 1, 1), torch.tensor([[[[[7]]]]])).shape
    torch.Size([1, 1, 2, 2, 2])
    """

    dims = 3
    size = staticmethod(triple)


class _AvgPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """Averages of windows of (N, C, L).

    >>> torch.nn.AvgPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 4.0]]))
    tensor([[2., 3.]])
    """

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True
    ) -> None:
        super().__init__()
        self.kernel_size = single(kernel_size)
        self.stride = single(stride if stride is not None else kernel_size)
        self.padding = single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(_AvgPoolNd):
    """Averages of windows of (N, C, H, W).

    >>> torch.nn.AvgPool2d(2)(torch.arange(4.0).view(1, 1, 2, 2))
    tensor([[[[1.5000]]]])
    """

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"]
    function = "avg_pool2d"

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        function = getattr(F, self.function)
        return function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool3d(AvgPool2d):
    """Averages of windows of (N, C, D, H, W).

    >>> torch.nn.AvgPool3d(2)(torch.ones(1, 2, 4, 4, 4)).shape
    torch.Size([1, 2, 2, 2, 2])
    """

    function = "avg_pool3d"

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        for name, value in (("padding", 0), ("ceil_mode", False), ("count_include_pad", True)):
            self.__dict__.setdefault(name, value)


class _FractionalMaxPool(Module):
    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    dims = 0
    size = staticmethod(pair)

    def __init__(
        self, kernel_size, output_size=None, output_ratio=None, return_indices: bool = False, _random_samples=None
    ) -> None:
        super().__init__()
        if (isinstance(kernel_size, int) and kernel_size <= 0) or (
            isinstance(kernel_size, (tuple, list)) and not all(k > 0 for k in kernel_size)
        ):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.kernel_size = self.size(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = self.size(output_size) if output_size is not None else None
        self.output_ratio = self.size(output_ratio) if output_ratio is not None else None
        kind = f"FractionalMaxPool{self.dims}d"
        if output_size is None and output_ratio is None:
            raise ValueError(f"{kind} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor):
        function = getattr(F, f"fractional_max_pool{self.dims}d")
        return function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """Maxima of windows at random places of (N, C, H, W).

    >>> torch.nn.FractionalMaxPool2d(2, output_size=2)(torch.ones(1, 1, 4, 4)).shape
    torch.Size([1, 1, 2, 2])
    """

    dims = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """Maxima of windows at random places of (N, C, D, H, W).

    >>> torch.nn.FractionalMaxPool3d(2, output_size=2)(torch.ones(1, 1, 4, 4, 4)).shape
    torch.Size([1, 1, 2, 2, 2])
    """

    dims = 3
    size = staticmethod(triple)


class _LPPoolNd(Module):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]
    dims = 0

    def __init__(self, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        function = getattr(F, f"lp_pool{self.dims}d")
        return function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        window = f"kernel_size={self.kernel_size}, stride={self.stride}"
        return f"norm_type={self.norm_type}, {window}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPoolNd):
    """p-norms of windows of (N, C, L).

    >>> torch.nn.LPPool1d(2, 2)(torch.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """

    dims = 1


class LPPool2d(_LPPoolNd):
    """p-norms of windows of (N, C, H, W).

    >>> torch.nn.LPPool2d(2, 2)(torch.ones(1, 1, 2, 2))
    tensor([[[[2.]]]])
    """

    dims = 2


class LPPool3d(_LPPoolNd):
    """p-norms of windows of (N, C, D, H, W).

    >>> torch.nn.LPPool3d(2, 2)(torch.ones(1, 1, 2, 2, 2)).shape
    torch.Size([1, 1, 1, 1, 1])
    """

    dims = 3


class _AdaptivePool(Module):
    __constants__ = ["output_size"]
    function = ""

    def __init__(self, output_size) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self.function)(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptivePool):
    """Averages that make any (N, C, L) a given length.

    >>> torch.nn.AdaptiveAvgPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 4.0]]))
    tensor([[2., 3.]])
    """

    function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptivePool):
    """Averages that make any (N, C, H, W) a given size.

    >>> torch.nn.AdaptiveAvgPool2d(1)(torch.arange(4.0).view(1, 1, 2, 2))
    tensor([[[[1.5000]]]])
    """

    function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptivePool):
    """Averages that make any (N, C, D, H, W) a given size.

    >>> torch.nn.AdaptiveAvgPool3d(1)(torch.ones(1, 2, 4, 4, 4)).shape
    torch.Size([1, 2, 1, 1, 1])
    """

    function = "adaptive_avg_pool3d"


class _AdaptiveMaxPool(_AdaptivePool):
    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor):
        return getattr(F, self.function)(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Maxima that make any (N, C, L) a given length.

    >>> torch.nn.AdaptiveMaxPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 4.0]]))
    tensor([[3., 4.]])
    """

    function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Maxima that make any (N, C, H, W) a given size.

    >>> torch.nn.AdaptiveMaxPool2d(1)(torch.arange(4.0).view(1, 1, 2, 2))
    tensor([[[[3.]]]])
    """

    function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Maxima that make any (N, C, D, H, W) a given size.

    >>> torch.nn.AdaptiveMaxPool3d(1)(torch.ones(1, 2, 4, 4, 4)).shape
    torch.Size([1, 2, 1, 1, 1])
    """

    function = "adaptive_max_pool3d"
