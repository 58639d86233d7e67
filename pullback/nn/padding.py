"""Padding: values around the last dimensions, constant, reflected, repeated from the edge or taken from the other "
"side."""

from __future__ import annotations

from ..core.tensor import Tensor
from . import functional as F
from .module import Module


class _Pad(Module):
    """Padding is kept as `F.pad` takes it: both ends of each dimension, the last dimension first."""

    __constants__ = ["padding"]
    dims = 0
    mode = ""

    def __init__(self, padding) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.dims) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    __constants__ = ["padding", "value"]

    def __init__(self, padding, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _CircularPad(_Pad):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (self.dims + 1, self.dims + 2):
            raise ValueError(f"expected {self.dims + 1}D or {self.dims + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class ConstantPad1d(_ConstantPad):
    """A value around (N, C, L).

    >>> torch.nn.ConstantPad1d(1, 9.0)(torch.tensor([[[1.0, 2.0]]]))
    tensor([[[9., 1., 2., 9.]]])
    """

    dims = 1


class ConstantPad2d(_ConstantPad):
    """A value around (N, C, H, W).

    >>> torch.nn.ConstantPad2d(1, 9.0)(torch.ones(1, 1, 2, 2)).shape
    torch.Size([1, 1, 4, 4])
    """

    dims = 2


class ConstantPad3d(_ConstantPad):
    """A value around (N, C, D, H, W).

    >>> torch.nn.ConstantPad3d(1, 9.0)(torch.ones(1, 1, 2, 2, 2)).shape
    torch.Size([1, 1, 4, 4, 4])
    """

    dims = 3


class ReflectionPad1d(_Pad):
    """Reflections around (N, C, L).

    >>> torch.nn.ReflectionPad1d(1)(torch.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[2., 1., 2., 3., 2.]]])
    """

    dims = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """Reflections around (N, C, H, W).

    >>> torch.nn.ReflectionPad2d(1)(torch.ones(1, 1, 2, 2)).shape
    torch.Size([1, 1, 4, 4])
    """

    dims = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """Reflections around (N, C, D, H, W).

    >>> torch.nn.ReflectionPad3d(1)(torch.ones(1, 1, 2, 2, 2)).shape
    torch.Size([1, 1, 4, 4, 4])
    """

    dims = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """Edges repeated around (N, C, L).

    >>> torch.nn.ReplicationPad1d(1)(torch.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    dims = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """Edges repeated around (N, C, H, W).

    >>> torch.nn.ReplicationPad2d(1)(torch.ones(1, 1, 2, 2)).shape
    torch.Size([1, 1, 4, 4])
    """

    dims = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """Edges repeated around (N, C, D, H, W).

    >>> torch.nn.ReplicationPad3d(1)(torch.ones(1, 1, 2, 2, 2)).shape
    torch.Size([1, 1, 4, 4, 4])
    """

    dims = 3
    mode = "replicate"


class CircularPad1d(_CircularPad):
    """The other side around (N, C, L).

    >>> torch.nn.CircularPad1d(1)(torch.tensor([[[1.0, 2.0]]]))
    tensor([[[2., 1., 2., 1.]]])
    """

    dims = 1


class CircularPad2d(_CircularPad):
    """The other side around (N, C, H, W).

    >>> torch.nn.CircularPad2d(1)(torch.ones(1, 1, 2, 2)).shape
    torch.Size([1, 1, 4, 4])
    """

    dims = 2


class CircularPad3d(_CircularPad):
    """The other side around (N, C, D, H, W).

    >>> torch.nn.CircularPad3d(1)(torch.ones(1, 1, 2, 2, 2)).shape
    torch.Size([1, 1, 4, 4, 4])
    """

    dims = 3


class ZeroPad1d(ConstantPad1d):
    """Zeros around (N, C, L).

    >>> torch.nn.ZeroPad1d(1)(torch.tensor([[[1.0, 2.0]]]))
    tensor([[[0., 1., 2., 0.]]])
    """

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Zeros around (N, C, H, W).

    >>> torch.nn.ZeroPad2d(1)(torch.ones(1, 1, 2, 2)).shape
    torch.Size([1, 1, 4, 4])
    """

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Zeros around (N, C, D, H, W).

    >>> torch.nn.ZeroPad3d(1)(torch.ones(1, 1, 2, 2, 2)).shape
    torch.Size([1, 1, 4, 4, 4])
    """

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"
