"""`torch.signal.windows`: window functions, symmetric by default.

In: the number of points, `sym` (False: periodic, for spectral analysis), the window's parameters, factory options.
Out: a float32 or float64 tensor of that many points.
Always: no point is empty, one point is one. They are composed of factories and element-wise operators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from ...core import device as devices
from ...core import dtype as dtypes
from ...core.modes import ambient
from ...core.tensor import Tensor
from ..system.calls import front
from ..system.operator import exports

BLACKMAN = (0.42, 0.5, 0.08)
NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)


def _checked(name: str, M: int, dtype: Any, layout: Any) -> Any:
    """The dtype, once the arguments that all windows share are found good."""
    dtype = ambient.default_dtype if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not devices.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def window(formula: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Export a window from `formula(line, M, span, **parameters)`.

    `line(start, step)` gives M evenly spaced points; `span` is the number of steps in one period: M - 1, or M for a
    periodic window.
    """
    name = formula.__name__

    @front(f"signal.windows.{name}")
    def made(M, *, sym=True, dtype=None, layout=devices.strided, device=None, requires_grad=False, **parameters):  # type: ignore[no-untyped-def]
        dtype = _checked(name, M, dtype, layout)
        torch = exports["torch"]
        options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
        if M < 2:
            return torch["ones"]((M,), **options)

        def line(start: float, step: float) -> Tensor:
            return torch["linspace"](start, start + (M - 1) * step, M, **options)

        return formula(line, M, M - 1 if sym else M, **parameters)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = formula.__doc__
    return made


@window
def exponential(line: Any, M: int, span: int, *, center: float | None = None, tau: float = 1.0) -> Tensor:
    """Decay to both sides of the center."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if center is not None and span == M - 1:
        raise ValueError("Center must be None for symmetric windows")
    middle = span / 2 if center is None else center
    return (-line(-middle / tau, 1 / tau).abs()).exp()


@window
def cosine(line: Any, M: int, span: int) -> Tensor:
    """Half a period of a sine, sampled between its zeros."""
    step = math.pi / (span + 1)
    return line(0.5 * step, step).sin()


@window
def gaussian(line: Any, M: int, span: int, *, std: float = 1.0) -> Tensor:
    """A bell of that standard deviation, in points."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    step = 1 / (std * math.sqrt(2))
    return (-(line(-span / 2 * step, step) ** 2)).exp()


@window
def kaiser(line: Any, M: int, span: int, *, beta: float = 12.0) -> Tensor:
    """The window of the modified Bessel function."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    k = line(-beta, 2.0 * beta / span)
    middle = k.new_tensor(float(beta)).i0()
    return (beta * beta - k * k).clamp(min=0).sqrt().i0() / middle


@window
def bartlett(line: Any, M: int, span: int) -> Tensor:
    """A triangle from zero to one and back."""
    return 1 - line(-1.0, 2 / span).abs()


@window
def general_cosine(line: Any, M: int, span: int, *, a: Iterable[float]) -> Tensor:
    """a0 - a1 cos(x) + a2 cos(2x) - ..."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    coefficients = list(a)
    if not coefficients:
        raise ValueError("Coefficients cannot be empty")
    turn = line(0.0, 2 * math.pi / span)
    terms = [(turn * i).cos() * ((-1) ** i * c) for i, c in enumerate(coefficients)]
    return sum(terms[1:], terms[0])


def _cosines(name: str, coefficients: Callable[..., Iterable[float]], checked: bool = False) -> None:
    """A window that is a sum of cosines with coefficients of its own; `checked` speaks of errors in its own name."""

    @front(f"signal.windows.{name}")
    def made(M, *, sym=True, dtype=None, layout=devices.strided, device=None, requires_grad=False, **parameters):  # type: ignore[no-untyped-def]
        if checked:
            _checked(name, M, dtype, layout)
        options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
        return general_cosine(M, a=coefficients(**parameters), sym=sym, **options)

    made.__name__ = made.__qualname__ = name


_cosines("hann", lambda: (0.5, 0.5))
_cosines("hamming", lambda: (0.54, 0.46))
_cosines("general_hamming", lambda alpha=0.54: (alpha, 1.0 - alpha))
_cosines("blackman", lambda: BLACKMAN, checked=True)
_cosines("nuttall", lambda: NUTTALL)
