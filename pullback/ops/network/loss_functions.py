"""Losses as `nn.functional` has them: reductions by name, sizes checked or broadcast with a warning, weights.

Also the losses over rows of embeddings, which are compositions: cosine embedding, triplets. Margins over several classes
are in `margin_losses`.
"""

from __future__ import annotations

import math
import warnings

from ...core import modes
from ...core.tensor import DISPATCH_SUBCLASS, META, TRANSFORMED, Tensor
from ..elementwise.arithmetic import zeros_like
from ..elementwise.selection import where
from ..elementwise.smooth_activations import log_sigmoid
from ..family.base import composite
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import exports
from ..system.record import refuse_gradients
from . import pointwise_losses as losses
from .pointwise_losses import MEAN, NONE, SUM, reduced

_CODES = {"none": NONE, "mean": MEAN, "elementwise_mean": MEAN, "sum": SUM}


# ---- reductions by name
def reduction_name(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """The reduction that is meant, with the old pair of flags understood."""
    if size_average is None and reduce is None:
        return reduction
    summed = reduce is None or reduce
    name = ("mean" if size_average is None or size_average else "sum") if summed else "none"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.", stacklevel=4
    )
    return name


def reduction_code(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> int:
    """The operators' number for a reduction."""
    name = reduction_name(reduction, size_average, reduce)
    if name == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=4)
    if name not in _CODES:
        raise ValueError(f"{name} is not a valid value for reduction")
    return _CODES[name]


def _same_shape(input: Tensor, target: Tensor) -> bool:
    if isinstance(input, Tensor) and isinstance(target, Tensor):
        return input._array.shape == target._array.shape
    return target.size() == input.size()


def _broadcast(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both of one shape; different ones are most likely a mistake."""
    if _same_shape(input, target):
        return input, target
    warnings.warn(
        f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=4,
    )
    return exports["torch"]["broadcast_tensors"](input, target)


def _weighted(loss: Tensor, weight: Tensor, input: Tensor, reduction: str, by_weight: bool) -> Tensor:
    """Losses times weights; their mean is over the weights where `by_weight`."""
    if tuple(weight.shape) != tuple(input.shape):
        raise ValueError("Weights and input must have the same size.")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")
    loss = loss * weight
    if reduction == "mean" and by_weight:
        return loss.sum() / weight.sum()
    return reduced(loss, _CODES[reduction])


def is_readable(t: Tensor) -> bool:
    """Whether a tensor's numbers can be looked at: not those of fake tensors, nor of a transform's."""
    return not t._keys & (META | TRANSFORMED | DISPATCH_SUBCLASS)


# ---- differences
@front("nn.functional.mse_loss")
def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None) -> Tensor:
    """Squared differences."""
    reduction = reduction_name(reduction, size_average, reduce)
    x, t = _broadcast(input, target)
    if weight is not None:
        return _weighted((x - t) ** 2, weight, input, reduction, by_weight=True)
    return dispatch(losses.mse_loss, (x, t, reduction_code(reduction)))


@front("nn.functional.l1_loss")
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None) -> Tensor:
    """Absolute differences."""
    reduction = reduction_name(reduction, size_average, reduce)
    x, t = _broadcast(input, target)
    if weight is not None:
        return _weighted((x - t).abs(), weight, input, reduction, by_weight=True)
    return dispatch(losses.l1_loss, (x, t, reduction_code(reduction)))


@front("nn.functional.smooth_l1_loss")
def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0) -> Tensor:
    """Differences, squared where they are below `beta`."""
    code = reduction_code(reduction, size_average, reduce)
    x, t = _broadcast(input, target)
    return dispatch(losses.l1_loss, (x, t, code)) if beta == 0 else dispatch(losses.smooth_l1_loss, (x, t, code, beta))


@front("nn.functional.huber_loss")
def huber_loss(input, target, reduction="mean", delta=1.0, weight=None) -> Tensor:
    """Squared differences up to `delta`, straight beyond."""
    x, t = _broadcast(input, target)
    if weight is None:
        return dispatch(losses.huber_loss, (x, t, reduction_code(reduction), delta))
    return _weighted(dispatch(losses.huber_loss, (x, t, NONE, delta)), weight, input, reduction, by_weight=False)


# ---- probabilities
@front("nn.functional.binary_cross_entropy")
def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean") -> Tensor:
    """Cross entropy of two classes, from probabilities."""
    code = reduction_code(reduction, size_average, reduce)
    if not _same_shape(input, target):
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        refuse_gradients("binary_cross_entropy", weight=weight)
        weight = weight.expand(exports["torch"]["broadcast_shapes"](target.size(), weight.size()))
    return dispatch(losses.binary_cross_entropy, (input, target, weight, code))


@front("nn.functional.binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
) -> Tensor:
    """Cross entropy of two classes, from logits."""
    code = reduction_code(reduction, size_average, reduce)
    if not _same_shape(input, target):
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    refuse_gradients("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    return dispatch(losses.binary_cross_entropy_with_logits, (input, target, weight, pos_weight, code))


@front("nn.functional.kl_div")
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False) -> Tensor:
    """The Kullback-Leibler divergence, from log-probabilities."""
    named = size_average is None and reduce is None
    if named and reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=3,
        )
    code = SUM if named and reduction == "batchmean" else reduction_code(reduction, size_average, reduce)
    loss = dispatch(losses.kl_div, (input, target, code, log_target))
    return loss / input.size()[0] if reduction == "batchmean" and input.ndim else loss


@front("nn.functional.poisson_nll_loss")
def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
) -> Tensor:
    """The negative log-likelihood of Poisson counts."""
    code = reduction_code(reduction, size_average, reduce)
    return dispatch(losses.poisson_nll_loss, (input, target, log_input, full, eps, code))


def _variance(input: Tensor, var) -> Tensor:
    """Variances of the input's shape, or that broadcast to it in one dimension."""
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        return var * exports["torch"]["ones_like"](input)
    if is_readable(var) and bool((var < 0).any().item()):
        raise ValueError("var has negative entry/entries")
    if tuple(var.shape) == tuple(input.shape):
        return var
    if tuple(input.shape[:-1]) == tuple(var.shape):
        return var.unsqueeze(-1)
    if input.ndim == var.ndim and sum(v for x, v in zip(input.shape, var.shape, strict=True) if x != v) == 1:
        return var
    raise ValueError("var is of incorrect size")


@front("nn.functional.gaussian_nll_loss")
def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean") -> Tensor:
    """The negative log-likelihood of Gaussians."""
    var = _variance(input, var)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = var.clone()
    with modes.masked(modes.GRAD):  # the floor under the variance has no say in its gradient
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, _CODES[reduction])


