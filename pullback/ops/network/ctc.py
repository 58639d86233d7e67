"""Connectionist temporal classification: the likelihood of a label sequence under all its alignments to time steps.

Log probabilities are (time, samples, classes). A sequence of L labels has 2 L + 1 states: its labels with blanks
between, before and after. `log_alpha[n, t, s]` is the log probability of all ways to be in state s at time t. As in
PyTorch, the gradient takes the log probabilities to be results of log_softmax.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.tensor import META, Tensor
from ..family.base import composite, operator
from ..reduce.reductions import HIDDEN, not_implemented
from ..system.calls import front
from ..system.operator import NOT_IMPLEMENTED, DataDependent, Spec
from .class_losses import MEAN, SUM, reduction_number


# ---- states
def _padded(xp, targets, lengths, width: int):
    """Labels in rows, one row a sample, from either form of targets."""
    rows = xp.zeros((len(lengths), width), xp.int64)
    start = 0
    for n, length in enumerate(lengths):
        rows[n, :length] = targets[n, :length] if targets.ndim == 2 else targets[start : start + length]
        start += length
    return rows


def _states(xp, targets, lengths, blank: int, count: int):
    """(label of each state, whether the state before last may be skipped to it, whether the state exists)."""
    rows = _padded(xp, targets, lengths, count // 2)
    labels = xp.full((rows.shape[0], 2 * rows.shape[1] + 1), blank, xp.int64)
    labels[:, 1::2] = rows
    skip = xp.zeros(labels.shape, bool)
    skip[:, 2:] = labels[:, 2:] != labels[:, :-2]
    exists = xp.arange(labels.shape[1]) < 2 * xp.asarray(lengths, xp.int64).reshape(-1, 1) + 1
    return labels, skip, exists


def _shift(xp, a, by: int):
    """States moved up (or down) by some places, impossible ones moved in."""
    out = xp.full_like(a, -xp.inf)
    if by > 0:
        out[:, by:] = a[:, :-by]
    else:
        out[:, :by] = a[:, -by:]
    return out


def _step(xp, a, skip, by: int):
    """All ways to reach each state in one step; `skip` says where two steps at once are allowed."""
    twice = xp.where(skip, _shift(xp, a, 2 * by), -xp.inf)
    return xp.logaddexp(xp.logaddexp(a, _shift(xp, a, by)), twice)


def _emissions(xp, log_probs, labels):
    """log p[t, n, label of state s] as (samples, time, states)."""
    by_sample = xp.moveaxis(log_probs, 0, 1)
    return xp.take_along_axis(
        by_sample, xp.broadcast_to(labels[:, None, :], (*by_sample.shape[:2], labels.shape[1])), 2
    )


def _forward(xp, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    return _alignments(
        xp, log_probs, targets, input_lengths, target_lengths, blank, 2 * max(target_lengths, default=0) + 1
    )


def _alignments(xp, log_probs, targets, input_lengths, target_lengths, blank, count: int):
    """(minus the log likelihood, log_alpha) with room for `count` states."""
    labels, skip, exists = _states(xp, targets, target_lengths, blank, count)
    emit = _emissions(xp, log_probs, labels)
    samples, time, count = emit.shape
    alpha = xp.full(emit.shape, -xp.inf, log_probs.dtype)
    lengths = xp.asarray(target_lengths, xp.int64)
    for t in range(time):
        if t == 0:
            reach = xp.where((xp.arange(count) < 2) & exists, 0, -xp.inf).astype(log_probs.dtype)
            reach = xp.broadcast_to(reach, (samples, count))
        else:
            reach = _step(xp, alpha[:, t - 1], skip, 1)
        alive = exists & (t < xp.asarray(input_lengths, xp.int64)).reshape(-1, 1)
        alpha[:, t] = xp.where(alive, reach + emit[:, t], -xp.inf)
    each, last = xp.arange(samples), xp.asarray(input_lengths, xp.int64) - 1
    ends = (
        xp.logaddexp(
            alpha[each, last, 2 * lengths],
            xp.where(lengths > 0, alpha[each, last, xp.maximum(2 * lengths - 1, 0)], -xp.inf),
        )
        if time
        else xp.full(samples, -xp.inf)
    )
    ends = xp.where(last >= 0, ends, xp.where(lengths == 0, 0, -xp.inf))
    return (-ends).astype(log_probs.dtype), alpha


def _backward(xp, g, log_probs, targets, input_lengths, target_lengths, nll, log_alpha, blank, zero_infinity):
    labels, skip, exists = _states(xp, targets, target_lengths, blank, log_alpha.shape[2])
    emit = _emissions(xp, log_probs, labels)
    samples, time, count = emit.shape
    lengths, steps = (
        xp.asarray(target_lengths, xp.int64).reshape(-1, 1),
        xp.asarray(input_lengths, xp.int64).reshape(-1, 1),
    )
    at = xp.arange(count)
    start = exists & (at >= 2 * lengths - 1)
    skip_back = xp.zeros_like(skip)
    skip_back[:, :-2] = skip[:, 2:]
    out = xp.zeros((samples, time, log_probs.shape[2]), log_probs.dtype)
    beta = xp.full((samples, count), -xp.inf, log_probs.dtype)
    each = xp.broadcast_to(xp.arange(samples)[:, None], (samples, count))
    for t in range(time - 1, -1, -1):
        reach = xp.where(steps - 1 == t, xp.where(start, 0, -xp.inf), _step(xp, beta, skip_back, -1))
        beta = xp.where(exists & (t < steps), reach + emit[:, t], -xp.inf).astype(log_probs.dtype)
        ways = xp.exp(log_alpha[:, t] + beta - emit[:, t] + nll[:, None])
        xp.add.at(out[:, t], (each, labels), xp.where(xp.isfinite(ways), -ways, 0).astype(out.dtype))
    out += xp.exp(xp.moveaxis(log_probs, 0, 1))
    out *= g.reshape(-1, 1, 1)
    out[xp.arange(time) >= steps] = 0
    lost = xp.isinf(nll)
    out[lost] = 0 if zero_infinity else xp.nan
    out[xp.arange(time) >= steps] = 0
    return xp.ascontiguousarray(xp.moveaxis(out, 1, 0))


# ---- checks
def _check(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    if log_probs.dtype not in (dtypes.float32, dtypes.float64):
        raise not_implemented("ctc_loss_cpu", log_probs.dtype)
    time, samples, classes = log_probs._array.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    if len(input_lengths) != samples:
        raise RuntimeError("input_lengths must be of size batch_size")
    if len(target_lengths) != samples:
        raise RuntimeError("target_lengths must be of size batch_size")
    where = "(while checking arguments for ctc_loss_allocate_outputs)"
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        for length in lengths:
            if length < 0:
                raise RuntimeError(f"Expected {name} to have value at least 0, but got value {length} {where}")
    for length in input_lengths:
        if length > time:
            raise RuntimeError(f"Expected input_lengths to have value at most {time}, but got value {length} {where}")
    shape, longest = targets._array.shape, max(target_lengths, default=0)
    if targets._array.ndim == 1 and shape[0] != sum(target_lengths):
        raise RuntimeError(
            f"Expected tensor to have size {sum(target_lengths)} at dimension 0, but got size {shape[0]} for argument "
            f"#2 'targets' {where}"
        )
    if targets._array.ndim == 2 and shape[1] < longest:
        raise RuntimeError(
            f"Expected tensor to have size at least {longest} at dimension 1, but got size {shape[1]} for argument #2 "
            f"'targets' {where}"
        )


# ---- operators
_TAIL = "int blank=0, bool zero_infinity=False"

ctc_forward = operator(
    f"_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, {_TAIL}) -> (Tensor, "
    "Tensor)",
    kernel=_forward,
    check=_check,
    meta=lambda log_probs, targets, input_lengths, target_lengths, *rest: (
        Spec((log_probs._array.shape[1],), log_probs.dtype),
        Spec(
            (log_probs._array.shape[1], log_probs._array.shape[0], 2 * max(target_lengths, default=0) + 1),
            log_probs.dtype,
        ),
    ),
    nondifferentiable=(1,),
    method=False,
    vjp={
        "log_probs": lambda g, log_probs, targets, input_lengths, target_lengths, out0, out1, blank, zero_infinity: (
            ctc_backward(g, log_probs, targets, input_lengths, target_lengths, out0, out1, blank, zero_infinity)
        )
    },
    cost="compute",
)

ctc_backward = operator(
    "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
    "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
    kernel=_backward,
    meta=lambda grad, log_probs, *rest: Spec(log_probs._array.shape, log_probs.dtype),
    vjp={"grad": NOT_IMPLEMENTED, "log_probs": NOT_IMPLEMENTED},
    **HIDDEN,
    cost="compute",
)


# Lengths as tensors: room for the longest row of targets, so that the shape does not depend on the lengths.
def _rows_of_states(targets) -> int:
    if len(targets.shape) != 2:
        raise DataDependent("ctc_loss", "with lengths as tensors and targets in one row, the number of states")
    return 2 * targets.shape[1] + 1


def _check_tensors(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    if not input_lengths._keys & META:
        _check(log_probs, targets, _lengths(input_lengths), _lengths(target_lengths), blank, zero_infinity)


def _forward_tensors(xp, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    count = 2 * targets.shape[1] + 1 if targets.ndim == 2 else 2 * max(target_lengths.tolist(), default=0) + 1
    return _alignments(xp, log_probs, targets, input_lengths.tolist(), target_lengths.tolist(), blank, count)


ctc_forward_tensors = operator(
    f"_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, {_TAIL}) -> "
    "(Tensor, Tensor)",
    kernel=_forward_tensors,
    check=_check_tensors,
    meta=lambda log_probs, targets, *rest: (
        Spec((log_probs._array.shape[1],), log_probs.dtype),
        Spec((log_probs._array.shape[1], log_probs._array.shape[0], _rows_of_states(targets._array)), log_probs.dtype),
    ),
    nondifferentiable=(1,),
    vjp={
        "log_probs": lambda g, log_probs, targets, input_lengths, target_lengths, out0, out1, blank, zero_infinity: (
            ctc_backward_tensors(g, log_probs, targets, input_lengths, target_lengths, out0, out1, blank, zero_infinity)
        )
    },
    **HIDDEN,
    cost="compute",
)

ctc_backward_tensors = operator(
    "_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
    "target_lengths, "
    "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
    kernel=lambda xp, g, log_probs, targets, inputs, labels, *rest: _backward(
        xp, g, log_probs, targets, inputs.tolist(), labels.tolist(), *rest
    ),
    meta=lambda grad, log_probs, *rest: Spec(log_probs._array.shape, log_probs.dtype),
    vjp={"grad": NOT_IMPLEMENTED, "log_probs": NOT_IMPLEMENTED},
    **HIDDEN,
    cost="compute",
)


def _lengths(value) -> tuple[int, ...]:
    if isinstance(value, Tensor):
        if value.dtype.category != 1:
            raise RuntimeError("input_lengths and target_lengths must be integral")
        value = value.reshape(-1).tolist()
    return tuple(int(v) for v in ((value,) if isinstance(value, int) else value))


def _loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    if not log_probs.numel():
        raise RuntimeError(f"log_probs tensor must not be empty, but has the shape {list(log_probs.shape)}")
    batched = log_probs.ndim == 3
    log_probs = log_probs if batched else log_probs.unsqueeze(1)
    targets = targets.to(dtypes.int64)
    if isinstance(input_lengths, Tensor):
        inputs, labels = input_lengths.reshape(-1), target_lengths.reshape(-1)
        loss = ctc_forward_tensors(log_probs, targets, inputs, labels, blank, zero_infinity)[0]
    else:
        labels = log_probs.new_tensor(target_lengths)
        loss = ctc_forward(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)[0]
    if zero_infinity:
        loss = loss.masked_fill(loss == float("inf"), 0)
    if reduction == MEAN:
        return (loss / labels.clamp_min(1)).mean()
    if reduction == SUM:
        return loss.sum()
    return loss if batched else loss.squeeze(0)


_REDUCED = "int blank=0, int reduction=Mean, bool zero_infinity=False) -> Tensor"
ctc_by_lists = composite(
    f"ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, {_REDUCED}",
    **HIDDEN,
    autocast_cpu="float32",
)(_loss)
ctc_by_tensors = composite(
    f"ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, {_REDUCED}",
    **HIDDEN,
    autocast_cpu="float32",
)(_loss)


@front("torch.ctc_loss")
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=0, zero_infinity=False):
    """Minus the log likelihood of label sequences."""
    op = ctc_by_tensors if isinstance(input_lengths, Tensor) and isinstance(target_lengths, Tensor) else ctc_by_lists
    if op is ctc_by_lists:
        input_lengths, target_lengths = _lengths(input_lengths), _lengths(target_lengths)
    return op(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)


@front("nn.functional.ctc_loss")
def functional_ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False
):
    """Minus the log likelihood of label sequences."""
    return ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, reduction_number(reduction), zero_infinity
    )
