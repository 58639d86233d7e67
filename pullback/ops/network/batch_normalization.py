"""Batch norm and instance norm.

A batch is (samples, channels, ...). In training, batch norm standardises each channel over everything else and writes
its running statistics; otherwise it uses them. The running variance is the unbiased one. Gradients and their gradients
are those of `normalization`.
"""

from __future__ import annotations

import math

import numpy as np

from ...core import dtype as dtypes
from ...core import native
from ...core.arrays import assign, copy_over
from ...core.geometry import channels_last_strides, is_channels_last_contiguous, is_contiguous, wrap_dim
from ...core.modes import AUTOCAST, FORWARD, GRAD, ambient
from ...core.tensor import CUDA, Tensor, stride_of
from ..family.base import composite, operator
from ..family.formats import like, like_first
from ..reduce.reductions import HIDDEN, not_implemented
from ..system.calls import front
from ..system.general import has_tangent
from ..system.operator import Spec
from ..system.overloads import overloaded
from ..system.precision import rounded, wide
from ..system.record import refuse_gradients
from . import batch_shortcuts as shortcuts
from . import normalization_kernels as kernels
from .normalization import check_mixed, kept_dtype, second_order, statistics_dtype, sum_dims
from .normalization_lowering import lower_batch_norm, lower_batch_norm_backward


def _but_channels(ndim: int) -> tuple[int, ...]:
    return (0, *range(2, ndim))


def _per_channel(v, ndim: int):
    """One value for each channel, shaped to broadcast against a batch."""
    return None if v is None else v.reshape((1, -1, *(1,) * (ndim - 2)))


# ---- batch norm
def _check_parameters(input, weight, bias, running_mean, running_var, training) -> None:
    channels = input._array.shape[1] if input._array.ndim > 1 else 0
    for name, given in (("running_mean", running_mean), ("running_var", running_var)):
        if given is None and not training:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
    named = (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias))
    for name, given in named:
        if given is not None and given._array.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {given._array.size}")
    if not input.dtype.is_floating_point:
        raise not_implemented("batch_norm", input.dtype)
    check_mixed(input, weight, bias, running_mean, running_var)


def _check_batch(input, weight, bias, running_mean, running_var, training, momentum, eps):
    _check_parameters(input, weight, bias, running_mean, running_var, training)


def _update(xp, running, value, momentum: float) -> None:
    """Move a running statistic towards a new value, in place."""
    if running is not None:
        running[...] = (1 - momentum) * wide(xp, running) + momentum * value.reshape(running.shape)


def _train(xp, x, running_mean, running_var, momentum, eps):
    axes = _but_channels(x.ndim)
    mean, variance = kernels.moments(xp, x, axes)
    rstd = 1 / xp.sqrt(variance + x.dtype.type(eps))
    n = x.size // max(x.shape[1], 1)
    if x.size:
        _update(xp, running_mean, mean, momentum)
        _update(xp, running_var, variance * (n / (n - 1) if n > 1 else math.nan), momentum)
    return mean, rstd


def _batch_norm(xp, x, weight, bias, running_mean, running_var, training, momentum, eps):
    kept = statistics_dtype(x, weight, bias, running_mean, running_var)
    if x.ndim < 2:  # no channels: nothing to do
        return x.copy(), xp.empty(0, kept), xp.empty(0, kept)
    if training and xp is np:
        found = native.batch_norm(x, weight, bias, running_mean, running_var, momentum, eps)
        if found is not None:
            return found
    wide_x = wide(xp, x)
    if training:
        mean, rstd = _train(xp, wide_x, running_mean, running_var, momentum, eps)
        saved = rounded(mean.reshape(-1), kept), rounded(rstd.reshape(-1), kept)
    else:
        mean, variance = (_per_channel(wide(xp, r), x.ndim) for r in (running_mean, running_var))
        rstd = 1 / xp.sqrt(variance + variance.dtype.type(eps))
        saved = xp.empty(0, kept), xp.empty(0, kept)
    scale = rstd if weight is None else rstd * _per_channel(wide(xp, weight), x.ndim)
    out = kernels.scale_shift(xp, wide_x, mean, scale, _per_channel(wide(xp, bias), x.ndim))
    return rounded(out, x.dtype), *saved


def _batch_meta(input, weight, bias, running_mean, running_var, training, momentum, eps):
    kept = kept_dtype(input, weight, bias, running_mean, running_var)
    shape = (input._array.shape[1] if training and input._array.ndim > 1 else 0,)
    return Spec(input._array.shape, input.dtype), Spec(shape, kept), Spec(shape, kept)


