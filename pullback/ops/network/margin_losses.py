"""Losses of rows of scores: by how much other classes come within a margin of those that are wanted.

Without squares they are made of straight pieces: a loss is a sum of slopes times scores. Small plain calls compute the slopes
beside the losses, once, and the gradient is their product with that of the losses; the slopes have none. All other calls, and
those with squares, are written in operators.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core import modes
from ...core.modes import ambient, process
from ...core.tensor import PLAIN, Tensor
from ..eager.functions import overridden_operators
from ..elementwise.selection import where
from ..family.base import composite, operator
from ..reduce.reductions import not_implemented
from ..system.calls import front
from ..system.operator import Operator, Spec, exports
from ..system.record import refuse_gradients
from .loss_functions import is_readable, reduction_code
from .pointwise_losses import MEAN, reduced


# ---- arguments
def _rows(x: Tensor) -> Tensor:
    return x if x.ndim == 2 else x.reshape(1, -1)


def _check_scores(x: Tensor) -> None:
    if x.ndim > 2 or x.ndim and not x.shape[-1]:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(x.shape)}"
        )


def _check_long(target: Tensor) -> None:
    if target.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_name}")


def _check_classes(self: Tensor, target: Tensor, weight: Tensor | None) -> None:
    _check_scores(self)
    count = self.shape[0] if self.ndim == 2 else 1
    if target.ndim > 1 or target.numel() != count:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{count}], but got {list(target.shape)}. Input has shape {list(self.shape)}."
        )
    _check_long(target)
    if self.dtype.category < dtypes.FLOAT:
        raise not_implemented("multi_margin_loss_cpu_kernel", self.dtype)
    classes = self.shape[-1] if self.ndim else 1
    if weight is not None and (weight.ndim > 1 or weight.numel() != classes):
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    if is_readable(target) and target.numel() and not bool(((target >= 0) & (target < classes)).all().item()):
        raise RuntimeError("target out of range")


# ---- losses and slopes
def _slopes_of_classes(xp, x, target, margin, weight):
    """A class that counts has its share of what it is short by; the wanted class has those of all, the other way."""
    rows = xp.arange(x.shape[0])
    short = x.dtype.type(margin) - x[rows, target][:, None] + x
    counts = short > 0
    counts[rows, target] = False
    share = (1 if weight is None else weight[target][:, None]) / x.dtype.type(x.shape[1])
    slopes = xp.where(counts, share, 0).astype(x.dtype)
    losses = (xp.where(counts, short, 0) * slopes).sum(-1)
    slopes[rows, target] = -slopes.sum(-1)
    return losses.astype(x.dtype), slopes


def _slopes_of_labels(xp, x, target):
    listed = xp.logical_and.accumulate(target >= 0, axis=1)  # labels count up to the first -1
    wanted = xp.zeros(x.shape, bool)
    losses, slopes = xp.zeros(x.shape[:1], x.dtype), xp.zeros(x.shape, x.dtype)
    for r in range(x.shape[0]):
        wanted[r, target[r, listed[r]]] = True
        for label in target[r, listed[r]]:
            short = 1 - x[r, label] + x[r]
            counts = (short > 0) & ~wanted[r]
            losses[r] += short[counts].sum()
            slopes[r] += counts
            slopes[r, label] -= counts.sum()
    return losses / x.dtype.type(x.shape[1]), slopes / x.dtype.type(x.shape[1])


def _rows_with_slopes(schema: str, kernel) -> Operator:
    return operator(
        schema,
        kernel=kernel,
        meta=lambda self, *rest: (Spec(self.shape[:1], self.dtype), Spec(self.shape, self.dtype)),
        vjp={"self": lambda g, out1: g.unsqueeze(1) * out1},
        jvp={"self": lambda t, out1: ((t * out1).sum(1), None)},
        nondifferentiable=(1,),
        function=False,
        method=False,
        out=False,
    )


multi_margin_rows = _rows_with_slopes(
    "_multi_margin_rows(Tensor self, Tensor target, Scalar margin, Tensor? weight) -> (Tensor, Tensor)",
    _slopes_of_classes,
)
multilabel_margin_rows = _rows_with_slopes(
    "_multilabel_margin_rows(Tensor self, Tensor target) -> (Tensor, Tensor)", _slopes_of_labels
)


def _small_rows(op: Operator, self: Tensor, target: Tensor, *rest) -> Tensor | None:
    """Losses of rows by the function in C, which checks classes too; None where the call is not one of those it takes."""
    if op.native is None or ambient.mode >= modes.LISTENING or process.deterministic or overridden_operators:
        return None
    others = [v for v in (target, *rest) if isinstance(v, Tensor)]
    if any(t.__class__ not in PLAIN or t._keys for t in (self, *others)) or any(
        t._autograd is not None for t in others
    ):
        return None
    out = op.native((self, target, *rest))
    return out if out is None else op.record(out, self, target, *rest)[0] if ambient.mode else out[0]


# ---- the losses
@composite(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) "
    "-> Tensor",
    public="_nn.multi_margin_loss",
    out=False,
    autocast_cpu="float32",
    autocast_cuda="float32",
)
def multi_margin_loss(self, target, p, margin, weight, reduction):
    if p not in (1, 2):
        raise RuntimeError("only p == 1 and p == 2 supported")
    if p == 1 and (rows := _small_rows(multi_margin_rows, self, target, margin, weight)) is not None:
        return reduced(rows, reduction)
    _check_classes(self, target, weight)
    x, index = _rows(self), target.reshape(-1, 1)
    short = margin - x.gather(1, index) + x
    counts = (short > 0).scatter(
        1, index, False
    )  # what keeps its distance counts nothing, whatever its weight; nor does NaN
    short = short.where(counts, 0)
    short = short if p == 1 else short * short
    if weight is not None:
        short = short * weight[index].where(counts, 0)
    loss = short.sum(1) / x.shape[1]
    return reduced(loss if target.ndim else loss.reshape(()), reduction)


@front("nn.functional.multi_margin_loss")
def multi_margin(
    input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"
) -> Tensor:
    """By how much other classes come within a margin of the target's score."""
    code = reduction_code(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    refuse_gradients("multi_margin_loss", weight=weight)
    return multi_margin_loss.function(input, target, p, margin, weight, code)


def _check_labels(self: Tensor, target: Tensor) -> None:
    _check_scores(self)
    if tuple(target.shape) != tuple(self.shape):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}")
    _check_long(target)
    if is_readable(target) and target.numel():
        for limit in (target.min(), target.max()):
            if not -1 <= int(limit.item()) < (self.shape[-1] if self.ndim else 1):
                raise RuntimeError("argument #2 'target' is out of range")


