"""Complex numbers: conjugates, angles, and numbers made of parts.

`conj()` of a complex tensor is a view of the same memory with one bit set; whatever computes with it conjugates first
(see `dispatch.resolve_bits`). `_neg_view` is the like for negation: the imaginary part of a conjugate view is one.
`resolve_conj` and `resolve_neg` carry the bit out; `conj_physical` conjugates at once.
"""

from __future__ import annotations

import math

from ...core.dtype import dtype
from ...core.tensor import CONJ, NEG, Tensor, stride_of, view_of
from ..family.base import composite
from ..family.pointwise import INT_TO_FLOAT, pointwise
from ..family.view import ViewDeclaration, ViewFamily
from ..lowering import NotLowerable, of_complex
from ..shape import view_inverses
from ..system.calls import export_operator, front
from ..system.operator import LINEAR, Operator, Spec
from .arithmetic import zeros_like


class LazyBit(ViewFamily):
    """Views of the same elements with one bit of their meaning turned over."""

    declares = ViewDeclaration
    retypes = True

    def __init__(self, bit: int):
        self.bit = bit

    def execute(self, op: Operator, args: tuple) -> Tensor:
        t = args[0]
        out = view_of(t, t._array, t.dtype, t._offset)
        out._keys ^= self.bit
        return out

    run_meta = execute

    def meta(self, op: Operator, args: tuple) -> Spec:
        return Spec(args[0]._array.shape, args[0].dtype, stride_of(args[0]))


def _carried_out(function: str):
    """The lowering rule of a lazy view: in a graph its bit is carried out, unless the view itself is what comes out."""

    @of_complex
    def lower(b, x):
        if b.escapes:
            return NotLowerable("a lazy view that comes out of the graph")
        return b.fill(b.blank(x.shape, x.dtype), getattr(b.o, function)(b.element(x)))

    return lower


def _lazy(schema: str, bit: int, vjp, inverse) -> Operator:
    op = Operator(
        schema,
        LazyBit(bit),
        lower=_carried_out("conjugate" if bit == CONJ else "negative"),
        vjp=vjp,
        inverse=inverse,
        vmap=lambda args, dims, size: (op(args[0]), dims[0]),
    )
    return export_operator(op)


conj_view = _lazy("_conj(Tensor(a) self) -> Tensor(a)", CONJ, lambda g: g.conj(), view_inverses.conjugated)
neg_view = _lazy("_neg_view(Tensor(a) self) -> Tensor(a)", NEG, lambda g: -g, view_inverses.negated)


@composite("conj(Tensor(a) self) -> Tensor(a)", out=False)
def conj(self):
    return conj_view(self) if self.dtype.is_complex else self


@composite("resolve_conj(Tensor(a) self) -> Tensor(a)", out=False)
def resolve_conj(self):
    return self.clone() if self.is_conj() else self


@composite("resolve_neg(Tensor(a) self) -> Tensor(a)", out=False)
def resolve_neg(self):
    return self.clone() if self.is_neg() else self


conjugate = pointwise(
    "_conj_physical(Tensor self) -> Tensor",
    ufunc="conjugate",
    direct="number",
    kernel=lambda xp, x: xp.conjugate(x) if x.dtype.kind == "c" else x.copy(),
    function=False,
    method=False,
    inplace="hidden",
    inplace_node="ConjPhysicalBackward1",
    jvp=LINEAR,
    vjp=lambda g: g.conj_physical(),
    zero="linear",
)


@composite("conj_physical(Tensor self) -> Tensor")
def conj_physical(self):
    return conjugate(self) if self.dtype.is_complex else self


@front("torch.conj_physical_", "Tensor.conj_physical_")
def conj_physical_(input: Tensor) -> Tensor:
    """Conjugate in place."""
    return conjugate.inplace_function(input)


def set_conj(t: Tensor, value: bool) -> None:
    """Say that the memory of a complex tensor holds the conjugates of its numbers, or that it does not."""
    if value and not t.dtype.is_complex:
        raise RuntimeError(f"_set_conj(): only complex tensors have conjugates, got one of dtype {t.dtype}")
    t._keys = t._keys | CONJ if value else t._keys & ~CONJ


def set_neg(t: Tensor, value: bool) -> None:
    """Say that the memory of a tensor holds the negatives of its numbers, or that it does not."""
    t._keys = t._keys | NEG if value else t._keys & ~NEG


# ---- angles
def _angle(xp, x):
    if x.dtype.kind == "c":
        return xp.arctan2(x.imag, x.real)
    return xp.where(xp.isnan(x), x, xp.where(x < 0, xp.asarray(xp.pi, dtype=x.dtype), xp.asarray(0, dtype=x.dtype)))


def _angle_rule(g, self):
    if not self.dtype.is_complex:
        return zeros_like(g)  # whatever the gradient is: not NaN where it is one
    turn = (
        self / self.abs().square().masked_fill(self == 0, math.inf) * 1j
    )  # none at zero, whatever is pushed or pulled
    return g * turn


angle = pointwise(
    "angle(Tensor self) -> Tensor",
    promote=INT_TO_FLOAT,
    numbers=(),
    kernel=_angle,
    result=lambda d: d.to_real(),
    inplace=False,
    vjp=_angle_rule,
    zero="kept",
)


# ---- numbers of two parts
_PARTS = ("Half", "Float", "Double")


def _check_parts(name: str):
    def check(first, second) -> None:
        ours, theirs = first.dtype.scalar_name, second.dtype.scalar_name
        if ours not in _PARTS or theirs not in _PARTS:
            raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {ours} and {theirs}")
        if ours != theirs:
            raise RuntimeError(
                f"Expected object of scalar type {ours} but got scalar type {theirs} for second argument"
            )
        if ours == "Half" and name == "polar":
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Half'")

    return check


def _of_parts(xp, real, imag):
    """Real and imaginary parts side by side; a sum with 1j would spoil infinities."""
    real, imag = xp.broadcast_arrays(real, imag)
    out = xp.empty(real.shape, xp.result_type(real.dtype, xp.complex64))
    out.real, out.imag = real, imag
    return out


def _to_complex(d: dtype) -> dtype:
    return d.to_complex()


complex_ = pointwise(
    "complex(Tensor real, Tensor imag) -> Tensor",
    numbers=(),
    check=_check_parts("complex"),
    kernel=_of_parts,
    lower=lambda o, real, imag: o.complex(real, imag),
    result=_to_complex,
    method=False,
    inplace=False,
    vjp={"real": lambda g: g.real, "imag": lambda g: g.imag},
    jvp={
        "real": lambda t, out: complex_(t, zeros_like(t)).expand(out.shape),
        "imag": lambda t, out: complex_(zeros_like(t), t).expand(out.shape),
    },
)

polar = pointwise(
    "polar(Tensor abs, Tensor angle) -> Tensor",
    numbers=(),
    check=_check_parts("polar"),
    kernel=lambda xp, size, angle: _of_parts(xp, size * xp.cos(angle), size * xp.sin(angle)),
    lower=lambda o, size, angle: o.complex(size * o.cos(angle), size * o.sin(angle)),
    result=_to_complex,
    method=False,
    inplace=False,
    vjp={
        "abs": lambda g, angle: g.real * angle.cos() + g.imag * angle.sin(),
        "angle": lambda g, out: g.imag * out.real - g.real * out.imag,
    },
    jvp={"abs": lambda t, angle: polar(t, angle), "angle": lambda t, out: t * (out * 1j)},
    autocast_cpu="float32",
)
