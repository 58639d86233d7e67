"""Losses that compare elements: squared, absolute, Huber, cross entropy of two classes, soft margin.

In: predictions and targets. Out: the losses themselves, their mean or their sum (`reduction` 0, 1, 2, as the operators
have it; `loss_functions` has the names). A fused loss is one pass forward and one backward: its slope times the
incoming gradient is an operator of its own, linear in the gradient, whose rule for the prediction is the second
derivative.
"""

from __future__ import annotations

import math

from ...core.dtype import BOOL, COMPLEX, INT, by_numpy, dtype
from ...core.geometry import broadcast_shapes
from ...core.promotion import promote_types
from ...core.tensor import Tensor
from ..elementwise.activations import HIDDEN
from ..elementwise.array_kernels import log1pexp, logistic
from ..elementwise.selection import where
from ..elementwise.smooth_activations import log_sigmoid
from ..family.base import composite, operator
from ..family.formats import elementwise
from ..family.pointwise import pointwise
from ..system.inplace import check_cast
from ..system.operator import Operator, Spec
from .loss_lowering import lower_logits_loss, lower_loss

NONE, MEAN, SUM = 0, 1, 2


def reduced(loss: Tensor, reduction: int) -> Tensor:
    """Losses of elements, their mean or their sum."""
    return loss.mean() if reduction == MEAN else loss.sum() if reduction == SUM else loss


def shared(g: Tensor, numel: int, reduction: int) -> Tensor:
    """The gradient that each element gets of a reduced loss."""
    return g * (1 / max(numel, 1)) if reduction == MEAN else g


def _reduce(xp, loss, reduction: int, d: dtype):
    if reduction != NONE:
        total = xp.add.reduce(loss, axis=None)
        loss = xp.asarray(total / loss.size if reduction == MEAN else total)
    return loss if loss.dtype == d.numpy else loss.astype(d.numpy)


# ---- fused losses
def _spec_of(promoting: bool):
    def spec(self, target, reduction, *rest) -> Spec:
        shape = () if reduction else broadcast_shapes(self._array.shape, target._array.shape)
        return Spec(shape, promote_types(self.dtype, target.dtype) if promoting else self.dtype)

    return spec


def _kernel_of(value, kernel_name: str, check=None, promoting: bool = True):
    """The kernel of a loss: promote, compare, reduce; halves are computed as floats.

    Where it is not `promoting`, the loss is of the prediction's dtype, which must be able to hold it.
    """

    def kernel(xp, x, target, reduction, *attributes):
        ours = by_numpy[x.dtype]
        d = promote_types(ours, by_numpy[target.dtype])
        if not promoting:
            check_cast(d, ours)
            d = ours
        if not d.is_floating_point:
            raise NotImplementedError(f"\"{kernel_name}\" not implemented for '{d.scalar_name}'")
        if check is not None:
            check(*attributes)
        if x.shape != target.shape:
            broadcast_shapes(x.shape, target.shape)
        working = d.numpy if d.itemsize > 2 else xp.float32
        loss = value(xp, x.astype(working, copy=False), target.astype(working, copy=False), *attributes)
        return _reduce(xp, loss, reduction, d)

    return kernel


def _vmap_of(op_of):
    """Batches of losses: element by element, then reduced over all but the batch."""

    def rule(args: tuple, dims: tuple, size: int):
        op = op_of()
        at = op.schema.index["reduction"]
        moved = [_at_front(a, d) for a, d in zip(args, dims, strict=True)]
        rank = max(a.ndim - (d is not None) for a, d in zip(args, dims, strict=True) if isinstance(a, Tensor))
        moved = [_padded(a, d, rank) for a, d in zip(moved, dims, strict=True)]
        reduction, moved[at] = moved[at], NONE
        loss = op(*moved)
        if reduction == NONE:
            return loss, 0
        flat = loss.reshape(loss.shape[0], -1)
        return (flat.mean(1) if reduction == MEAN else flat.sum(1)), 0

    return rule


def _at_front(a, dim):
    return a.movedim(dim, 0) if isinstance(a, Tensor) and dim is not None else a


def _padded(a, dim, rank: int):
    """A batched tensor with ones after its batch dimension, so that it broadcasts with others of this rank."""
    if not isinstance(a, Tensor) or dim is None or a.ndim - 1 == rank:
        return a
    return a.reshape(a.shape[0], *(1,) * (rank - a.ndim + 1), *a.shape[1:])


