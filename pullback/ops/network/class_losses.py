"""Losses over classes: negative log likelihood, cross entropy, connectionist temporal classification.

Class scores are (classes), (samples, classes) or (samples, classes, ...); targets are indices of that shape without the
classes, or, for cross entropy, probabilities of the same shape. `ignore_index` marks targets that do not count; the
mean is by weight. Reductions are 0 (none), 1 (mean) and 2 (sum), as operators take them.
"""

from __future__ import annotations

import math
import warnings

from ...core import dtype as dtypes
from ...core.modes import ambient, process
from ...core.tensor import Tensor, wrap_dim_of_scalar
from ..eager.functions import overridden_operators
from ..eager.views import is_plain_tensor
from ..family.base import composite, operator
from ..linalg.contraction import linear
from ..reduce.reductions import HIDDEN, not_implemented
from ..reduce.softmaxes import log_softmax, log_softmax_op
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import Spec
from ..system.precision import rounded, wide
from ..system.record import refuse_gradients
from .loss_lowering import lower_nll, lower_nll_backward

NONE, MEAN, SUM = range(3)
_REDUCTIONS = {"none": NONE, "mean": MEAN, "sum": SUM}


def reduction_number(reduction: str, size_average=None, reduce=None) -> int:
    """The operator's code for a reduction, with the two flags of old honoured."""
    if size_average is not None or reduce is not None:
        average, reduced = (True if flag is None else flag for flag in (size_average, reduce))
        old = "none" if not reduced else "mean" if average else "sum"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{old}' instead.", stacklevel=4
        )
        reduction = old
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _REDUCTIONS[reduction]


# ---- negative log likelihood: scores as (samples, classes, elements)
def _columns(a):
    """Scores with one sample dimension in front and one element dimension behind."""
    if a.ndim == 1:
        return a.reshape(1, -1, 1)
    return a.reshape(a.shape[0], a.shape[1], math.prod(a.shape[2:]))


def _check_common(self, target, weight) -> None:
    classes = self._array.shape[0] if self._array.ndim == 1 else self._array.shape[1]
    if weight is not None and (weight._array.ndim != 1 or weight._array.size != classes):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            "shape: "
            f"{list(weight._array.shape)}"
        )
    if not self.dtype.is_floating_point:
        raise not_implemented(
            "nll_loss_out_frame" if self._array.ndim < 3 else "nll_loss2d_forward_out_frame", self.dtype
        )
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_name}")
    if weight is not None and weight.dtype is not self.dtype:
        raise RuntimeError(f"expected scalar type {self.dtype.scalar_name} but found {weight.dtype.scalar_name}")


def _check_nll(self, target, weight, reduction, ignore_index):
    if not 0 < self._array.ndim <= 2:
        raise RuntimeError("input tensor should be 1D or 2D")
    if target._array.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if self._array.ndim == 2 and self._array.shape[0] != (target._array.shape[0] if target._array.ndim else 1):
        raise RuntimeError(f"size mismatch (got input: {list(self._array.shape)}, target: {list(target._array.shape)})")
    _check_common(self, target, weight)


def _check_nll_2d(self, target, weight, reduction, ignore_index):
    if target._array.ndim != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target._array.ndim}"
        )
    if self._array.ndim != 4:
        raise RuntimeError(
            f"only batches of spatial inputs supported (4D tensors), but got input of dimension: {self._array.ndim}"
        )
    shape, wanted = self._array.shape, target._array.shape
    if (shape[0], *shape[2:]) != tuple(wanted):
        raise RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(wanted)}")
    _check_common(self, target, weight)


def _places(xp, target, classes: int, ignore_index: int):
    """(targets with ignored ones at 0, which count, or None if all do); raises for a class that does not exist."""
    captured = bool(process.cuda_captures)  # nothing has run: there are no numbers to look at
    within = not captured and (not target.size or 0 <= target.min() and target.max() < classes)
    if within and not 0 <= ignore_index < classes:
        return target, None
    counts = target != ignore_index
    bad = counts & ((target < 0) | (target >= classes))
    if not captured and bad.any():
        raise IndexError(f"Target {int(target[bad][0])} is out of bounds.")
    return xp.where(counts, target, 0), counts