# ---- margins
@front("nn.functional.soft_margin_loss")
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean") -> Tensor:
    """`log(1 + exp(-target * input))`."""
    code = reduction_code(reduction, size_average, reduce)
    refuse_gradients("soft_margin_loss", target=target)
    return dispatch(losses.soft_margin_loss, (input, target, code))


@front("nn.functional.hinge_embedding_loss")
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean") -> Tensor:
    """Distances of pairs that belong together (1), and margins to those that do not (-1)."""
    code = reduction_code(reduction, size_average, reduce)
    return dispatch(losses.hinge_embedding_loss, (input, target, margin, code))


@front("nn.functional.margin_ranking_loss")
def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean") -> Tensor:
    """By how much two inputs are not in the order that the target asks for."""
    code = reduction_code(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return dispatch(losses.margin_ranking_loss, (input1, input2, target, margin, code))


@front("nn.functional.multilabel_soft_margin_loss")
def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean") -> Tensor:
    """Cross entropies of classes that do not exclude each other, averaged over the classes."""
    reduction = reduction_name(reduction, size_average, reduce)
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(input.ndim - 1) / input.size(input.ndim - 1)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    return reduced(loss, _CODES[reduction])


# ---- embeddings
@composite(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor",
    method=False,
    out=False,
    autocast_cpu="float32",
    autocast_cuda="float32",
)
def cosine_embedding_loss(input1, input2, target, margin, reduction):
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    eps = 1e-12
    product = (input1 * input2).sum(-1)
    squares = ((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)
    cosine = product / squares.sqrt()
    zeros = zeros_like(cosine)
    together, apart = where(target == 1, 1 - cosine, zeros), where(target == -1, (cosine - margin).clamp_min(0), zeros)
    return reduced(together + apart, reduction)


@front("nn.functional.cosine_embedding_loss")
def cosine_embedding(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean") -> Tensor:
    """Angles of pairs that belong together (1), and margins to those that do not (-1)."""
    code = reduction_code(reduction, size_average, reduce)
    return dispatch(cosine_embedding_loss, (input1, input2, target, margin, code))


def _triplet(anchor, positive, negative, distance, margin: float, swap: bool, reduction: int) -> Tensor:
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction)


@composite(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, "
    "float eps=1e-06, bool swap=False, int reduction=1) -> Tensor",
    method=False,
    out=False,
    autocast_cpu="float32",
    autocast_cuda="float32",
)
def triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction):
    distance = lambda a, b: exports["torch"]["pairwise_distance"](a, b, p, eps)
    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


def _check_margin(margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")


@front("nn.functional.triplet_margin_loss")
def triplet_margin(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"
) -> Tensor:
    """By how much an anchor is not nearer to its kind than to another, and a margin."""
    code = reduction_code(reduction, size_average, reduce)
    _check_margin(margin)
    return dispatch(triplet_margin_loss, (anchor, positive, negative, margin, p, eps, swap, code))


@front("nn.functional.triplet_margin_with_distance_loss")
def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
) -> Tensor:
    """`triplet_margin_loss` by a distance of one's own."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    _check_margin(margin)
    distance = distance_function or exports["torch"]["pairwise_distance"]
    return _triplet(anchor, positive, negative, distance, margin, swap, _CODES[reduction])
