"""Group norm: each group of channels of each sample is standardised over its channels and everything in them.

The statistics are results of the operator, and what flows back from them is part of the input's gradient.
"""

from __future__ import annotations

import math

from ..family.base import composite, operator
from ..family.formats import like, like_first
from ..reduce.reductions import HIDDEN, not_implemented
from ..system.calls import front
from ..system.operator import Spec
from ..system.precision import rounded, wide
from . import normalization_kernels as kernels
from .normalization import check_mixed, kept_dtype, second_order, statistics_dtype, sum_dims


def _check_group(input, weight, bias, N, C, HxW, group, eps):
    shape = list(input._array.shape)
    if group <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {group}")
    if C % group:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {shape} and "
            f"num_groups={group}"
        )
    for name, p in (("weight", weight), ("bias", bias)):
        if p is not None and (p._array.ndim != 1 or p._array.size != C):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                "shape "
                f"{list(p._array.shape)} and input of shape {shape}"
            )
    if not input.dtype.is_floating_point:
        raise not_implemented("GroupNormKernelImpl", input.dtype)
    check_mixed(input, weight, bias)


_INSIDE = (2, 3)  # of a batch as (samples, groups, channels of a group, elements of a channel)


def _grouped(xp, p, group: int):
    return None if p is None else wide(xp, p).reshape(1, group, -1, 1)