def fused_loss(
    name: str,
    value,
    slope,
    curve,
    *,
    kernel_name: str,
    attribute: str = "",
    check=None,
    symmetric: bool = True,
    promoting: bool = True,
):
    """Declare a loss of `self - target` (or of both): value, slope and second derivative with respect to `self`.

    `attribute` is a schema argument ("float beta=1.0") that the three functions take after the tensors.
    """
    extra = attribute.split(" ")[1].split("=")[0] if attribute else None
    tail = f", {attribute}" if attribute else ""
    inner = f", {attribute.partition('=')[0]}" if attribute else ""

    def declare_slope() -> Operator:
        def again(g, self, target, *rest):
            return slope_op.function(g, self, target, *rest)

        def bend(g, grad_output, self, target, *rest):
            return g * grad_output * curve(self, target, *rest)

        rules = {
            "grad_output": _named(again, "g, self, target", extra),
            "self": _named(bend, "g, grad_output, self, target", extra),
        }
        if symmetric:
            rules["target"] = _named(lambda *a: -bend(*a), "g, grad_output, self, target", extra)
        slope_op = pointwise(
            f"_{name}_slope(Tensor grad_output, Tensor self, Tensor target{inner}) -> Tensor",
            supports="real_float",
            kernel=lambda xp, g, x, target, *rest: g * slope(xp, x, target, *rest),
            **HIDDEN,
            vjp=rules,
        )
        return slope_op

    slope_op = declare_slope()

    def rule(g, self, target, reduction, *rest):
        numel = math.prod(broadcast_shapes(self._array.shape, target._array.shape))
        return slope_op.function(shared(g, numel, reduction), self, target, *rest)

    rules = {"self": _named(rule, "g, self, target, reduction", extra)}
    if symmetric:
        rules["target"] = _named(lambda *a: -rule(*a), "g, self, target, reduction", extra)
    loss = operator(
        f"{name}(Tensor self, Tensor target, int reduction=1{tail}) -> Tensor",
        lower=lower_loss,
        kernel=_kernel_of(value, kernel_name, check, promoting),
        strides=lambda shape, *args: elementwise(shape, *args) if shape else None,
        meta=_spec_of(promoting),
        vjp=rules,
        vmap=_vmap_of(lambda: loss),
        public=f"_nn.{name}",
        autocast_cpu="float32",
        autocast_cuda="float32",
    )
    composite(
        f"{name}_backward(Tensor grad_output, Tensor self, Tensor target, int reduction{inner}) -> Tensor",
        function=False,
        method=False,
    )(lambda grad_output, self, target, reduction, *rest: rule(grad_output, self, target, reduction, *rest))
    return loss


def _named(function, parameters: str, extra: str | None):
    """A rule's parameters are its names: the same function under the names that are to be saved."""
    names = parameters + (f", {extra}" if extra else "")
    return eval(f"lambda {names}: function({names})", {"function": function})  # noqa: S307 - names from declarations


mse_loss = fused_loss(
    "mse_loss",
    lambda xp, x, t: xp.square(x - t),
    lambda xp, x, t: 2 * (x - t),
    lambda self, target: 2,
    kernel_name="mse_cpu",
)


def _check_beta(beta) -> None:
    if not beta >= 0:  # NaN neither
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")


def _smooth(xp, x, t, beta):
    apart = xp.abs(x - t)
    if beta == 1:
        return _rounded_corner(xp, apart, beta)
    return xp.where(apart < beta, 0.5 * apart * apart / beta, apart - 0.5 * beta) if beta else apart


smooth_l1_loss = fused_loss(
    "smooth_l1_loss",
    _smooth,
    lambda xp, x, t, beta: xp.clip((x - t) / beta, -1, 1) if beta else xp.sign(x - t),
    lambda self, target, beta: ((self - target).abs() < beta) / (beta or 1),
    kernel_name="smooth_l1_cpu",
    attribute="float beta=1.0",
    check=_check_beta,
)


def _check_delta(delta) -> None:
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")


def _huber(xp, x, t, delta):
    return _rounded_corner(xp, xp.abs(x - t), delta)


def _rounded_corner(xp, apart, until):
    """A parabola, and from `until` on a line: m * (apart - m / 2), where m is the smaller of both."""
    near = xp.minimum(apart, until)
    apart -= 0.5 * near
    apart *= near
    return apart