def _weights_of(xp, a, target, weight, ignore_index):
    """(places of the targets in the scores, the weight of each or None if all have one, which count or None)."""
    at, counts = _places(xp, target.astype(xp.int64).reshape(a.shape[0], a.shape[2]), a.shape[1], ignore_index)
    where = (xp.arange(a.shape[0])[:, None], at, xp.arange(a.shape[2]))
    if weight is None:
        return where, None if counts is None else counts.astype(a.dtype), counts
    return where, weight[at] if counts is None else xp.where(counts, weight[at], a.dtype.type(0)), counts


def _all_count(xp, scores, target, weight, ignore_index) -> bool:
    """Whether this is the common case: one float32 or float64 row a sample, every target a class, no weights."""
    if (
        weight is not None
        or process.cuda_captures
        or scores.ndim != 2
        or scores.dtype.itemsize < 4
        or target.dtype != xp.int64
        or not target.ndim
    ):
        return False
    classes = scores.shape[1]
    return not 0 <= ignore_index < classes and bool((target.view(xp.uint64) < classes).all())


def _nll(xp, scores, target, weight, reduction, ignore_index):
    if _all_count(xp, scores, target, weight, ignore_index):
        loss = scores[xp.arange(target.size), target]
        if reduction == NONE:
            return -loss, xp.zeros((), scores.dtype)
        total = xp.add.reduce(loss, dtype=xp.float64)
        result = -total / (target.size or math.nan) if reduction == MEAN else -total
        return xp.asarray(result, scores.dtype), xp.asarray(target.size, scores.dtype)
    a = _columns(wide(xp, scores))
    where, share, counts = _weights_of(xp, a, target, wide(xp, weight), ignore_index)
    loss = -a[where] if a.size else xp.zeros((a.shape[0], a.shape[2]), a.dtype)
    if share is not None:
        loss = loss * share
    if counts is not None:  # not the product: an infinite score times nothing is NaN
        loss = xp.where(counts, loss, a.dtype.type(0))
    if reduction == NONE:
        return rounded(loss.reshape(target.shape), scores.dtype), xp.zeros((), scores.dtype)
    total = loss.size if share is None else share.sum(dtype=xp.float64)
    result = loss.sum(dtype=xp.float64)
    if reduction == MEAN:
        result = result / total if process.cuda_captures or total else xp.float64(math.nan)
    return xp.asarray(result, scores.dtype), xp.asarray(total, scores.dtype)


def _nll_meta(self, target, weight, reduction, ignore_index):
    return Spec(target._array.shape if reduction == NONE else (), self.dtype), Spec((), self.dtype)


def _nll_backward(xp, g, scores, target, weight, reduction, ignore_index, total_weight):
    if g.dtype == scores.dtype and _all_count(xp, scores, target, weight, ignore_index):
        out = xp.zeros(scores.shape, scores.dtype)
        out[xp.arange(target.size), target] = -g / total_weight if reduction == MEAN else -g
        return out
    a = _columns(wide(xp, scores))
    where, share, counts = _weights_of(xp, a, target, wide(xp, weight), ignore_index)
    result = -wide(xp, g).reshape(where[1].shape if reduction == NONE else (1, 1))
    result = result if share is None else result * share
    if reduction == MEAN:
        with xp.errstate(divide="ignore", invalid="ignore"):
            result = result / wide(xp, total_weight)
    if counts is not None:  # where none count, their weight is 0, and so is what a quotient by it would make NaN
        result = xp.where(counts, result, a.dtype.type(0))
    out = xp.zeros(a.shape, a.dtype)
    if a.size:
        out[where] = result
    return rounded(out.reshape(scores.shape), scores.dtype)


