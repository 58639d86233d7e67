"""Random numbers inside networks: dropout in its forms, and Gumbel-softmax.

The mask of a dropout is drawn in the memory order of its input, as in PyTorch, so that the same seed drops the same
elements. Outside training a dropout draws nothing and returns its input.
"""

from __future__ import annotations

import math
import warnings

from ...core import arrays, modes
from ...core import dtype as dtypes
from ...core.modes import ambient
from ...core.random import default_generator, draw, generator_of
from ...core.random_streams import fill_bernoulli, fill_dropout
from ...core.storage import new_array
from ...core.tensor import CUDA, Tensor, wrap
from ..family.base import Family, composite
from ..make.factories import empty, zeros
from ..make.like import empty_like, like_strides, zeros_like
from ..make.random import SEEDED, bernoulli_all, exponential_op
from ..system.calls import front
from ..system.operator import Operator, Spec

ALPHA = 1.7580993408473766  # minus the limit of SELU far below zero
REALS = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16)
TRIALS = 2  # as `core/cuda_philox` counts distributions


# ---- dropout as PyTorch composes it
def _noise_spec(input: Tensor, feature: bool) -> tuple[tuple, tuple | None]:
    """Size and strides of the noise: one number for each element, or for each channel of each sample."""
    if not feature:
        return tuple(input.shape), like_strides(input, None)
    if input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return (*input.shape[:2], *(1 for _ in input.shape[2:])), None


def _noise(input: Tensor, p: float, feature: bool) -> Tensor:
    """Ones and zeros."""
    shape = None if not feature else _noise_spec(input, True)[0]
    room = empty_like(input) if shape is None else empty(shape, dtype=input.dtype, device=input.device)
    if ambient.mode & modes.TRANSFORM:  # examples may draw differently, though the room for one is the same
        return bernoulli_all(room, 1 - p)
    return room.bernoulli_(1 - p)


def _factors(input: Tensor, p: float, feature: bool) -> Tensor:
    """Zeros, and for what stays 1 / (1 - p). With nothing listening they are drawn and scaled in one step."""
    if not ambient.mode & ~modes.GRAD and input._keys == CUDA and input.dtype in REALS[:2] and not feature:
        array, real = arrays.empty_like(input._array), input.dtype.numpy.type
        if array.flags.c_contiguous:
            drawn = generator_of(input.device).fill(array, TRIALS, 1 - p, real(1) / real(1 - p))
            return wrap(drawn, input.dtype, input.device)
    if ambient.mode & ~modes.GRAD or input._keys or input.dtype not in REALS:
        return _noise(input, p, feature).div_(1 - p)
    shape, stride = _noise_spec(input, feature)
    return wrap(fill_dropout(default_generator, new_array(shape, input.dtype, stride), p), input.dtype)


def _drop(input: Tensor, p: float, train: bool, feature: bool = False, alpha: bool = False, inplace: bool = False):
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not train or not input.numel():
        return input
    multiply = input.mul_ if inplace else input.mul
    if p == 1:
        return multiply(zeros((), dtype=input.dtype, device=input.device))
    if not alpha:
        return multiply(_factors(input, p, feature))
    noise = _noise(input, p, feature)
    a = 1.0 / math.sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
    shift = noise.add(-1).mul_(ALPHA * a).add_(ALPHA * a * p)
    return multiply(noise.mul_(a)).add_(shift)


def _dropping(name: str, **kinds: bool) -> tuple[Operator, Operator]:
    """Declare a dropout and its in-place form."""

    def body(input, p, train):
        return _drop(input, p, train, **kinds)

    def body_inplace(input, p, train):
        return _drop(input, p, train, inplace=True, **kinds)

    options = {"method": False, "out": False, "tags": SEEDED}
    return (
        composite(f"{name}(Tensor input, float p, bool train) -> Tensor", **options)(body),
        composite(f"{name}_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", **options)(body_inplace),
    )


dropout_ops = _dropping("dropout")
feature_dropout_ops = _dropping("feature_dropout", feature=True)
alpha_dropout_ops = _dropping("alpha_dropout", alpha=True)
feature_alpha_dropout_ops = _dropping("feature_alpha_dropout", feature=True, alpha=True)


# ---- dropout as one operator
class _Masked(Family):
    """Results keep the memory order of their input."""

    def wrap_outputs(self, op: Operator, result, device):
        return tuple(wrap(m, dtypes.by_numpy[m.dtype], device) for m in result)