huber_loss = fused_loss(
    "huber_loss",
    _huber,
    lambda xp, x, t, delta: xp.clip(x - t, -delta, delta),
    lambda self, target, delta: (self - target).abs() < delta,
    kernel_name="huber_cpu",
    attribute="float delta=1.0",
    check=_check_delta,
    promoting=False,
)

soft_margin_loss = fused_loss(
    "soft_margin_loss",
    lambda xp, x, t: log1pexp(xp, -t * x),
    lambda xp, x, t: -t * logistic(xp, -t * x),
    lambda self, target: target * target * (target * self).sigmoid() * (-target * self).sigmoid(),
    kernel_name="soft_margin_cpu",
    symmetric=False,
    promoting=False,
)


# ---- cross entropy of two classes
def _check_probability(xp, x, what: str) -> None:
    if x.size and not bool(xp.all((x >= 0) & (x <= 1))):
        raise RuntimeError(f"all elements of {what} should be between 0 and 1")


def _binary_cross_entropy(xp, x, target, weight, reduction):
    d = by_numpy[x.dtype]
    if x.dtype != target.dtype:
        raise RuntimeError(f"Found dtype {by_numpy[target.dtype].scalar_name} but expected {d.scalar_name}")
    if not d.is_floating_point:
        raise NotImplementedError(f"\"binary_cross_entropy\" not implemented for '{d.scalar_name}'")
    _check_probability(xp, x, "input")
    _check_probability(xp, target, "target")
    if d.itemsize == 2:
        x, target = x.astype(xp.float32), target.astype(xp.float32)
    loss = (target - 1) * xp.maximum(xp.log1p(-x), -100) - target * xp.maximum(xp.log(x), -100)
    if weight is not None:
        loss = loss * weight
    return _reduce(xp, loss, reduction, d)


def _weighted(g: Tensor, weight: Tensor | None) -> Tensor:
    return g if weight is None else g * weight


binary_cross_entropy_slope = pointwise(
    "_binary_cross_entropy_slope(Tensor grad_output, Tensor self, Tensor target) -> Tensor",
    supports="real_float",
    kernel=lambda xp, g, x, t: g * (x - t) / xp.maximum((1 - x) * x, xp.asarray(1e-12, dtype=x.dtype)),
    **HIDDEN,
    vjp={
        "grad_output": lambda g, self, target: binary_cross_entropy_slope.function(g, self, target),
        "self": lambda g, grad_output, self, target: g * grad_output * _probability_curve(self, target),
        "target": lambda g, grad_output, self: -g * grad_output / (self * (1 - self)).clamp_min(1e-12),
    },
)


def _probability_curve(self: Tensor, target: Tensor) -> Tensor:
    p = self.clamp(1e-12, 1 - 1e-12)
    return (p * p - 2 * p * target + target) / (p * (1 - p)).square()


def _bce_rule(g, self, target, weight, reduction):
    return binary_cross_entropy_slope.function(_weighted(shared(g, self.numel(), reduction), weight), self, target)


def _bce_target_rule(g, self, target_info, weight, reduction):
    odds = (1 - self).log().clamp_min(-100) - self.log().clamp_min(-100)
    return _weighted(shared(g, self.numel(), reduction), weight) * odds


def _pair_spec(self, target, weight, reduction) -> Spec:
    return Spec(() if reduction else self._array.shape, self.dtype)


binary_cross_entropy = operator(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
    kernel=_binary_cross_entropy,
    meta=_pair_spec,
    vjp={"self": _bce_rule, "target": _bce_target_rule},
    vmap=_vmap_of(lambda: binary_cross_entropy),
    public="_nn.binary_cross_entropy",
    autocast_cpu="float32",
)


# ---- cross entropy of two classes, from logits
def _logits_loss(xp, x, target, weight, pos_weight, reduction):
    d = by_numpy[x.dtype]
    if not d.is_floating_point:
        raise NotImplementedError(f"\"log_sigmoid_cpu\" not implemented for '{d.scalar_name}'")
    d = by_numpy[target.dtype]  # the loss is computed in the place of `1 - target`
    check_cast(promote_types(by_numpy[x.dtype], d), d)
    working = d.numpy if d.itemsize > 2 else xp.float32
    x, target = x.astype(working, copy=False), target.astype(working, copy=False)
    log_likelihood = xp.negative(log1pexp(xp, -x))
    if pos_weight is not None:
        log_likelihood = log_likelihood * ((pos_weight.astype(working) - 1) * target + 1)
    loss = (1 - target) * x - log_likelihood
    if weight is not None:
        loss = loss * weight.astype(working)
    return _reduce(xp, loss, reduction, d)


