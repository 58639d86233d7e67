"""Operators that ONNX has no words for, in operators that it has words for.

In: nothing. Out: a decomposition table for `run_decompositions`, operator -> function of the operator's arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...export.decompositions import default_decompositions
from ...ops.system.packet import ops

aten = ops.aten


def _dims(x: Any, dim: Any) -> list[int]:
    if dim is None or isinstance(dim, list | tuple) and not dim:
        return list(range(x.dim()))
    return [dim] if isinstance(dim, int) else list(dim)


def _variance(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    dims = _dims(x, dim)
    count = math.prod(x.shape[d] for d in dims)
    spread = (x - aten.mean.dim(x, dims, True)).square()
    return aten.sum.dim_IntList(spread, dims, keepdim) / (count - (1 if correction is None else correction))


def _variance_mean(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> tuple:
    return _variance(x, dim, correction=correction, keepdim=keepdim), aten.mean.dim(x, _dims(x, dim), keepdim)


def _deviation(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return _variance(x, dim, correction=correction, keepdim=keepdim).sqrt()


def _deviation_mean(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> tuple:
    variance, mean = _variance_mean(x, dim, correction=correction, keepdim=keepdim)
    return variance.sqrt(), mean


def _reduced(loss: Any, reduction: int) -> Any:
    """`reduction` as a number: 0 none, 1 mean, 2 sum."""
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()


def _huber(x: Any, target: Any, reduction: int = 1, delta: float = 1.0) -> Any:
    far = (x - target).abs()
    return _reduced(aten.where.self(far <= delta, 0.5 * far * far, delta * (far - 0.5 * delta)), reduction)


def _smooth_l1(x: Any, target: Any, reduction: int = 1, beta: float = 1.0) -> Any:
    far = (x - target).abs()
    loss = far if beta == 0 else aten.where.self(far < beta, 0.5 * far * far / beta, far - 0.5 * beta)
    return _reduced(loss, reduction)


def _cross_entropy(x: Any, target: Any, weight: Any = None, reduction: int = 1) -> Any:
    loss = -(target * x.log().clamp(min=-100) + (1 - target) * (1 - x).log().clamp(min=-100))
    return _reduced(loss if weight is None else loss * weight, reduction)


def _cross_entropy_with_logits(
    x: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1
) -> Any:
    softened = (-x.abs()).exp().log1p() + (-x).clamp(min=0)
    factor = 1 if pos_weight is None else 1 + (pos_weight - 1) * target
    loss = (1 - target) * x + factor * softened
    return _reduced(loss if weight is None else loss * weight, reduction)


def _nan_to_num(x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    if not x.dtype.is_floating_point:
        return aten.clone.default(x)
    from ...core.dtype import finfo

    limits = finfo(x.dtype)
    filled = x.masked_fill(x.isnan(), 0.0 if nan is None else float(nan))
    filled = filled.masked_fill(x == math.inf, limits.max if posinf is None else float(posinf))
    return filled.masked_fill(x == -math.inf, limits.min if neginf is None else float(neginf))


def _squeeze(x: Any, dim: list[int]) -> Any:
    gone = {d % x.dim() for d in dim if x.dim()}
    kept = [s for i, s in enumerate(x.shape) if not (i in gone and type(s) is int and s == 1)]
    return aten.view.default(x, kept)


def _nansum(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return aten.sum.dim_IntList(x.masked_fill(x.isnan(), 0.0), _dims(x, dim), keepdim, dtype=dtype)


def _aminmax(x: Any, *, dim: int | None = None, keepdim: bool = False) -> tuple:
    dims = _dims(x, dim)
    return aten.amin.default(x, dims, keepdim), aten.amax.default(x, dims, keepdim)


def _eye(n: int, m: int, **how: Any) -> Any:
    rows = aten.arange.start_step(0, n).unsqueeze(1)
    return (rows == aten.arange.start_step(0, m)).to(how.get("dtype") or _default_dtype())


def _default_dtype() -> Any:
    from ...core.modes import ambient

    return ambient.default_dtype


def _rules() -> dict[Any, Callable]:
    return {
        aten.var.correction: _variance,
        aten.var_mean.correction: _variance_mean,
        aten.std.correction: _deviation,
        aten.std_mean.correction: _deviation_mean,
        aten.squeeze.dims: _squeeze,
        aten.rsub.Tensor: lambda x, other, alpha=1: other - x * alpha,
        aten.rsub.Scalar: lambda x, other, alpha=1: other - x * alpha,
        aten.huber_loss.default: _huber,
        aten.smooth_l1_loss.default: _smooth_l1,
        aten.binary_cross_entropy.default: _cross_entropy,
        aten.binary_cross_entropy_with_logits.default: _cross_entropy_with_logits,
        aten.soft_margin_loss.default: lambda x, y, reduction=1: _reduced((-y * x).exp().log1p(), reduction),
        aten.nan_to_num.default: _nan_to_num,
        aten.nansum.default: _nansum,
        aten.aminmax.default: _aminmax,
        aten.argsort.default: lambda x, dim=-1, descending=False: aten.sort.default(x, dim, descending)[1],
        aten.argsort.stable: lambda x, *, stable, dim=-1, descending=False: aten.sort.default(x, dim, descending)[1],
        aten.sort.stable: lambda x, *, stable, dim=-1, descending=False: aten.sort.default(x, dim, descending),
        aten.count_nonzero.dim_IntList: lambda x, dim: aten.sum.dim_IntList(x != 0, list(dim)),
        aten.trace.default: lambda x: aten.diagonal.default(x).sum(),
        aten.eye.m: _eye,
        aten.hypot.default: lambda x, y: (x * x + y * y).sqrt(),
        aten.sgn.default: lambda x: aten.sign.default(x),
        aten.lift_fresh.default: lambda x: aten.clone.default(x),
        aten.threshold.default: lambda x, threshold, value: x.masked_fill(x <= threshold, value),
        aten.hardshrink.default: lambda x, lambd=0.5: x.masked_fill(x.abs() <= lambd, 0.0),
        aten.softshrink.default: lambda x, lambd=0.5: aten.sign.default(x) * (x.abs() - lambd).clamp(min=0),
        aten.ldexp.Tensor: lambda x, other: x * aten.pow.Scalar(2.0, other),
        aten.special_ndtr.default: lambda x: 0.5 * (1 + (x * math.sqrt(0.5)).erf()),
        aten.take.default: lambda x, index: x.reshape(-1)[index],
    }


def onnx_decompositions(supported: Callable[[Any], Any]) -> dict[Any, Callable]:
    """What is taken apart: composite operators and those above, where `supported` knows no function for them."""
    table = {**default_decompositions(), **_rules()}
    return {op: rule for op, rule in table.items() if _may_alias(op) or not supported(op)}


def _may_alias(op: Any) -> bool:
    """Whether a result may be the memory of an argument (`reshape`): what it is made of says whether it is."""
    return any(r.alias_info is not None for r in op._schema.returns)