def _group_norm(xp, x, weight, bias, N, C, HxW, group, eps):
    kept = statistics_dtype(x, weight, bias)
    grouped = wide(xp, x).reshape(N, group, C // group, HxW)
    mean, variance = kernels.moments(xp, grouped, _INSIDE)
    rstd = 1 / xp.sqrt(variance + grouped.dtype.type(eps))
    if weight is None and bias is None:
        out = kernels.scale_shift(xp, grouped, mean, rstd, None)
    else:  # each channel of each sample has a scale of its own
        each = (N, group, C // group, 1)
        scale = xp.broadcast_to(rstd if weight is None else rstd * _grouped(xp, weight, group), each)
        shift = None if bias is None else xp.broadcast_to(_grouped(xp, bias, group), each)
        out = kernels.scale_shift(xp, grouped, xp.broadcast_to(mean, each), scale, shift)
    statistics = (rounded(s.reshape(N, group), kept) for s in (mean, rstd))
    return rounded(out.reshape(x.shape), x.dtype), *statistics


def _group_meta(input, weight, bias, N, C, HxW, group, eps):
    kept = kept_dtype(input, weight, bias)
    return Spec(input._array.shape, input.dtype), Spec((N, group), kept), Spec((N, group), kept)


def _group_vjp(gs, input, weight, N, C, HxW, group, out1, out2, mask):
    """The statistics are results too: what flows back from them is added to the gradient of the input."""
    g, of_mean, of_rstd = gs
    result = (
        (None, None, None) if g is None else group_norm_backward(g, input, out1, out2, weight, N, C, HxW, group, mask)
    )
    if of_mean is None and of_rstd is None or not mask[0]:
        return result
    n = max(C // group * HxW, 1)
    share = None if of_mean is None else (of_mean / n).unsqueeze(-1)
    if of_rstd is not None:
        centered = input.reshape(N, group, C // group * HxW) - out1.unsqueeze(-1)
        through = -(of_rstd * out2.pow(3) / n).unsqueeze(-1) * centered
        share = through if share is None else share + through
    share = share.expand(N, group, C // group * HxW).reshape(input.shape)
    return share if result[0] is None else result[0] + share, *result[1:]


def _group_vmap(args, dims, size):
    """Batches of samples are more samples."""
    x, weight, bias, N, C, HxW, group, eps = args
    if dims[0] is None or dims[1] is not None or dims[2] is not None:
        return None
    x = x.movedim(dims[0], 0)
    out, mean, rstd = group_norm_op(x.reshape((-1, *x.shape[2:])), weight, bias, size * N, C, HxW, group, eps)
    return (out.reshape(x.shape), mean.reshape(size, N, group), rstd.reshape(size, N, group)), 0


group_norm_op = operator(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float "
    "eps) "
    "-> (Tensor, Tensor, Tensor)",
    kernel=_group_norm,
    strides=like_first,
    check=_check_group,
    meta=_group_meta,
    vjp={("input", "weight", "bias"): _group_vjp},
    vmap=_group_vmap,
    method=False,
)


def _group_backward(xp, g, x, mean, rstd, weight, N, C, HxW, group, mask):
    shape = (N, group, C // group, HxW)
    wide_g, wide_x = wide(xp, g).reshape(shape), wide(xp, x).reshape(shape)
    weighted = wide_g if weight is None else wide_g * _grouped(xp, weight, group)
    mean, rstd = (wide(xp, s).reshape(N, group, 1, 1) for s in (mean, rstd))
    of_x = kernels.standardize_backward(xp, weighted, wide_x, mean, rstd, _INSIDE)[0] if mask[0] else None
    of_weight = of_bias = None
    if mask[1] or mask[2]:
        each = (xp.broadcast_to(s, (N, group, C // group, 1)) for s in (mean, rstd))
        _, of_weight, of_bias = kernels.standardize_backward(xp, wide_g, wide_x, *each, (3,))
    kept = x.dtype if weight is None else weight.dtype
    return (
        rounded(of_x.reshape(x.shape), x.dtype) if mask[0] else None,
        rounded(of_weight.sum(axis=0).reshape(C), kept) if mask[1] else None,
        rounded(of_bias.sum(axis=0).reshape(C), kept) if mask[2] else None,
    )


def _group_second(gs, grad_out, input, mean, rstd, weight, N, C, HxW, group, mask):
    shape = (N, group, C // group, HxW)
    per_channel = (1, group, C // group, 1)
    gs = (
        None if gs[0] is None else gs[0].reshape(shape),
        *(None if g is None else g.reshape(per_channel) for g in gs[1:]),
    )
    scale = None if weight is None else weight.reshape(per_channel)
    stats = (s.reshape(N, group, 1, 1) for s in (mean, rstd))
    of_g, of_x, of_w = second_order(gs, grad_out.reshape(shape), input.reshape(shape), scale, *stats, _INSIDE)
    of_g, of_x = (None if t is None else t.reshape(input.shape) for t in (of_g, of_x))
    return of_g, of_x, sum_dims(of_w, (0, 3), (C,)) if weight is not None else None


group_norm_backward = operator(
    "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, "
    "SymInt C, SymInt HxW, "
    "int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    kernel=_group_backward,
    strides=like(1),
    meta=lambda grad_out, input, mean, rstd, weight, N, C, HxW, group, mask: (
        Spec(input._array.shape, input.dtype) if mask[0] else None,
        Spec((C,), (input if weight is None else weight).dtype) if mask[1] else None,
        Spec((C,), (input if weight is None else weight).dtype) if mask[2] else None,
    ),
    vjp={("grad_out", "input", "weight"): _group_second},
    **HIDDEN,
)


@composite(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool "
    "cudnn_enabled=True) -> Tensor",
    method=False,
    autocast_cuda="float32",
)
def group_norm(input, num_groups, weight, bias, eps, cudnn_enabled):
    samples, channels = input.shape[:2]
    return group_norm_op(input, weight, bias, samples, channels, math.prod(input.shape[2:]), num_groups, eps)[0]


@front("nn.functional.group_norm")
def functional_group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Standardisation of groups of channels of each sample."""
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    count = input.shape[0] * input.shape[1] // num_groups * math.prod(input.shape[2:])
    if count == 1:
        shape = [input.shape[0] * input.shape[1] // num_groups, num_groups, *input.shape[2:]]
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {shape}")
    return group_norm(input, num_groups, weight, bias, eps)