# ---- the same in operators, for batches of losses: class dimension `dim`, sums over `dims`
def _chosen(self: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, dim: int):
    """(targets with ignored ones at 0 and a class dimension, the weight of each)."""
    counts = target != ignore_index
    at = target.to(dtypes.int64).masked_fill(counts.logical_not(), 0)
    share = counts.to(self.dtype)
    if weight is not None:
        share = weight.index_select(0, at.reshape(-1)).reshape(at.shape) * share
    return at.unsqueeze(dim), share


def _batched_targets(args: tuple, dims: tuple, size: int):
    """(scores, targets, class dimension, dimensions to sum over) with the batch in front; None where weights have one."""
    self, target, weight = args[:3]
    if dims[2] is not None:
        return None
    self, target = (
        (t.unsqueeze(0).expand((size, *t.shape)) if d is None else t.movedim(d, 0))
        for t, d in zip((self, target), dims[:2], strict=True)
    )
    if self.ndim == 2:  # scores of one sample: its target may be written as one element of a list
        target = target.reshape(size)
    return self, target, 1 if self.ndim == 2 else 2, tuple(range(1, target.ndim))


def _nll_vmap(args, dims, size):
    result = _batched_targets(args, dims, size)
    if result is None:
        return None
    self, target, dim, inside = result
    at, share = _chosen(self, target, args[2], args[4], dim)
    loss = (-self.gather(dim, at).squeeze(dim) * share).masked_fill(target == args[4], 0)
    if args[3] == NONE:
        return (loss, loss.new_zeros((size,))), 0
    total, loss = (t.sum(inside) if inside else t for t in (share, loss))
    return (loss / total if args[3] == MEAN else loss, total), 0


def _nll_backward_vmap(args, dims, size):
    g, total = (
        (t.unsqueeze(0).expand((size, *t.shape)) if d is None else t.movedim(d, 0))
        for t, d in ((args[0], dims[0]), (args[6], dims[6]))
    )
    result = _batched_targets(args[1:4], dims[1:4], size)
    if result is None:
        return None
    self, target, dim, inside = result
    at, share = _chosen(self, target, args[3], args[5], dim)
    each = (size, *(1,) * len(inside))
    scale = -g.reshape(target.shape if args[4] == NONE else each)
    scale = scale / total.reshape(each) if args[4] == MEAN else scale
    result = (scale * share).masked_fill(target == args[5], 0)
    return self.new_zeros(self.shape).scatter(dim, at, result.unsqueeze(dim)), 0


def _nll_operators(suffix: str, check, node: str):
    """The forward and backward operators of nll_loss or nll_loss2d."""
    tail = "Tensor target, Tensor? weight, int reduction, SymInt ignore_index"
    backward = operator(
        f"nll_loss{suffix}_backward(Tensor grad_output, Tensor self, {tail}, Tensor total_weight) -> Tensor",
        lower=None if suffix else lower_nll_backward,
        kernel=_nll_backward,
        meta=lambda grad_output, self, *rest: Spec(self._array.shape, self.dtype),
        vmap=_nll_backward_vmap,
        vjp={
            "grad_output": lambda g, target, weight, reduction, ignore_index: forward(
                g, target, weight, reduction, ignore_index
            )[0],
        },
        **HIDDEN,
    )
    forward = operator(
        f"nll_loss{suffix}_forward(Tensor self, {tail}) -> (Tensor output, Tensor total_weight)",
        lower=None if suffix else lower_nll,
        kernel=_nll,
        check=check,
        meta=_nll_meta,
        vmap=_nll_vmap,
        node=node,
        named=False,
        nondifferentiable=(1,),
        vjp={
            "self": lambda g, self, target, weight, reduction, ignore_index, total_weight: backward(
                g, self, target, weight, reduction, ignore_index, total_weight
            )
        },
        **HIDDEN,
    )
    return forward, backward


nll_forward, nll_backward = _nll_operators("", _check_nll, "NllLossBackward0")
nll_2d_forward, nll_2d_backward = _nll_operators("2d", _check_nll_2d, "NllLoss2DBackward0")
_NLL = "(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100) -> Tensor"


