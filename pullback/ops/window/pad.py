"""Padding operators: constant, reflection and replication in one to three dimensions, circular, and `pad` over them.

Comes in: a tensor and amounts, two per axis, last axis first: (left, right, top, bottom, ...). Goes out: the padded
tensor; negative amounts crop. Always holds: a padding that copies entries has its transpose as its backward, and each
is the other's derivative.
"""

from __future__ import annotations

from typing import Any

from ...core.device import contiguous_format
from ...core.dtype import INT, by_numpy
from ...core.symbolic import holds, likely, sym_min
from ...core.tensor import Tensor, stride_of
from ..elementwise.array_kernels import number
from ..family.base import composite, operator
from ..family.formats import like, like_first, ordered_strides
from ..lowering import NotLowerable, overflow
from ..shape.shape_lowering import filled_within
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import Operator, Spec, exports
from ..system.scalars import check_fits, exact_out
from .batching import fold_batch
from .kernels import pad as kernels
from .words import NUMBERS, listed, require

_SUPPORTED = """Supported combinations for non-constant padding:
  - 2D or 3D input: padding size = 2 (pads last dimension)
  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)
  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"""


def _low_high(pad: tuple) -> tuple[tuple, tuple]:
    """Amounts before and after, in the order of axes."""
    return pad[-2::-2], pad[::-2]


# ---- constant
def _check_amounts(shape: tuple, pad: tuple) -> None:
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * len(shape):
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)}while the input has {len(shape)}dimensions."
        )


def _constant_shape(shape: tuple, pad: tuple) -> tuple:
    _check_amounts(shape, pad)
    low, high = _low_high(pad)
    lead = len(shape) - len(low)
    for n, a, b in zip(shape[lead:], low, high):
        if not (holds(n + sym_min(a, 0) >= 0) and holds(n + sym_min(a, 0) + sym_min(b, 0) >= 0)):
            raise RuntimeError("narrow(): length must be non-negative.")
    return (*shape[:lead], *(n + a + b for n, a, b in zip(shape[lead:], low, high)))


def _constant(xp, x, pad, value):
    _constant_shape(x.shape, pad)
    low, high = _low_high(pad)
    return kernels.constant_pad(xp, x, low, high, _as_entry(xp, x, value))


def _constant_meta(self: Tensor, pad: tuple, value) -> Spec:
    check_fits(value, self.dtype)
    return Spec(_constant_shape(self.shape, pad), self.dtype)


def _constant_strides(shape: tuple, self: Tensor, pad: tuple, value) -> tuple | None:
    """Channels-last as the tensor is; where nothing is added, a copy of a part, in its own order."""
    added = any(
        p > 0 if p.__class__ is int else likely(p > 0, otherwise=True) for p in pad if p.__class__ is not int or p
    )
    return like_first(shape, self) if added else ordered_strides(shape, stride_of(self))


def _as_entry(xp: Any, x: Any, value: Any) -> Any:
    """The fill as an entry of x: a fraction or a truth value must not surprise an integer array."""
    check_fits(value, by_numpy[x.dtype])
    return number(xp, value, x)[()] if x.dtype.kind in "biu" else value


def _constant_vmap(args: tuple, dims: tuple, size: int) -> tuple:
    return dispatch(constant_pad_nd, (args[0].movedim(dims[0], 0), *args[1:])), 0


