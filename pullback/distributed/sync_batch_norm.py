"""Batch norm over the batches of all ranks of a group.

In: this rank's batch. Out: it, normalised by the mean and variance of all ranks' batches together, which may differ in
size. Statistics of the parts travel in one differentiable gather, so gradients reach every rank's input, and graphs hold
the collective.
"""

from __future__ import annotations

from typing import Any

from ..core import dtype as dtypes
from ..core.layers import above
from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..ops.system.operator import public
from . import operators
from .groups import state


def synchronized(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    momentum: float, eps: float, process_group: Any,
) -> Tensor | None:  # fmt: skip
    """The batch, normalised by the statistics of all ranks; None where there is nobody to share them with."""
    group = process_group if process_group is not None else state.world
    if group is None or group.size() == 1:
        return None
    return normalise(input, weight, bias, running_mean, running_var, momentum, eps, group)


def normalise(input, weight, bias, running_mean, running_var, momentum, eps, group) -> Tensor:
    """Normalise by the statistics of all ranks, and move the running ones towards them."""
    mean, variance, count = joint_statistics(input, group)
    with no_grad():
        if running_mean is not None:
            whole = (variance * (count / (count - 1))).detach()
            running_mean.copy_((running_mean * (1 - momentum) + mean.detach() * momentum).to(running_mean.dtype))
            running_var.copy_((running_var * (1 - momentum) + whole * momentum).to(running_var.dtype))
    shape = (1, -1, *(1,) * (input.dim() - 2))
    scale = (variance + eps).rsqrt()
    out = (input.to(mean.dtype) - mean.reshape(shape)) * scale.reshape(shape)
    if weight is not None:
        out = out * weight.reshape(shape)
    if bias is not None:
        out = out + bias.reshape(shape)
    return out.to(input.dtype)


def joint_statistics(input: Tensor, group) -> tuple[Tensor, Tensor, Tensor]:
    """(mean, variance, number of elements) of each channel, over all ranks."""
    torch = lambda name: public("torch", name)
    wide = input if input.dtype in (dtypes.float32, dtypes.float64) else input.to(dtypes.float32)
    axes = (0, *range(2, input.dim()))
    channels, n = input.shape[1], input.numel() // input.shape[1]
    own_mean = wide.mean(axes)
    deviation = wide - own_mean.reshape((1, -1, *(1,) * (input.dim() - 2)))
    squares = (deviation * deviation).sum(axes)
    mine = torch("cat")([own_mean, squares, wide.new_full((1,), n)]).unsqueeze(0)
    every = operators.wait_tensor(operators.all_gather_into_tensor(mine, group.size(), group.group_name))
    counts = every[:, 2 * channels :]
    count = counts.sum()
    means = every[:, :channels]
    mean = (means * counts).sum(0) / count
    spread = means - mean
    return mean, (every[:, channels : 2 * channels] + spread * spread * counts).sum(0) / count, count


above.synchronized_batch_norm = synchronized