def _batch_vjp(g, input, weight, running_mean, running_var, out1, out2, training, eps, mask):
    if g is None or input.ndim < 2:
        return g, None, None
    if training:  # running statistics have no part in it
        running_mean = running_var = None
        found = shortcuts.backward(g, input, weight, out1, out2, mask)
        if found is not None:
            return found
    return batch_norm_backward(g, input, weight, running_mean, running_var, out1, out2, training, eps, mask)


SHARED_STATISTICS = """\
Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, were not batched.
Please set `track_running_stats` to be False, or vmap over the running statistics too."""


def _fold_channels(op, first: int):
    """The vmap rule without running statistics: batches of channels are more channels."""

    def moved_once(args, dims, size):
        """The same input for all examples moves statistics that are the same for all by one step."""
        if dims[0] is not None or any(d is not None for d in dims[3:5]):
            raise RuntimeError(SHARED_STATISTICS)
        x, weight, bias, *statistics = args[:5]
        op()(x, None, None, *statistics, *args[5:])
        batch = (x.unsqueeze(0).expand(size, *x.shape), weight, bias, None, None, *args[5:])
        return rule(batch, (0, *dims[1:]), size)

    def rule(args, dims, size):
        x, weight, bias = args[:3]
        if (
            first == 5
            and args[5]
            and any(s is not None and d is None for s, d in zip(args[3:5], dims[3:5], strict=True))
        ):
            return moved_once(args, dims, size)
        if dims[0] is None or any(d is not None for d in dims[3:]) or first == 5 and not args[3] is args[4] is None:
            return None
        if not args[first]:
            return None
        x = x.movedim(dims[0], 1)  # (samples, batch, channels, ...)
        shape = x.shape
        weight, bias = (_spread(p, d, size) for p, d in ((weight, dims[1]), (bias, dims[2])))
        out, mean, rstd = op()(x.reshape((shape[0], -1, *shape[3:])), weight, bias, *args[3:])
        return (out.reshape(shape), mean.reshape(size, -1), rstd.reshape(size, -1)), (1, 0, 0)

    return rule


def _spread(p: Tensor | None, dim: int | None, size: int) -> Tensor | None:
    if p is None:
        return None
    return (p.unsqueeze(0).expand((size, *p.shape)) if dim is None else p.movedim(dim, 0)).reshape(-1)


def like_images(shape: tuple, input, *args) -> tuple | None:
    """Channels-last where the input is, or could be called so: axes of one element have no say."""
    stride = stride_of(input)
    if stride[0].__class__ is int and len(shape) in (4, 5):
        if is_channels_last_contiguous(shape, stride) and not is_contiguous(shape, stride):
            return channels_last_strides(shape)
    return like_first(shape, input, *args)


_STATISTICS = "Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps"

batch_norm_op = operator(
    f"native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, {_STATISTICS}) -> (Tensor, Tensor, Tensor)",
    lower=lower_batch_norm,
    kernel=_batch_norm,
    strides=like_images,
    check=_check_batch,
    meta=_batch_meta,
    vjp={("input", "weight", "bias"): _batch_vjp},
    vmap=_fold_channels(lambda: batch_norm_op, 5),
    nondifferentiable=(1, 2),
    method=False,
    opaque="mixed",
    writes_unseen=True,
)

batch_norm_legit = operator(
    "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) "
    "running_var, "
    "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    kernel=_batch_norm,
    strides=like_images,
    check=_check_batch,
    meta=_batch_meta,
    vjp={("input", "weight", "bias"): _batch_vjp},
    nondifferentiable=(1, 2),
    **HIDDEN,
)

batch_norm_no_stats = operator(
    "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, "
    "float eps) "
    "-> (Tensor, Tensor, Tensor)",
    strides=like_images,
    kernel=lambda xp, x, weight, bias, *rest: _batch_norm(xp, x, weight, bias, None, None, *rest),
    check=lambda input, weight, bias, training, *rest: _check_parameters(input, weight, bias, None, None, training),
    meta=lambda input, weight, bias, *rest: _batch_meta(input, weight, bias, None, None, *rest),
    vjp={
        ("input", "weight", "bias"): lambda g, input, weight, out1, out2, training, eps, mask: _batch_vjp(
            g, input, weight, None, None, out1, out2, training, eps, mask
        )
    },
    vmap=_fold_channels(lambda: batch_norm_no_stats, 3),
    nondifferentiable=(1, 2),
    **HIDDEN,
)
overloaded("_native_batch_norm_legit", batch_norm_legit, batch_norm_no_stats, homes=("torch",))

