"""Elements rounded, their fractions and their signs.

Rounding is flat almost everywhere: gradients are zeros, not absent. Integers come out as they went in.
"""

from __future__ import annotations

import numpy as np

from ...core import dtype as dtypes
from ...core.tensor import Tensor
from ..family.pointwise import INT_TO_FLOAT, pointwise
from ..system.calls import front
from ..system.operator import NOT_IMPLEMENTED
from ..system.scalars import is_complex, truth_out
from .arithmetic import zeros_like


# ---- rounding
def _check_real(name: str):
    def check(self) -> None:
        if self.dtype.is_complex:
            raise NotImplementedError(f"{name} is not supported for complex inputs")

    return check


def _to_integer(name: str, ufunc: str, *aliases: str, check=None):
    """Rounding to an integer in some direction."""
    return pointwise(
        f"{name}(Tensor self) -> Tensor",
        numbers=(),
        check=check or _check_real(name),
        supports="real_number",
        kernel_name=f"{name}_vml_cpu",
        ufunc=ufunc,
        direct="real_float",
        kernel=lambda xp, x: getattr(xp, ufunc)(x) if x.dtype.kind == "f" else x.copy(),
        inplace="function",
        aliases=aliases,
        vjp=lambda g: zeros_like(g),
        zero="kept",
    )


ceil = _to_integer("ceil", "ceil")
floor = _to_integer("floor", "floor")
trunc = _to_integer("trunc", "trunc", "fix")

round_ = pointwise(
    "round(Tensor self) -> Tensor",
    numbers=(),
    supports="real_number",
    kernel_name="round_vml_cpu",
    ufunc="rint",
    direct="real_float",
    kernel=lambda xp, x: xp.rint(x) if x.dtype.kind == "f" else x.copy(),
    function=False,
    method=False,
    inplace="hidden",
    vjp=lambda g: zeros_like(g),
    zero="kept",
)


def _round_decimals(xp, x, decimals):
    if decimals == 0:
        return xp.rint(x)
    scale = x.dtype.type(10.0 ** abs(decimals))
    return xp.rint(x * scale) / scale if decimals > 0 else xp.rint(x / scale) * scale


round_decimals = pointwise(
    "round.decimals(Tensor self, *, int decimals) -> Tensor",
    numbers=(),
    supports="real_float",
    kernel_name=lambda self, decimals: "round_cpu" if decimals else "round_vml_cpu",
    kernel=_round_decimals,
    function=False,
    method=False,
    inplace="hidden",
    number=1,
    vjp=lambda g: zeros_like(g),
    zero="kept",
)


@front("torch.round", "Tensor.round", past=("round.decimals",))
def rounded(input: Tensor, *, decimals: int | None = None, out: Tensor | None = None) -> Tensor:
    """The nearest integer, halves to even; or the nearest number of so many decimals."""
    if decimals is None:
        return round_.function(input, out=out)
    return round_decimals.function(input, decimals=decimals, out=out)


@front("torch.round_", "Tensor.round_")
def rounded_(input: Tensor, *, decimals: int | None = None) -> Tensor:
    """`round` in place."""
    if decimals is None:
        return round_.inplace_function(input)
    return round_decimals.inplace_function(input, decimals=decimals)


frac = pointwise(
    "frac(Tensor self) -> Tensor",
    numbers=(),
    supports="real_float",
    kernel=lambda xp, x: x - xp.trunc(x),
    inplace="function",
    vjp=lambda g: g,
    zero="kept",
)


# ---- signs
def _check_sign(self) -> None:
    if self.dtype.is_complex:
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )


def _sign(xp, x):
    """-1, 0 or 1; NaN has no sign."""
    if x.dtype.kind == "b":
        return x.copy()
    if x.dtype.kind in "iu" and xp is np:
        return np.sign(x)
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


def _sgn(xp, x):
    if x.dtype.kind != "c":
        return _sign(xp, x)
    size = xp.abs(x)
    return xp.where(size == 0, 0, x / xp.where(size == 0, 1, size)).astype(x.dtype)


sign = pointwise(
    "sign(Tensor self) -> Tensor", numbers=(), check=_check_sign, kernel=_sign, vjp=lambda g: zeros_like(g), zero="kept"
)


def _sgn_rule(g, self, out):
    """Only the part of the gradient across the direction of `self` counts: its length has no say."""
    if not self.dtype.is_complex:
        return zeros_like(g)
    across = (g - out * (g * out.conj()).real) / self.abs()
    return across.masked_fill(self == 0, 0)


sgn = pointwise(
    "sgn(Tensor self) -> Tensor",
    numbers=(),
    kernel=_sgn,
    vjp=_sgn_rule,
    jvp={"self": lambda t, self, out: _sgn_rule(t, self, out)},
    zero="kept",  # the map is its own adjoint
)


def _check_signbit(self) -> None:
    if self.dtype.is_complex:
        raise NotImplementedError("signbit is not implemented for complex tensors.")


signbit = pointwise(
    "signbit(Tensor self) -> Tensor",
    numbers=(),
    check=_check_signbit,
    kernel=lambda xp, x: xp.signbit(x) if x.dtype.kind == "f" else x < 0,
    result=dtypes.bool,
    inplace=False,
    zero="kept",
    check_out=truth_out("signbit"),
)


def _copysign_rule(g, self, out):
    ratio = out / self
    return g * ratio.masked_fill(self == 0, 0)


copysign_scalar = pointwise(
    "copysign.Scalar(Tensor self, Scalar other) -> Tensor",
    numbers=(),
    promote=INT_TO_FLOAT,
    operands=("self", "other"),
    supports="real_float",
    kernel=lambda xp, x, y: xp.copysign(x, y),
    function=False,
    method=False,
    inplace="hidden",
    number=1,
    vjp=_copysign_rule,
)

copysign = pointwise(
    "copysign.Tensor(Tensor self, Tensor other) -> Tensor",
    promote=INT_TO_FLOAT,
    numbers=("other",),
    supports="real_float",
    ufunc="copysign",
    direct="real_float",
    overloads={"other": copysign_scalar},
    vjp={"self": _copysign_rule, "other": lambda g: zeros_like(g)},
)


def _nextafter(xp, x, y):
    """The neighbour towards y: y itself where it is equal, with its sign, which NumPy's loop for half precision forgets."""
    near = xp.nextafter(x, y)
    return xp.where(x == y, y, near) if near.dtype == xp.float16 else near


nextafter = pointwise(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    numbers=(),
    supports="real_float",
    kernel=_nextafter,
    native=True,  # neighbours are those of the dtype itself
    vjp={
        "self": lambda g, self, other: g.masked_fill(self == other, 0),
        "other": lambda g: zeros_like(g),
    },
)


# ---- steps
def _check_heaviside(self, values) -> None:
    if is_complex(self) or is_complex(values):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if self.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


heaviside = pointwise(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    numbers=(),
    check=_check_heaviside,
    kernel=lambda xp, x, values: xp.where(x == 0, values, (x > 0).astype(x.dtype)),
    vjp={"self": NOT_IMPLEMENTED, "values": NOT_IMPLEMENTED},
)