@composite(f"nll_loss{_NLL}", **HIDDEN, autocast_cpu="float32", autocast_cuda="float32")
def nll_loss_op(self, target, weight, reduction, ignore_index):
    return dispatch(nll_forward, (self, target, weight, reduction, ignore_index))[0]


@composite(f"nll_loss2d{_NLL}", **HIDDEN, autocast_cpu="float32", autocast_cuda="float32")
def nll_loss2d_op(self, target, weight, reduction, ignore_index):
    return dispatch(nll_2d_forward, (self, target, weight, reduction, ignore_index))[0]


def _check_sizes(self: Tensor, target: Tensor) -> None:
    if not self.ndim:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if self.ndim != 1 and (not target.ndim or self.shape[0] != target.shape[0]):
        raise ValueError(
            f"Expected input batch_size ({self.shape[0]}) to match target batch_size "
            f"({target.shape[0] if target.ndim else 1})."
        )
    if self.ndim == 1 and target.ndim == 1 and target.shape[0] != 1:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.shape[0]}")


@composite(f"nll_loss_nd{_NLL}", **HIDDEN)
def nll_loss_nd(self, target, weight, reduction, ignore_index):
    if weight is not None:
        refuse_gradients("nll_loss_forward" if self.ndim < 3 else "nll_loss2d_forward", weight=weight)
    _check_sizes(self, target)
    if self.ndim <= 2:
        return dispatch(nll_loss_op, (self, target, weight, reduction, ignore_index))
    if self.ndim == 4:
        return dispatch(nll_loss2d_op, (self, target, weight, reduction, ignore_index))
    shape = (self.shape[0], *self.shape[2:])
    if tuple(target.shape[1:]) != shape[1:]:
        raise RuntimeError(f"Expected target size {list(shape)}, got {list(target.shape)}")
    plane = self.reshape(self.shape[0], self.shape[1], 1, -1)
    out = nll_loss2d_op(plane, target.reshape(target.shape[0], 1, -1), weight, reduction, ignore_index)
    return out.reshape(shape) if reduction == NONE else out