batch_norm_no_training = operator(
    "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
    "running_var, "
    "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    strides=like_images,
    kernel=lambda xp, x, weight, bias, mean, var, momentum, eps: _batch_norm(
        xp, x, weight, bias, mean, var, False, momentum, eps
    ),
    check=lambda input, weight, bias, mean, var, momentum, eps: _check_parameters(
        input, weight, bias, mean, var, False
    ),
    meta=lambda input, weight, bias, mean, var, momentum, eps: _batch_meta(
        input, weight, bias, mean, var, False, momentum, eps
    ),
    vjp={
        ("input", "weight", "bias"): lambda g, input, weight, running_mean, running_var, out1, out2, eps, mask: (
            _batch_vjp(g, input, weight, running_mean, running_var, out1, out2, False, eps, mask)
        )
    },
    nondifferentiable=(1, 2),
    **HIDDEN,
)


def _functional(xp, x, weight, bias, running_mean, running_var, training, momentum, eps):
    mean, var = running_mean.copy(), running_var.copy()
    return *_batch_norm(xp, x, weight, bias, mean, var, training, momentum, eps), mean, var


batch_norm_functional = operator(
    "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
    "running_var, "
    "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    lower=lower_batch_norm,
    kernel=_functional,
    strides=like_images,
    check=_check_batch,
    meta=lambda *args: (*_batch_meta(*args), *(Spec(r._array.shape, r.dtype) for r in args[3:5])),
    vjp={("input", "weight", "bias"): _batch_vjp},
    nondifferentiable=(1, 2, 3, 4),
    **HIDDEN,
)


def _batch_backward(xp, g, x, weight, running_mean, running_var, save_mean, save_invstd, train, eps, mask):
    axes, wide_x, wide_g = _but_channels(x.ndim), wide(xp, x), wide(xp, g)
    scale = _per_channel(wide(xp, weight), x.ndim)
    if train:
        mean, rstd = (_per_channel(wide(xp, s), x.ndim) for s in (save_mean, save_invstd))
    else:
        mean, variance = (_per_channel(wide(xp, r), x.ndim) for r in (running_mean, running_var))
        rstd = 1 / xp.sqrt(variance + variance.dtype.type(eps))
    of_x, of_weight, of_bias = kernels.standardize_backward(xp, wide_g, wide_x, mean, rstd, axes, scale)
    if not train:  # the statistics are constants
        of_x = wide_g * (rstd if weight is None else rstd * scale)
    kept = x.dtype if weight is None else weight.dtype
    return (
        rounded(of_x, x.dtype) if mask[0] else None,
        rounded(of_weight, kept) if mask[1] else None,
        rounded(of_bias, kept) if mask[2] else None,
    )


def _batch_second(gs, grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, mask):
    n, axes = input.ndim, _but_channels(input.ndim)
    scale = _per_channel(weight, n)
    gs = (gs[0], _per_channel(gs[1], n), _per_channel(gs[2], n))
    if train:
        mean, rstd = _per_channel(save_mean, n), _per_channel(save_invstd, n)
        of_g, of_x, of_w = second_order(gs, grad_out, input, scale, mean, rstd, axes)
    else:
        rstd = (_per_channel(running_var, n) + eps).rsqrt()
        of_g, of_x, of_w = _fixed_second(gs, grad_out, input - _per_channel(running_mean, n), scale, rstd)
    return of_g, of_x, sum_dims(of_w, axes, (input.shape[1],)) if weight is not None else None


def _fixed_second(gs, g, centered, weight, rstd):
    """As `second_order`, where the statistics are constants."""
    gx, gw, gb = gs
    of_g = None
    if gx is not None:
        of_g = gx * rstd if weight is None else gx * rstd * weight
    if gw is not None:
        of_g = gw * centered * rstd if of_g is None else of_g + gw * centered * rstd
    if gb is not None:
        of_g = gb.expand(centered.shape) if of_g is None else of_g + gb
    return of_g, None if gw is None else gw * g * rstd, None if gx is None else gx * g * rstd


def _backward_vmap(args, dims, size):
    """Batches of channels are more channels."""
    train, mask = args[7], args[9]
    g, x = (
        args[i].unsqueeze(1).expand((args[i].shape[0], size, *args[i].shape[1:]))
        if dims[i] is None
        else args[i].movedim(dims[i], 1)
        for i in (0, 1)
    )
    shape = x.shape  # (samples, batch, channels, ...)
    folded = (shape[0], -1, *shape[3:])
    each = [_spread(args[i], dims[i], size) for i in range(2, 7)]
    if not train:
        each[3] = each[4] = None
    result = batch_norm_backward(g.reshape(folded), x.reshape(folded), *each, train, args[8], mask)
    of_x = None if result[0] is None else result[0].reshape(shape).movedim(1, 0)
    return (of_x, *(None if m is None else m.reshape(size, -1) for m in result[1:])), 0