def _masked_specs(input, p, train) -> tuple[Spec, Spec]:
    stride = like_strides(input, None)
    return Spec(input._array.shape, input.dtype, stride), Spec(input._array.shape, dtypes.bool, stride)


def _masked(xp, input, p, train):
    mask, out = arrays.empty_like(input, bool), arrays.empty_like(input)
    if train is False:
        mask.fill(True)
        out[...] = input
        return out, mask
    draw(fill_bernoulli, None, mask, 1 - p)
    xp.multiply(input, mask.astype(input.dtype), out=out)
    out *= input.dtype.type(_scale(p))
    return out, mask


def _scale(p: float) -> float:
    """What is left grows by this, so that the mean stays."""
    return 1 / (1 - p) if p < 1 else 0.0


native_dropout_backward = composite(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor", method=False, out=False
)(lambda grad_output, mask, scale: grad_output * (mask.to(grad_output.dtype) * scale))
native_dropout = Operator(
    "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    _Masked(),
    kernel=_masked,
    meta=_masked_specs,
    vjp={"input": lambda g, out1, p, train: native_dropout_backward(g, out1, _scale(p) if train else 1.0)},
    nondifferentiable=(1,),
    named=False,
    tags=SEEDED,
)


@front("torch.native_dropout")
def _native_dropout(input, p, train):
    return native_dropout(input, p, train)


# ---- nn.functional
def _functional(name: str, ops: tuple[Operator, Operator], training_default: bool = True):
    """nn.functional's form of a dropout: checks, and a choice of the in-place form."""

    def apply(input, p=0.5, training=training_default, inplace=False) -> Tensor:
        check_probability(name, input, p)
        return ops[bool(inplace)](input, p, training)

    apply.__name__ = apply.__qualname__ = name
    return front(f"nn.functional.{name}")(apply)


def check_probability(name: str, input, p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")


dropout = _functional("dropout", dropout_ops)
alpha_dropout = _functional("alpha_dropout", alpha_dropout_ops, training_default=False)
feature_alpha_dropout = _functional("feature_alpha_dropout", feature_alpha_dropout_ops, training_default=False)


def _drop_channels(input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    if not batched:
        input = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    out = feature_dropout_ops[inplace](input, p, training)
    if batched:
        return out
    return out.squeeze_(0) if inplace else out.squeeze(0)


@front("nn.functional.dropout1d")
def dropout1d(input, p=0.5, training=True, inplace=False) -> Tensor:
    """Drop whole channels of (N, C, L) or (C, L)."""
    check_probability("dropout1d", input, p)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    return _drop_channels(input, p, training, inplace, input.ndim == 3)


def _warn_of_rank(name: str, rank: int, spatial: int) -> None:
    if rank not in (spatial + 1, spatial + 2):
        warnings.warn(
            f"{name}: Received a {rank}-D input to {name}, which is deprecated and will result in an error in a future "
            "release. To retain the behavior and silence this warning, please use dropout instead. Note that "
            f"{name} exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel "
            f"dimension, and an optional batch dimension (i.e. {spatial + 1}D or {spatial + 2}D inputs).",
            stacklevel=4,
        )


@front("nn.functional.dropout2d")
def dropout2d(input, p=0.5, training=True, inplace=False) -> Tensor:
    """Drop whole channels of (N, C, H, W); three dimensions are taken for (N, C, L)."""
    check_probability("dropout2d", input, p)
    _warn_of_rank("dropout2d", input.ndim, 2)
    if input.ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=3,
        )
    return _drop_channels(input, p, training, inplace, True)


@front("nn.functional.dropout3d")
def dropout3d(input, p=0.5, training=True, inplace=False) -> Tensor:
    """Drop whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    check_probability("dropout3d", input, p)
    _warn_of_rank("dropout3d", input.ndim, 3)
    return _drop_channels(input, p, training, inplace, input.ndim == 5)


# ---- gumbel
@front("nn.functional.gumbel_softmax")
def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1) -> Tensor:
    """A soft (or, with a gradient as if soft, one-hot) draw from the categories."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=3)
    room = empty(tuple(logits.shape), dtype=logits.dtype, device=logits.device)
    waiting = exponential_op(room) if ambient.mode & modes.TRANSFORM else room.exponential_()
    soft = ((logits + -waiting.log()) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    return zeros_like(soft).scatter_(dim, index, 1.0) - soft.detach() + soft