def _lower_constant(b, x, pad, value):
    out = b.result()
    if any(p < 0 for p in pad):
        return NotLowerable("a negative pad")
    refused = overflow(value, out.dtype)
    if refused is not None:
        return refused
    window = out
    for k in range(len(pad) // 2):
        dim = len(out.shape) - 1 - k
        window = window.narrow(dim, pad[2 * k], x.shape[dim])
    return filled_within(b, out, window, x, value)


constant_pad_nd = operator(
    "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
    lower=_lower_constant,
    kernel=_constant,
    strides=_constant_strides,
    meta=_constant_meta,
    vjp={"self": lambda g, pad: dispatch(constant_pad_nd, (g, tuple(-p for p in pad), 0))},
    jvp={"self": lambda t, pad: dispatch(constant_pad_nd, (t, pad, 0))},
    vmap=_constant_vmap,
    method=False,
    out=False,
    cost="cheap",
)


# ---- copies of the tensor's own entries
def _padded_shape(name: str, spatial: int, shape: tuple, pad: tuple, reflects: bool) -> tuple:
    if len(pad) != 2 * spatial:
        raise RuntimeError(f"padding size is expected to be {2 * spatial}, but got: {len(pad)}")
    if len(shape) not in (spatial + 1, spatial + 2) or any(n == 0 for n in shape[len(shape) - spatial - 1 :]):
        raise RuntimeError(
            f"Expected {spatial + 1}D or {spatial + 2}D (batch mode) tensor with possibly 0 batch size and other "
            f"non-zero dimensions for input, but got: {listed(shape)}"
        )
    low, high = _low_high(pad)
    size = shape[-spatial:]
    if reflects:
        _check_reflection(shape, spatial, low, high)
    out = tuple(n + a + b for n, a, b in zip(size, low, high))
    if any(o < 1 for o in out):
        letters = ("D", "H", "W")[-spatial:]
        before, after = (" ".join(f"{a}: {n}" for a, n in zip(letters, s)) for s in (size, out))
        raise RuntimeError(f"input ({before}) is too small. Calculated output {after}")
    return (*shape[:-spatial], *out)


def _check_reflection(shape: tuple, spatial: int, low: tuple, high: tuple) -> None:
    """A reflection must not leave the axis on its other side. Last axis first, as PyTorch counts its arguments."""
    for i in range(spatial):
        axis = len(shape) - 1 - i
        a, b = low[spatial - 1 - i], high[spatial - 1 - i]
        if a >= shape[axis] or b >= shape[axis]:
            raise RuntimeError(
                f"Argument #{4 + 2 * i}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({a}, {b}) at dimension {axis} of input {listed(shape)}"
            )


def _declare(kind: str, mode: str, spatial: int) -> tuple[Operator, Operator]:
    name = f"{kind}_pad{spatial}d"
    reflects = mode == "reflect"

    def kernel(xp, x, pad):
        _padded_shape(name, spatial, x.shape, pad, reflects)
        require(name, x.dtype, *NUMBERS)
        return kernels.index_pad(xp, x, *_low_high(pad), mode)

    def meta(self, pad):
        return Spec(_padded_shape(name, spatial, self.shape, pad, reflects), self.dtype)

    forward = operator(
        f"{name}(Tensor self, SymInt[{2 * spatial}] padding) -> Tensor",
        kernel=kernel,
        strides=like(0, 4, 5),
        meta=meta,
        vjp={"self": lambda g, self, padding: dispatch(backward, (g, self, padding))},
        jvp={"self": lambda t, padding: dispatch(forward, (t, padding))},
        vmap=fold_batch(lambda: forward, spatial),
        check_out=exact_out,
        function=False,
        method=False,
        autocast_cpu=None if reflects and spatial == 3 else "float32",
    )
    backward = operator(
        f"{name}_backward(Tensor grad_output, Tensor self, SymInt[{2 * spatial}] padding) -> Tensor",
        strides=like(1),
        kernel=lambda xp, g, x, pad: kernels.index_pad_backward(xp, g, x.shape[-spatial:], *_low_high(pad), mode),
        meta=lambda grad_output, self, pad: Spec(self.shape, grad_output.dtype),
        vjp={"grad_output": lambda g, padding: dispatch(forward, (g, padding))},
        vmap=fold_batch(lambda: backward, spatial),
        function=False,
        method=False,
    )
    return forward, backward


REFLECTION = {n: _declare("reflection", "reflect", n)[0] for n in (1, 2, 3)}
REPLICATION = {n: _declare("replication", "replicate", n)[0] for n in (1, 2, 3)}


@composite("_pad_circular(Tensor self, SymInt[] pad) -> Tensor", function=False, method=False)
def _pad_circular(self: Tensor, pad: tuple) -> Tensor:
    """Around the circle: per axis, what lies at one end is joined to the other."""
    low, high = _low_high(pad)
    lead = self.ndim - len(low)
    out = self
    for axis, (a, b) in enumerate(zip(low, high), lead):
        n = self.shape[axis]
        if a > n or b > n:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if n + a + b < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        first, length = max(-a, 0), n + min(a, 0) + min(b, 0)
        core = out if length == n else out.narrow(axis, first, length)
        parts = [core.narrow(axis, length - a, a)] if a > 0 else []
        parts.append(core)
        parts += [core.narrow(axis, 0, b)] if b > 0 else []
        out = core if len(parts) == 1 else _cat(parts, axis)
    if all(a <= 0 and b <= 0 for a, b in zip(low, high)):
        return out.clone(memory_format=contiguous_format)
    return out.contiguous()  # joined in new memory, which may be in the order of the tensor


def _cat(parts: list, axis: int) -> Tensor:
    return exports["torch"]["cat"](parts, axis)


# ---- one function over all
_PAD = 'pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor'


@composite(_PAD, function=False, method=False)
def pad_op(self: Tensor, pad: tuple, mode: str, value) -> Tensor:
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * self.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {self.ndim}"
        )
    if mode == "constant":
        if value and self.dtype.category == INT and not self.dtype.is_signed:
            check_fits(float(value), self.dtype)  # a float, which does not wrap
        return dispatch(constant_pad_nd, (self, pad, 0 if value is None else value))
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    spatial = len(pad) // 2
    if spatial not in (1, 2, 3) or self.ndim not in (spatial + 1, spatial + 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {self.ndim}D input tensor.\n{_SUPPORTED}"
        )
    if mode == "circular":
        return _pad_circular.body(self, pad)
    return dispatch((REFLECTION if mode == "reflect" else REPLICATION)[spatial], (self, pad))


@front("nn.functional.pad")
def pad(input: Tensor, pad, mode: str = "constant", value: float | None = None) -> Tensor:
    """`input` with entries added around its last axes: (left, right, top, bottom, ...)."""
    return pad_op(input, pad, mode, value)
