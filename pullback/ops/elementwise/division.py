"""Division of elements: true, rounded toward zero or down, and what it leaves.

Integers divided by an integer zero raise, as no integer stands for the result; floats give infinities and NaNs.
"""

from __future__ import annotations

import numpy as np

from ...core.elements import table, use_threads
from ...core.tensor import Tensor
from ..eager.elementwise import KernelCase
from ..family.pointwise import INT_TO_FLOAT, PROMOTE, pointwise
from ..system.calls import UNSET, front
from ..system.operator import NOT_IMPLEMENTED
from .arithmetic import conj, zeros_like

true_div = pointwise(
    "div.Tensor(Tensor self, Tensor other) -> Tensor",
    promote=INT_TO_FLOAT,
    ufunc="true_divide",
    wide=("other",),
    public="torch.true_divide",
    vjp={
        "self": lambda g, other: g / conj(other),
        "other": lambda g, self, other: -g * conj((self / other) / other),
    },
)


# ---- rounded division
def _nonzero(xp, x, y):
    """The divisors, once none of them is an integer zero."""
    if x.dtype.kind in "iu" and not xp.all(y):
        raise RuntimeError("ZeroDivisionError")
    return y


def _truncated(xp, x, y):
    if x.dtype.kind not in "iu":
        return xp.trunc(x / y)
    quotient = xp.floor_divide(x, _nonzero(xp, x, y))
    short = (x - quotient * y != 0) & ((x < 0) != (y < 0))
    return quotient + short.astype(x.dtype)


def _divide(xp, x, y, rounding_mode):
    if rounding_mode is None:
        return xp.true_divide(x, y)
    if rounding_mode == "trunc":
        return _truncated(xp, x, y)
    return xp.floor_divide(x, _nonzero(xp, x, y))


def _check_mode(self, other, rounding_mode) -> None:
    if rounding_mode not in (None, "trunc", "floor"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )


def _unsupported(self, other, rounding_mode) -> str:
    return "div_cpu" if rounding_mode is None else f"div_{rounding_mode}_cpu"


def _div_self(g, other, rounding_mode):
    return g / conj(other) if rounding_mode is None else zeros_like(g)


def _div_other(g, self, other, rounding_mode):
    return -g * conj((self / other) / other) if rounding_mode is None else zeros_like(g)


div_mode = pointwise(
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    promote=lambda self, other, rounding_mode: INT_TO_FLOAT if rounding_mode is None else PROMOTE,
    check=_check_mode,
    supports=lambda self, other, rounding_mode: "all" if rounding_mode is None else "real_number",
    kernel_name=_unsupported,
    kernel=_divide,
    wide=("other",),
    function=False,
    method=False,
    inplace="hidden",
    number=2,
    vjp={"self": _div_self, "other": _div_other},
)


@front("torch.div", "torch.divide", "Tensor.div", "Tensor.divide")
def div(input: Tensor, other, *, rounding_mode: str | None = UNSET, out: Tensor | None = None) -> Tensor:
    """`input / other`, rounded toward zero ("trunc"), down ("floor"), or not at all; a mode that is given is recorded."""
    if rounding_mode is UNSET:
        return true_div.function(input, other, out=out)
    return div_mode.function(input, other, rounding_mode=rounding_mode, out=out)


@front("Tensor.div_", "Tensor.divide_")
def div_(input: Tensor, other, *, rounding_mode: str | None = UNSET) -> Tensor:
    """`input /= other`, rounded as asked."""
    if rounding_mode is UNSET:
        return true_div.inplace_function(input, other)
    return div_mode.inplace_function(input, other, rounding_mode=rounding_mode)


floor_divide = pointwise(
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    supports="real_number",
    kernel_name="div_floor_cpu",
    ufunc="floor_divide",
    wide=("other",),
    direct="real_float",
    kernel=lambda xp, x, y: xp.floor_divide(x, _nonzero(xp, x, y)),
    vjp={"self": NOT_IMPLEMENTED, "other": NOT_IMPLEMENTED},
)


# ---- remainders
def _family(name: str, ufunc: str, mode: str):
    """An operator of remainders, and the overload that takes a Python number for its divisor."""
    loop = table.get(f"{name}.Tensor", {}).get(())

    def divided(xp, x, y):
        if loop is not None and xp is np and getattr(x, "dtype", None) == getattr(y, "dtype", None) == np.float32:
            use_threads()
            return loop(x, y)  # type: ignore[operator]
        return getattr(xp, ufunc)(x, _nonzero(xp, x, y))

    shared = dict(
        supports="real_number",
        kernel_name=f"{name}_cpu",
        kernel=divided,
    )
    scalar = pointwise(
        f"{name}.Scalar(Tensor self, Scalar other) -> Tensor",
        numbers=(),
        operands=("self", "other"),
        function=False,
        method=False,
        inplace="hidden",
        plain=KernelCase(),
        vjp=lambda g: g,
        **shared,
    )
    overloads = {"other": scalar}
    if name == "remainder":
        overloads["self"] = pointwise(
            "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
            numbers=(),
            operands=("self", "other"),
            function=False,
            method=False,
            inplace=False,
            vjp={"other": NOT_IMPLEMENTED},
            **shared,
        )
    return pointwise(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        overloads=overloads,
        ufunc=ufunc,
        direct="real_float",
        number=1,
        vjp={
            "self": lambda g: g,
            "other": lambda g, self, other: -g * div_mode(self, other, rounding_mode=mode),
        },
        **shared,
    )


remainder = _family("remainder", "remainder", "floor")
fmod = _family("fmod", "fmod", "trunc")
