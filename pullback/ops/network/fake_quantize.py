"""Fake quantization: floats rounded to the multiples of a scale that few integers can count, and kept as floats.

In: floats; a scale and a zero point (one of each, or one for each index of an axis); the least and the greatest integer.
Out: `(q - zero_point) * scale`, where q is the nearest integer within the limits; the dtype and memory order are the input's.
Always holds: gradients pass unchanged where q was within the limits and are zero where it was cut. The learnable forms have
gradients for scale and zero point as well. Numbers below 64 bits are worked on in float32.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.geometry import wrap_dim
from ...core.tensor import Tensor
from ..family.base import composite, operator
from ..family.formats import dense_like_first
from ..make.factories import ones
from ..system.operator import Spec
from ..system.overloads import overloaded

_LIMITS = "int quant_min, int quant_max"
_HIDDEN = {"function": False, "method": False, "out": False, "named": False}
_FLOATS = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16)
_ZERO_POINTS = (dtypes.int32, dtypes.float32, dtypes.float16)


# ---- what is refused
def _check_limits(self: Tensor, quant_min: int, quant_max: int) -> None:
    if self.dtype not in _FLOATS:
        raise NotImplementedError(
            f"\"fake_quantize_tensor_cachemask_kernel_type_handling\" not implemented for '{self.dtype.scalar_name}'"
        )
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or equal to `quant_max`.")


def _check_number(self, scale, zero_point, quant_min, quant_max) -> None:
    _check_limits(self, quant_min, quant_max)
    if not quant_min <= zero_point <= quant_max:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")


def _check_channels(self, scale, zero_point, axis, quant_min, quant_max) -> None:
    _check_limits(self, quant_min, quant_max)
    if scale.dtype is not dtypes.float32:
        raise RuntimeError(f"Scale must be Float, found {scale.dtype.scalar_name}")
    if zero_point.dtype not in _ZERO_POINTS:
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {zero_point.dtype.scalar_name}")
    wrap_dim(axis, self.ndim)
    if any(t.ndim != 1 or t.shape[0] != self.shape[axis] for t in (scale, zero_point)):
        raise RuntimeError(
            "dimensions of scale and zero-point are not consistent with input tensor: "
            f"{tuple(scale.shape)} and {tuple(zero_point.shape)} for axis {axis} of {tuple(self.shape)}"
        )


# ---- the rounding
def _rounded(xp, x, scale, zero_point, low, high):
    """The fake-quantized numbers, and where none was cut. Whole zero points are added after rounding, others before."""
    wide = x if x.dtype == xp.float64 else x.astype(xp.float32)
    scale = xp.asarray(scale, xp.float32)
    steps = wide * (xp.float32(1) / scale).astype(wide.dtype)
    point = xp.asarray(zero_point)
    whole = point.dtype.kind in "iu"
    point = point.astype(wide.dtype)
    q = xp.rint(steps) + point if whole else xp.rint(steps + point)
    mask = (q >= low) & (q <= high)
    q = xp.where(xp.isnan(q), low, xp.clip(q, low, high)).astype(wide.dtype)
    return ((q - point) * scale.astype(wide.dtype)).astype(x.dtype), mask


def _along(xp, values, ndim: int, axis: int):
    """One number for each index of an axis, in a shape that broadcasts."""
    shape = [1] * ndim
    shape[axis] = -1
    return values.reshape(shape)


def _by_number(xp, x, scale, zero_point, low, high):
    return _rounded(xp, x, scale, xp.asarray(int(zero_point)), low, high)


def _by_tensor(xp, x, scale, zero_point, enabled, low, high):
    if not int(enabled.reshape(-1)[0]):
        return x.copy(), xp.ones(x.shape, bool)
    return _rounded(xp, x, scale.reshape(-1)[0], xp.rint(zero_point.reshape(-1)[0]).astype(xp.int64), low, high)


def _by_channel(xp, x, scale, zero_point, axis, low, high):
    if zero_point.dtype.kind in "iu" and ((zero_point < low) | (zero_point > high)).any():
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    return _rounded(xp, x, _along(xp, scale, x.ndim, axis), _along(xp, zero_point, x.ndim, axis), low, high)


def _specs(self, *rest) -> tuple[Spec, Spec]:
    return Spec(self._array.shape, self.dtype), Spec(self._array.shape, dtypes.bool)


def _masked_operator(schema: str, kernel, check, **options):
    """An operator whose second result says where gradients pass."""
    return operator(
        f"{schema} -> (Tensor output, Tensor mask)",
        kernel=kernel,
        check=check,
        meta=_specs,
        strides=dense_like_first,
        vjp={"self": lambda g, mask: g * mask},
        nondifferentiable=(1,),
        **_HIDDEN,
        **options,
    )


by_number = _masked_operator(
    f"fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, {_LIMITS})",
    _by_number,
    _check_number,
)
by_tensor = _masked_operator(
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, "
    f"Tensor fake_quant_enabled, {_LIMITS})",
    _by_tensor,
    lambda self, scale, zero_point, enabled, low, high: _check_limits(self, low, high),
    node="FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0",
)
by_channel = _masked_operator(
    f"fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, {_LIMITS})",
    _by_channel,
    _check_channels,
)
_NAMELESS = {"method": False, "function": False, "out": False}
per_tensor = composite(
    f"fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, {_LIMITS}) -> Tensor", **_NAMELESS
)(lambda self, scale, zero_point, low, high: by_number(self, scale, zero_point, low, high)[0])
per_tensor_tensors = composite(
    f"fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, {_LIMITS}) -> Tensor",
    **_NAMELESS,
)(lambda self, scale, zero_point, low, high: by_tensor(self, scale, zero_point, _on(self), low, high)[0])
fake_quantize_per_tensor_affine = overloaded(
    "fake_quantize_per_tensor_affine", per_tensor_tensors, per_tensor, homes=("torch",)
)
fake_quantize_per_channel_affine = composite(
    f"fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, {_LIMITS}) -> Tensor",
    method=False,
    out=False,
)(lambda self, scale, zero_point, axis, low, high: by_channel(self, scale, zero_point, axis, low, high)[0])


def _on(self: Tensor) -> Tensor:
    return ones((1,), dtype=dtypes.int32, device=self.device)


# ---- scales and zero points that are learned
def _learned_gradients(g, self, scale, point, quant_min, quant_max, grad_factor):
    """For `self`, scale and zero point in the shape of `self`: a cut number moves with the limit that it was cut to."""
    q = (self / scale).round() + point
    cut = q.clamp(quant_min, quant_max)
    inside = (q == cut).to(self.dtype)
    by_scale = inside * ((cut - point) - self / scale) + (1 - inside) * (cut - point)
    return g * inside, g * by_scale * grad_factor, g * (1 - inside) * -scale * grad_factor


def _learned_rule(g, self, scale, zero_point, quant_min, quant_max, grad_factor):
    point = (zero_point + 0.5).clamp(quant_min, quant_max).trunc()  # in PyTorch too, not what the forward rounds to
    whole, by_scale, by_point = _learned_gradients(g, self, scale, point, quant_min, quant_max, grad_factor)
    return whole, by_scale.sum().reshape(scale.shape), by_point.sum().reshape(zero_point.shape)


def _learned_channel_rule(g, self, scale, zero_point, axis, quant_min, quant_max, grad_factor):
    axis = wrap_dim(axis, self.ndim)
    shape = [-1 if d == axis else 1 for d in range(self.ndim)]
    others = [d for d in range(self.ndim) if d != axis]
    point = zero_point.round().clamp(quant_min, quant_max).reshape(shape)
    whole, *rest = _learned_gradients(g, self, scale.reshape(shape), point, quant_min, quant_max, grad_factor)
    return whole, *((r.sum(others) if others else r) for r in rest)


def _points(xp, zero_point, low, high):
    return xp.rint(xp.clip(zero_point, low, high)).astype(xp.int64)


def _check_learned(self, scale, zero_point, *rest) -> None:
    low, high = rest[-3:-1]
    _check_limits(self, low, high)
    if scale.dtype is not dtypes.float32 or zero_point.dtype is not dtypes.float32:
        raise RuntimeError(
            f"scale and zero_point must be Float, found {scale.dtype.scalar_name} and {zero_point.dtype.scalar_name}"
        )


def _learned_operator(schema: str, kernel, rule):
    return operator(
        f"{schema}, {_LIMITS}, float grad_factor=1.0) -> Tensor",
        kernel=kernel,
        check=_check_learned,
        meta=lambda self, *rest: Spec(self._array.shape, self.dtype),
        strides=dense_like_first,
        vjp={("self", "scale", "zero_point"): rule},
        method=False,
        out=False,
    )


_learned_operator(
    "_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point",
    lambda xp, x, scale, point, low, high, factor: _rounded(
        xp, x, scale.reshape(-1)[0], _points(xp, point, low, high).reshape(-1)[0], low, high
    )[0],
    _learned_rule,
)
_learned_operator(
    "_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis",
    lambda xp, x, scale, point, axis, low, high, factor: _by_channel(
        xp, x, scale, _points(xp, point, low, high), axis, low, high
    )[0],
    _learned_channel_rule,
)


# ---- ranges that are watched while numbers are fake-quantized
_SMALLEST_SCALE = 6.1e-5  # below it, half precision loses the scale


def _chosen(least: float, greatest: float, low: int, high: int, symmetric: bool) -> tuple[float, int]:
    """The scale and the zero point for a range of floats, widened to hold zero; symmetric ranges keep zero in the middle."""
    least, greatest = min(least, 0.0), max(greatest, 0.0)
    centred = symmetric and least < 0 < greatest
    if centred:
        below, above = -((high - low) // 2 + 1), (high - low) // 2
        scale = max(abs(least / below), abs(greatest / above))
        least, greatest = scale * below, scale * above
    scale = (greatest - least) / (high - low)
    if scale == 0 or scale < 1e-38:
        scale = 0.1
    if scale < _SMALLEST_SCALE:
        least, greatest = (v * _SMALLEST_SCALE / scale for v in (least, greatest))
        scale = _SMALLEST_SCALE
    from_least, from_greatest = low - least / scale, high - greatest / scale
    errors = abs(low) + abs(least / scale), abs(high) + abs(greatest / scale)
    point = (low + high) / 2 if centred else from_least if errors[0] < errors[1] else from_greatest
    return scale, round(min(max(point, low), high))


def _watch(self, running_min, running_max, averaging_const, ch_axis, per_row) -> None:
    """Move the running limits towards those of the numbers; limits that are infinite were never set."""
    x = self.detach()
    if per_row:
        x = x.movedim(ch_axis, 0).flatten(1)
        if running_min.numel() == 0:
            running_min.resize_(x.shape[0]).fill_(float("inf"))
            running_max.resize_(x.shape[0]).fill_(float("-inf"))
    least, greatest = x.aminmax(dim=1) if per_row else x.aminmax()
    for running, seen in ((running_min, least), (running_max, greatest)):
        seen = seen.to(running.dtype).reshape(running.shape)
        running.copy_(seen.where(running.isinf(), running + averaging_const * (seen - running)))


def _set_parameters(running_min, running_max, scale, zero_point, low, high, symmetric) -> None:
    ranges = zip(running_min.flatten().tolist(), running_max.flatten().tolist(), strict=True)
    chosen = [_chosen(least, greatest, low, high, symmetric) for least, greatest in ranges]
    for target, values in zip((scale, zero_point), zip(*chosen, strict=True), strict=True):
        if target.numel() != len(values):
            target.resize_(len(values))
        target.copy_(target.new_tensor(values))


_WATCHED = "Tensor(a!) running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point"


@composite(
    f"fused_moving_avg_obs_fake_quant(Tensor self, Tensor observer_on, Tensor fake_quant_on, {_WATCHED}, "
    f"float averaging_const, {_LIMITS}, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> Tensor",
    method=False,
    out=False,
)
def fused_moving_avg_obs_fake_quant(
    self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max,
    ch_axis, per_row_fake_quant, symmetric_quant,
):  # fmt: skip
    if per_row_fake_quant:
        ch_axis = wrap_dim(ch_axis, self.ndim)
    if self.numel() and int(observer_on.item()):
        _watch(self, running_min, running_max, averaging_const, ch_axis, per_row_fake_quant)
        _set_parameters(running_min, running_max, scale, zero_point, quant_min, quant_max, symmetric_quant)
    if per_row_fake_quant:
        if not int(fake_quant_on.item()):
            return self.clone()
        return by_channel(self, scale, zero_point, ch_axis, quant_min, quant_max)[0]
    return by_tensor(self, scale, zero_point, fake_quant_on, quant_min, quant_max)[0]
