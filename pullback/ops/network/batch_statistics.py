"""The pieces that synchronised batch norm is made of: statistics of a part of the batch, joined over parts, applied."""

from __future__ import annotations

import math

from ...core.tensor import Tensor
from ..family.base import composite


def _axes(t: Tensor) -> tuple[int, ...]:
    return (0, *range(2, t.ndim))


def _per_channel(v: Tensor | None, like: Tensor) -> Tensor | None:
    return None if v is None else v.reshape((1, -1, *(1,) * (like.ndim - 2)))


def _move(running: Tensor | None, value: Tensor, momentum: float) -> None:
    if running is not None:
        running.detach().copy_(running.detach() * (1 - momentum) + value * momentum)


@composite("batch_norm_stats(Tensor input, float eps) -> (Tensor, Tensor)", method=False)
def batch_norm_stats(input, eps):
    mean = input.mean(_axes(input))
    variance = (input - _per_channel(mean, input)).pow(2).mean(_axes(input))
    return mean, (variance + eps).rsqrt()


@composite(
    "batch_norm_elemt(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor invstd, float eps) -> Tensor",
    method=False,
)
def batch_norm_elemt(input, weight, bias, mean, invstd, eps):
    out = (input - _per_channel(mean, input)) * _per_channel(invstd, input)
    out = out if weight is None else out * _per_channel(weight, input)
    return out if bias is None else out + _per_channel(bias, input)


@composite(
    "batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, float momentum) -> (Tensor, "
    "Tensor)",
    method=False,
    writes_unseen=True,
)
def batch_norm_update_stats(input, running_mean, running_var, momentum):
    if not input.numel():
        raise RuntimeError(f"input tensor must have at least one element, but got input_sizes = {list(input.shape)}")
    n = input.numel() // input.shape[1]
    mean = input.mean(_axes(input))
    variance = (input - _per_channel(mean, input)).pow(2).mean(_axes(input))
    _move(running_mean, mean.detach(), momentum)
    _move(running_var, variance.detach() * (n / (n - 1) if n > 1 else math.nan), momentum)
    return mean, variance


@composite(
    "batch_norm_gather_stats_with_counts(Tensor input, Tensor mean, Tensor invstd, Tensor? running_mean, Tensor? "
    "running_var, "
    "float momentum, float eps, Tensor counts) -> (Tensor, Tensor)",
    method=False,
    writes_unseen=True,
)
def batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts):
    """Statistics of the whole from those of parts, each in a row, that have `counts` elements a channel."""
    counts = counts.reshape(-1, 1).to(mean.dtype)
    n = counts.sum()
    total = (mean * counts).sum(0) / n
    variance = ((invstd.pow(-2) - eps + (mean - total).pow(2)) * counts).sum(0) / n
    _move(running_mean, total, momentum)
    _move(running_var, variance * (n / (n - 1)), momentum)
    return total, (variance + eps).rsqrt()


@composite(
    "batch_norm_gather_stats(Tensor input, Tensor mean, Tensor invstd, Tensor? running_mean, Tensor? running_var, "
    "float momentum, "
    "float eps, int count) -> (Tensor, Tensor)",
    method=False,
    writes_unseen=True,
)
def batch_norm_gather_stats(input, mean, invstd, running_mean, running_var, momentum, eps, count):
    counts = mean.new_full((mean.shape[0],), count)
    return batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts)


@composite(
    "batch_norm_backward_reduce(Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, Tensor? weight, bool "
    "input_g, bool weight_g, "
    "bool bias_g) -> (Tensor, Tensor, Tensor, Tensor)",
    method=False,
)
def batch_norm_backward_reduce(grad_out, input, mean, invstd, weight, input_g, weight_g, bias_g):
    """Sums over a part that the gradients need: of g, of g times the deviation, and the parameters' gradients."""
    sum_dy = grad_out.sum(_axes(input))
    sum_dy_xmu = (grad_out * (input - _per_channel(mean, input))).sum(_axes(input))
    return sum_dy, sum_dy_xmu, sum_dy_xmu * invstd if weight_g else None, sum_dy.clone() if bias_g else None


@composite(
    "batch_norm_backward_elemt(Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, Tensor? weight, Tensor "
    "sum_dy, "
    "Tensor sum_dy_xmu, Tensor count) -> Tensor",
    method=False,
)
def batch_norm_backward_elemt(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count):
    n = count.sum()
    deviation = input - _per_channel(mean, input)
    slope = _per_channel(sum_dy_xmu / n * invstd * invstd, input)
    scale = invstd if weight is None else invstd * weight
    return (grad_out - _per_channel(sum_dy / n, input) - deviation * slope) * _per_channel(scale, input)