@front("nn.functional.nll_loss")
def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Minus the scores of the target classes."""
    args = (input, target, weight, reduction_number(reduction, size_average, reduce), ignore_index)
    return dispatch(nll_loss_nd, nll_loss_nd.convert(args))


# ---- cross entropy
def _check_weight(weight: Tensor | None, classes: int) -> None:
    if weight is not None and (weight.ndim != 1 or weight.shape[0] != classes):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got "
            "weight tensor of "
            f"shape: {list(weight.shape)}"
        )


def _by_class(weight: Tensor, ndim: int) -> Tensor:
    return weight.reshape([-1 if d == (0 if ndim == 1 else 1) else 1 for d in range(ndim)])


def _probabilities(self, target, weight, reduction, label_smoothing):
    """Cross entropy with a distribution over classes for each element."""
    dim = 0 if self.ndim == 1 else 1
    classes = self.shape[dim]
    if not target.dtype.is_floating_point:
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype.scalar_name}"
        )
    _check_weight(weight, classes)
    scores = log_softmax(self, dim)
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    products = scores * target if weight is None else scores * target * _by_class(weight, self.ndim)
    if reduction == NONE:
        return -products.sum(dim)
    if reduction == SUM:
        return -products.sum()
    count = self.numel() // classes if classes else 0
    return -products.sum() / (count if count else math.nan)


def _smoothed(self, target, weight, reduction, ignore_index, label_smoothing):
    """Cross entropy with a share of each target spread evenly over the classes."""
    dim = 0 if self.ndim == 1 else 1
    classes = self.shape[dim]
    _check_weight(weight, classes)
    scores = log_softmax(self, dim)
    hard = nll_loss_nd(scores, target, weight, reduction, ignore_index)
    spread = -(scores if weight is None else scores * _by_class(weight, self.ndim)).sum(dim)
    ignored = target == ignore_index
    spread = spread.masked_fill(ignored.reshape(spread.shape), 0)
    if reduction == SUM:
        spread = spread.sum()
    elif reduction == MEAN:
        if weight is None:
            spread = spread.sum() / ignored.logical_not().sum()
        else:
            at = target.masked_fill(ignored, 0).flatten()
            spread = spread.sum() / weight.gather(0, at).masked_fill(ignored.flatten(), 0).sum()
    return (1 - label_smoothing) * hard + spread * (label_smoothing / classes)


@composite(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100, "
    "float label_smoothing=0.0) -> Tensor",
    **HIDDEN,
    autocast_cpu="float32",
    autocast_cuda="float32",
)
def cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing):
    if self.shape == target.shape and self.ndim:
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _probabilities(self, target, weight, reduction, _check_smoothing(label_smoothing))
    if _check_smoothing(label_smoothing) > 0:
        return _smoothed(self, target, weight, reduction, ignore_index, label_smoothing)
    if not self.ndim:
        wrap_dim_of_scalar(1)
    scores = dispatch(log_softmax, (self, 0 if self.ndim == 1 else 1, None))
    return dispatch(nll_loss_nd, (scores, target, weight, reduction, ignore_index))


def _check_smoothing(label_smoothing: float) -> float:
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    return label_smoothing


def _quick_entropy(scores, target, weight, reduction, ignore_index, label_smoothing):
    """Of plain tensors where a gradient is wanted, what the operators in between come to; None where a call takes more than that."""
    if overridden_operators or ambient.mode != 1 or scores.__class__ is not Tensor:
        return None  # a kernel registered for any operator in between wins
    if not is_plain_tensor(scores) or scores._autograd is None:
        return None
    if target.__class__ is not Tensor or target._keys or ignore_index.__class__ is not int:
        return None
    if weight is not None and (not is_plain_tensor(weight) or weight._autograd is not None):
        return None
    shape, at = scores._array.shape, target._array
    if len(shape) not in (2, 4) or at.shape != (shape[0], *shape[2:]) or scores.dtype not in _FLOATS:
        return None
    if not label_smoothing:
        return dispatch(
            nll_2d_forward if len(shape) == 4 else nll_forward,
            (dispatch(log_softmax_op, (scores, 1, False)), target, weight, reduction, ignore_index),
        )[0]
    if weight is not None or reduction == NONE or not 0 < label_smoothing <= 1 or process.deterministic:
        return None
    if len(shape) != 2 or not at.size or not shape[1] or target.dtype is not dtypes.int64 or (at == ignore_index).any():
        return None
    scores = dispatch(log_softmax_op, (scores, 1, False))
    hard = dispatch(nll_forward, (scores, target, None, reduction, ignore_index))[0]
    share = label_smoothing / shape[1] / (at.size if reduction == MEAN else 1)
    return hard * (1 - label_smoothing) - scores.sum() * share


_FLOATS = (dtypes.float32, dtypes.float64)


@front("nn.functional.cross_entropy")
def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    """The cross entropy of class scores with target classes or probabilities."""
    number = reduction_number(reduction, size_average, reduce)
    args = (input, target, weight, number, ignore_index, label_smoothing)
    if (out := _quick_entropy(*args)) is not None:
        return out
    return dispatch(cross_entropy_loss, cross_entropy_loss.convert(args))


@front("nn.functional.linear_cross_entropy")
def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """Cross entropy of `linear(input, linear_weight, linear_bias)`; weights of more dimensions give a loss of more."""
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            f"expected equal input and linear_weight last dimensions (in_features), got {input.shape[-1]} and "
            f"{linear_weight.shape[-1]}, respectively"
        )
    if target.dtype.is_floating_point and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    shape = linear_weight.shape[:-1]
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    scores = linear(input, linear_weight.reshape(-1, linear_weight.shape[-1]), bias)
    scores = scores.reshape((*input.shape[:-1], *shape))
    return cross_entropy(
        scores,
        target,
        weight,
        reduction=reduction,
        ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )
