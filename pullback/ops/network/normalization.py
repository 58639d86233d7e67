"""Normalisation of each sample by itself: layer norm, RMS norm, unit vectors, local response norm.

Layer norm removes the mean and divides by the deviation over the last dimensions (`standardize`), then scales and
shifts. Its backward is an operator, whose own gradient is written once for all norms of this kind (`second_order`) and
differentiates again. float16 and bfloat16 inputs are computed in float32; with float32 parameters their statistics are
float32 too.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.tensor import Tensor
from ..eager.functions import ANY
from ..eager.rows import export_layer_norm
from ..elementwise.division import div
from ..family.base import composite, operator
from ..reduce.reductions import HIDDEN, not_implemented
from ..shape.joining import cat
from ..system.calls import front
from ..system.operator import Spec
from ..system.precision import NARROW, rounded, wide
from . import normalization_kernels as kernels
from .normalization_lowering import lower_layer_norm, lower_layer_norm_backward


# ---- shared rules
def second_order(gs, g, x, weight, mean, rstd, axes: tuple):
    """Gradients of a standardisation's backward: (of g, of x, of weight), all in shapes that broadcast with x.

    `gs` are the gradients of (x's, weight's, bias's) gradient. The statistics are taken anew from x, so that they have
    their part in every further derivative.
    """
    gx, gw, gb = gs
    rate = rstd
    mean = x.mean(axes, True)
    variance = ((x - mean) * (x - mean)).mean(axes, True)
    rstd = (variance + (rate.pow(-2) - variance).detach()).rsqrt()
    scaled = (x - mean) * rstd

    def projected(v):
        return v - v.mean(axes, True) - scaled * (v * scaled).mean(axes, True)

    weighted = g if weight is None else g * weight
    of_g, inner, of_w, of_x = [], [], None, []
    if gx is not None:
        through = rstd * projected(gx)
        of_g.append(through if weight is None else through * weight)
        of_w = g * through
        a, b = (gx * scaled).mean(axes, True), (weighted * scaled).mean(axes, True)
        inner.append(-rstd * (gx * b + weighted * a))
        left = (gx * weighted).mean(axes, True) - gx.mean(axes, True) * weighted.mean(axes, True) - a * b
        of_x.append(-left * rstd * rstd * scaled)
    if gw is not None:
        of_g.append(gw * scaled)
        inner.append(gw * g)
    if gb is not None:
        of_g.append(gb.expand(x.shape))
    if inner:
        of_x.append(rstd * projected(total(inner)))
    return total(of_g), total(of_x), of_w


def total(parts: list):
    return None if not parts else parts[0] if len(parts) == 1 else total([parts[0] + parts[1], *parts[2:]])


def statistics_dtype(x, *parameters):
    """Narrow inputs have narrow statistics, unless there are float32 parameters."""
    given = [p for p in parameters if p is not None]
    return given[0].dtype if x.dtype in NARROW and given else x.dtype


def kept_dtype(x: Tensor, *parameters):
    """The dtype of statistics, by the same rule, for tensors."""
    given = [p for p in parameters if p is not None]
    return given[0].dtype if x.dtype in dtypes.reduced_precision and given else x.dtype


def check_mixed(x: Tensor, *parameters) -> None:
    for p in parameters:
        if p is None or p.dtype is x.dtype:
            continue
        if x.dtype not in (dtypes.float16, dtypes.bfloat16):
            wide_input = x.dtype is dtypes.float64
            raise RuntimeError(
                "mixed dtype (CPU): all inputs must share same datatype."
                if wide_input
                else f"mixed dtype (CPU): expect parameter to have scalar type of {dtypes.float32.scalar_name}"
            )
        if p.dtype is not dtypes.float32:
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")


def sum_dims(t: Tensor | None, dims: tuple, shape) -> Tensor | None:
    if t is None:
        return None
    return (t.sum(dims) if dims else t).reshape(shape)


# ---- layer norm
def _check_layer(input, normalized_shape, weight, bias, eps):
    shape, n = list(normalized_shape), len(normalized_shape)
    if not n:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            f"normalized_shape = {shape}"
        )
    for name, p in (("weight", weight), ("bias", bias)):
        if p is not None and list(p._array.shape) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(p._array.shape)} and "
                f"normalized_shape = {shape}"
            )
    if list(input._array.shape[-n:]) != shape or input._array.ndim < n:
        wanted = ", ".join(map(str, ["*", *shape]))
        raise RuntimeError(
            f"Given normalized_shape={shape}, expected input with shape [{wanted}], but got input of "
            f"size{list(input._array.shape)}"
        )
    if not input.dtype.is_floating_point:
        raise not_implemented("LayerNormKernelImpl", input.dtype)
    check_mixed(input, weight, bias)


def _last(ndim: int, n: int) -> tuple[int, ...]:
    return tuple(range(ndim - n, ndim))


def _layer_norm(xp, x, normalized_shape, weight, bias, eps):
    kept = statistics_dtype(x, weight, bias)
    out, mean, rstd = kernels.layer_norm(xp, wide(xp, x), len(normalized_shape), wide(xp, weight), wide(xp, bias), eps)
    return rounded(out, x.dtype), rounded(mean, kept), rounded(rstd, kept)


def _layer_meta(input, normalized_shape, weight, bias, eps):
    n = len(normalized_shape)
    shape = (*input._array.shape[: input._array.ndim - n], *(1,) * n)
    kept = kept_dtype(input, weight, bias)
    return Spec(input._array.shape, input.dtype), Spec(shape, kept), Spec(shape, kept)


def _layer_vjp(g, input, normalized_shape, weight, bias, out1, out2, mask):
    if g is None:
        return None, None, None
    return layer_norm_backward(g, input, normalized_shape, out1, out2, weight, bias, mask)


layer_norm_op = operator(
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
    "(Tensor, Tensor, Tensor)",
    lower=lower_layer_norm,
    kernel=_layer_norm,
    check=_check_layer,
    meta=_layer_meta,
    vjp={("input", "weight", "bias"): _layer_vjp},
    vmap=lambda args, dims, size: _layer_vmap(args, dims),
    nondifferentiable=(1, 2),
    method=False,
    autocast_cuda="float32",
)


def _layer_vmap(args, dims):
    """The batch is one more leading dimension; parameters that are batched too are applied outside."""
    x, shape, weight, bias, eps = args
    if dims[0] is None:
        return None
    plain = dims[2] is None and dims[3] is None
    x = x.movedim(dims[0], 0)
    out, mean, rstd = layer_norm_op(x, shape, weight if plain else None, bias if plain else None, eps)
    if not plain:
        lead = (1,) * (x.ndim - 1 - len(shape))
        for p, d, apply in ((weight, dims[2], out.mul), (bias, dims[3], None)):
            if p is None:
                continue
            p = p.unsqueeze(0) if d is None else p.movedim(d, 0)
            p = p.reshape((p.shape[0], *lead, *shape))
            out = apply(p) if apply is not None else out + p
    return (out, mean, rstd), 0


def _layer_backward(xp, g, x, normalized_shape, mean, rstd, weight, bias, mask):
    given = (wide(xp, g), wide(xp, x), len(normalized_shape), wide(xp, mean), wide(xp, rstd), wide(xp, weight), mask)
    of_x, of_weight, of_bias = kernels.layer_norm_backward(xp, *given)
    kept = x.dtype if weight is None else weight.dtype
    return rounded(of_x, x.dtype), rounded(of_weight, kept), rounded(of_bias, kept)


def _layer_backward_vmap(args, dims, size):
    """Rows are rows; the parameters' gradients are summed over each example's own rows."""
    shape, mask = args[2], args[7]
    g, x, mean, rstd = (
        args[i].unsqueeze(0).expand((size, *args[i].shape)) if dims[i] is None else args[i].movedim(dims[i], 0)
        for i in (0, 1, 3, 4)
    )
    weight = args[5]
    lead = (1,) * (x.ndim - 1 - len(shape))
    if weight is not None:
        weight = weight if dims[5] is None else weight.movedim(dims[5], 0).reshape((size, *lead, *shape))
    own = tuple(range(1, x.ndim - len(shape)))
    of_x = None
    if mask[0]:
        weighted = g if weight is None else g * weight
        of_x = layer_norm_backward(weighted, x, shape, mean, rstd, None, None, (True, False, False))[0]
    of_weight, of_bias = (
        (t.sum(own) if own else t) if wanted else None
        for t, wanted in ((g * ((x - mean) * rstd) if mask[1] else None, mask[1]), (g, mask[2]))
    )
    return (of_x, of_weight, of_bias), 0


def _layer_second(gs, grad_out, input, normalized_shape, mean, rstd, weight, mask):
    n = len(normalized_shape)
    outer = tuple(range(input.ndim - n))
    of_g, of_x, of_w = second_order(gs, grad_out, input, weight, mean, rstd, _last(input.ndim, n))
    return of_g, of_x, sum_dims(of_w, outer, normalized_shape) if weight is not None else None


def _check_layer_backward(grad_out, input, *_):
    if not input.dtype.is_floating_point:
        raise not_implemented("LayerNormBackwardKernelImpl", input.dtype)


layer_norm_backward = operator(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, "
    "Tensor? weight, "
    "Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    lower=lower_layer_norm_backward,
    kernel=_layer_backward,
    check=_check_layer_backward,
    meta=lambda grad_out, input, shape, mean, rstd, weight, bias, mask: (
        Spec(input._array.shape, input.dtype) if mask[0] else None,
        Spec(shape, input.dtype if weight is None else weight.dtype) if mask[1] else None,
        Spec(shape, input.dtype if weight is None else weight.dtype) if mask[2] else None,
    ),
    vjp={("grad_out", "input", "weight"): _layer_second},
    vmap=_layer_backward_vmap,
    **HIDDEN,
)


@composite(
    "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enable=True) -> Tensor",
    **HIDDEN,
    autocast_cuda="float32",
)
def layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable):
    return layer_norm_op(input, normalized_shape, weight, bias, eps)[0]


# ---- RMS norm
@composite(
    "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    method=False,
)
def rms_norm(input, normalized_shape, weight, eps):
    shape, n = list(normalized_shape), len(normalized_shape)
    if not n:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            f"normalized_shape = {shape}"
        )
    if weight is not None and list(weight.shape) != shape:
        raise RuntimeError(
            f"Expected weight to be of same shape as normalized_shape, but got weight of shape {list(weight.shape)} "
            f"and normalized_shape = {shape}"
        )
    if input.ndim < n or list(input.shape[-n:]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={shape}, expected input with shape [*{', '.join(map(str, shape))}], but got "
            f"input of size{list(input.shape)}"
        )
    if input.dtype.category < 2:
        raise not_implemented("rms_norm", input.dtype)
    x = input.to(dtypes.float32) if input.dtype in dtypes.reduced_precision else input
    eps = dtypes.finfo(x.dtype).eps if eps is None else eps
    out = x * (x.pow(2).mean(_last(x.ndim, n), True) + eps).rsqrt()
    return (out if weight is None else out * weight).to(input.dtype)


@front("nn.functional.rms_norm")
def functional_rms_norm(input, normalized_shape, weight=None, eps=None):
    """Division by the root of the mean of squares over the last dimensions."""
    return rms_norm(input, normalized_shape, weight, eps)


def functional_layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Standardisation over the last dimensions."""
    return layer_norm(input, normalized_shape, weight, bias, eps)


export_layer_norm(("torch",), layer_norm_op, layer_norm.function)
export_layer_norm(("nn.functional",), layer_norm_op, functional_layer_norm)


@front("nn.functional.normalize")
def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """Vectors along `dim` divided by their p-norm, or by `eps` where that is larger."""
    length = input.norm(p, dim, keepdim=True).clamp_min(eps)
    if out is None:
        return input / length.expand_as(input)

    return div(input, length.expand_as(input), out=out)


@front("nn.functional.local_response_norm", past=(ANY,))
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Division by a power of the mean of squares over neighbouring channels."""
    if input.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {input.ndim} dimensions)"
        )
    if not input.numel():
        return input
    squares = input * input
    channels = input.shape[1]
    gap = [squares.new_zeros((input.shape[0], w, *input.shape[2:])) for w in (size // 2, (size - 1) // 2)]
    padded = cat((gap[0], squares, gap[1]), 1)
    window = total([padded.narrow(1, i, channels) for i in range(size)]) / size
    return input / (window * alpha + k).pow(beta)