batch_norm_backward = operator(
    "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? "
    "running_var, "
    "Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    lower=lower_batch_norm_backward,
    kernel=_batch_backward,
    strides=like(1),
    meta=lambda grad_out, input, weight, *rest: tuple(
        None if not wanted else Spec(*spec)
        for wanted, spec in zip(
            rest[-1],
            (
                (input._array.shape, input.dtype),
                *[((input._array.shape[1],), (input if weight is None else weight).dtype)] * 2,
            ),
            strict=True,
        )
    ),
    vjp={("grad_out", "input", "weight"): _batch_second},
    vmap=_backward_vmap,
    **HIDDEN,
)


@composite(
    f"batch_norm(Tensor input, Tensor? weight, Tensor? bias, {_STATISTICS}, bool cudnn_enabled) -> Tensor",
    method=False,
    writes_unseen=True,
)
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    if input.ndim < 2 and input.numel():  # without elements no channels are looked for
        wrap_dim(1, input.ndim)
    if training and not ambient.mode & ~(GRAD | AUTOCAST) and running_mean is not None and running_var is not None:
        if input._keys == running_mean._keys == running_var._keys == CUDA:
            return _on_device(input, weight, bias, running_mean, running_var, momentum, eps)
    if running_mean is not None:
        refuse_gradients("native_batch_norm", running_mean=running_mean, running_var=running_var)
        if ambient.mode & FORWARD:
            _refuse_tangents(running_mean, running_var)
    return batch_norm_op(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def _refuse_tangents(*statistics: Tensor | None) -> None:
    if any(t is not None and has_tangent(t) for t in statistics):
        raise RuntimeError(
            "batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad defined"
        )


def _on_device(input, weight, bias, running_mean, running_var, momentum, eps):
    """By the form whose new statistics are results, which has kernels of our own; they are then put where the old ones are, unseen as
    `native_batch_norm` does it."""
    before = running_mean, running_var
    out, _, _, *after = batch_norm_functional(input, weight, bias, *before, True, momentum, eps)
    for old, new in zip(before, after, strict=True):
        (copy_over if old._array.flags.c_contiguous else assign)(old._array, new._array)
    return out


@composite(
    f"_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, {_STATISTICS}, bool cudnn_enabled) "
    "-> (Tensor, Tensor, Tensor, Tensor, int)",
    method=False,
)
def batch_norm_impl_index(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    result = batch_norm_op(input, weight, bias, running_mean, running_var, training, momentum, eps)
    return *result, input.new_empty((0,), dtype=dtypes.uint8), 0


@front("nn.functional.batch_norm")
def functional_batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    """Standardisation of each channel over the batch, or by running statistics."""
    if training:
        t = (
            shortcuts.batch_norm(input, running_mean, running_var, weight, bias, momentum, eps)
            if training is True
            else None
        )
        if t is not None:
            return t
        _check_more_than_one(input.shape)
    elif training is False:
        t = shortcuts.by_running_statistics(input, running_mean, running_var, weight, bias, momentum, eps)
        if t is not None:
            return t
    return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def _check_more_than_one(shape) -> None:
    if math.prod(shape) // shape[1] == 1 if len(shape) > 1 and shape[1] else False:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {shape}")


# ---- instance norm
@composite(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
    "use_input_stats, "
    "float momentum, float eps, bool cudnn_enabled) -> Tensor",
    method=False,
    writes_unseen=True,
)
def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    samples, channels = input.shape[:2]
    each = [None if p is None else p.repeat(samples) for p in (weight, bias, running_mean, running_var)]
    each[2:] = [None if r is None else r.to(kept_dtype(input, weight, bias)) for r in each[2:]]
    folded = input.reshape((1, samples * channels, *input.shape[2:]))
    out = batch_norm(folded, *each, use_input_stats, momentum, eps, cudnn_enabled)
    for running, moved in ((running_mean, each[2]), (running_var, each[3])):
        if running is not None and use_input_stats:
            running.detach().copy_(moved.detach().reshape(samples, channels).mean(0))
    return out.reshape(input.shape)


@front("nn.functional.instance_norm")
def functional_instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
):
    """Standardisation of each channel of each sample."""
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    return instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)