def _label_margins(self: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """(labels, which are in rows, classes that are labels, margins of labels to classes, which margins count)."""
    _check_labels(self, target)
    if self.dtype.category < dtypes.FLOAT:
        raise not_implemented("multilabel_margin_loss_forward_out_frame", self.dtype)
    x, labels = _rows(self), _rows(target)
    listed = (labels < 0).cumsum(1) == 0  # labels count up to the first -1
    index = labels.clamp_min(0)
    wanted = exports["torch"]["zeros_like"](labels).scatter_add(1, index, listed.to(labels.dtype)) > 0
    if (
        ambient.mode < modes.LISTENING and not labels._keys and labels.numel()
    ):  # nobody writes a program down: cut to the longest
        most = max(int(listed.sum(1).max().item()), 1)
        listed, index = listed[:, :most], index[:, :most]
    short = 1 - x.gather(1, index).unsqueeze(2) + x.unsqueeze(1)
    counted = listed.unsqueeze(2).logical_and(wanted.logical_not().unsqueeze(1)).logical_and(short > 0)  # NaN is not
    return index, wanted, short, counted


def _label_loss(self: Tensor, short: Tensor, counted: Tensor, reduction: int) -> Tensor:
    loss = where(counted, short, 0).sum((1, 2)) / short.shape[2]
    return reduced(loss if self.ndim == 2 else loss.reshape(()), reduction)


@composite(
    "multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    public="_nn.multilabel_margin_loss",
    out=False,
    autocast_cpu="float32",
    autocast_cuda="float32",
)
def multilabel_margin_loss(self, target, reduction):
    if (rows := _small_rows(multilabel_margin_rows, self, target)) is not None:
        return reduced(rows, reduction)
    _, _, short, counted = _label_margins(self, target)
    return _label_loss(self, short, counted, reduction)


@composite(
    "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)",
    function=False,
    method=False,
)
def multilabel_margin_loss_forward(self, target, reduction):
    _, wanted, short, counted = _label_margins(self, target)
    return _label_loss(self, short, counted, reduction), wanted.to(self.dtype).reshape(target.shape)


@composite(
    "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) "
    "-> Tensor",
    function=False,
    method=False,
)
def multilabel_margin_loss_backward(grad_output, self, target, reduction, is_target):
    index, _, _, counted = _label_margins(self, target)
    broken = counted.to(self.dtype)
    slope = broken.sum(1).scatter_add(1, index, -broken.sum(2))
    share = slope.shape[1] * (max(slope.shape[0], 1) if reduction == MEAN else 1)
    return (slope * grad_output.reshape(-1, 1) / share).reshape(self.shape)


@front("nn.functional.multilabel_margin_loss")
def multilabel_margin(input, target, size_average=None, reduce=None, reduction="mean") -> Tensor:
    """By how much classes that are not among the labels come within a margin of those that are."""
    return multilabel_margin_loss.function(input, target, reduction_code(reduction, size_average, reduce))