def _logits_slope(xp, g, x, target, weight, pos_weight):
    slope = logistic(xp, x)
    if pos_weight is None:
        slope = slope - target
    else:
        positive = pos_weight * target
        slope = (positive + 1 - target) * slope - positive
    return g * slope if weight is None else g * slope * weight


def _logits_bend(g, grad_output, self, target, weight, pos_weight):
    s = self.sigmoid()
    curve = s * (1 - s)
    if pos_weight is not None:
        curve = curve * (pos_weight * target + 1 - target)
    return _weighted(g * grad_output * curve, weight)


def _logits_slope_target(g, grad_output, self, weight, pos_weight):
    change = -1 if pos_weight is None else (pos_weight - 1) * self.sigmoid() - pos_weight
    return _weighted(g * grad_output * change, weight)


logits_slope = pointwise(
    "_binary_cross_entropy_with_logits_slope(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, "
    "Tensor? pos_weight) -> Tensor",
    supports="real_float",
    kernel=_logits_slope,
    **HIDDEN,
    vjp={
        "grad_output": lambda g, self, target, weight, pos_weight: logits_slope.function(
            g, self, target, weight, pos_weight
        ),
        "self": _logits_bend,
        "target": _logits_slope_target,
    },
)


def _logits_rule(g, self, target, weight, pos_weight, reduction):
    if g.dtype is not self.dtype:  # the loss has the target's dtype: what is shared out is not rounded to it
        g = g.to(promote_types(g.dtype, self.dtype))
    return logits_slope.function(shared(g, self.numel(), reduction), self, target, weight, pos_weight)


def _logits_target_rule(g, self, target_info, weight, pos_weight, reduction):
    change = -self if pos_weight is None else (1 - pos_weight) * log_sigmoid(self) - self
    return _weighted(shared(g, self.numel(), reduction) * change, weight)


def _logits_spec(self, target, weight, pos_weight, reduction) -> Spec:
    given = [t for t in (self, target, weight, pos_weight) if t is not None]
    return Spec(() if reduction else broadcast_shapes(*[t._array.shape for t in given]), target.dtype)


binary_cross_entropy_with_logits = operator(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
    "int reduction=1) -> Tensor",
    kernel=_logits_loss,
    lower=lower_logits_loss,
    meta=_logits_spec,
    vjp={"self": _logits_rule, "target": _logits_target_rule},
    vmap=_vmap_of(lambda: binary_cross_entropy_with_logits),
    method=False,
    out=False,
    autocast_cpu="float32",
    autocast_cuda="float32",
)


# ---- losses composed of other operators
@composite(
    "l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    public="_nn.l1_loss",
    out=False,
    autocast_cpu="float32",
    autocast_cuda="float32",
)
def l1_loss(self, target, reduction):
    return reduced((self - target).abs(), reduction)


@composite(
    "kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
    method=False,
    out=False,
    autocast_cpu="float32",
    autocast_cuda="float32",
)
def kl_div(self, target, reduction, log_target):
    for kind, category in (("Complex", COMPLEX), ("Integral", INT), ("Integral", BOOL)):
        if category in (self.dtype.category, target.dtype.category):
            raise RuntimeError(f"kl_div: {kind} inputs not supported.")
    loss = target.exp() * (target - self) if log_target else target.xlogy(target) - target * self
    return reduced(loss, reduction)


@composite(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
    method=False,
    out=False,
    autocast_cpu="float32",
    autocast_cuda="float32",
)
def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


@composite(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> Tensor",
    method=False,
    out=False,
    autocast_cpu="float32",
    autocast_cuda="float32",
)
def hinge_embedding_loss(self, target, margin, reduction):
    apart = where(target != 1, (margin - self).clamp_min(0), 0)
    return reduced(apart + where(target != -1, self, 0), reduction)


@composite(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor",
    method=False,
    out=False,
    autocast_cpu="float32",
    autocast_cuda="float32",
)
def margin_ranking_loss(input1, input2, target, margin, reduction):
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)
