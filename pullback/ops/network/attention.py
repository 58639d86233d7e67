"""Scaled dot-product attention, and multi-head attention on top of it.

`scaled_dot_product_attention` checks its arguments and chooses: one blocked operator (`attention_kernels`) where the
inputs are (batch, heads, length, size) without dropout, else the same computation written out in other operators.
"""

from __future__ import annotations

import math

import numpy as np

from ...core import dtype as dtypes
from ...core import small
from ...core.geometry import broadcast_shapes
from ...core.modes import GRAD, ambient, process
from ...core.objects import make_tensor
from ...core.symbolic import sym_max, sym_sqrt
from ...core.tensor import Tensor
from ..eager.functions import all_plain, bypassing
from ..eager.straight import FunctionCase
from ..family.base import composite, operator
from ..family.contraction import working
from ..family.formats import dense_like_first
from ..system.dispatch import dispatch
from ..system.operator import NONDIFFERENTIABLE, Spec, public
from ..system.scalars import c_name
from . import attention_kernels as kernels
from .attention_lowering import lower_attention, lower_attention_backward

MATH, FLASH = 0, 1  # the implementations that there are here, by their public numbers


def _torch(name: str):
    return public("torch", name)


def _functional(name: str):
    return public("nn.functional", name)


def _default_scale(query, scale) -> float:
    if scale is not None:
        return scale
    width = query.shape[-1]
    return 1.0 / (math.sqrt(max(width, 1)) if width.__class__ is int else sym_sqrt(sym_max(width, 1)))


# ---- the blocked operator
def _blocked(kernel):
    """Half-precision arrays are computed in float32."""

    def run(xp, *args):
        result = kernel(xp, *[working(a) for a in args])
        return tuple(
            m.astype(args[0].dtype, copy=False) if i == 0 or len(result) == 3 else m for i, m in enumerate(result)
        )

    return run


def _flash_shape(query, key, value, dropout_p, is_causal, attn_mask, scale):
    batch, heads, length, _ = query._array.shape
    wide = dtypes.float32 if query.dtype in dtypes.reduced_precision else query.dtype
    return Spec((batch, heads, length, value._array.shape[3]), query.dtype), Spec((batch, heads, length), wide)


def _flash_grads(gs, query, key, value, is_causal, attn_mask, scale, output, logsumexp, mask):
    g = gs[0]
    if g is None:
        return None, None, None
    if ambient.mode & GRAD:  # to be differentiated again: written out in operators
        return _attention_grads(g, query, key, value, is_causal, attn_mask, scale)
    return tuple(
        flash_backward(g, query, key, value, output, logsumexp, 0.0, is_causal, attn_mask=attn_mask, scale=scale)
    )


def _attention_grads(g, query, key, value, is_causal, attn_mask, scale):
    scale = _default_scale(query, scale)
    weights = _weights(query, key, _whole_mask(query, key, attn_mask, is_causal), scale)
    d_weights = g.matmul(value.transpose(-2, -1))
    d_scores = weights * (d_weights - (d_weights * weights).sum(-1, keepdim=True))
    return (
        d_scores.matmul(key) * scale,
        d_scores.transpose(-2, -1).matmul(query) * scale,
        weights.transpose(-2, -1).matmul(g),
    )


def _vmap_flash(args, dims, size):
    """The mapped dimension joins the batch."""
    query, key, value, mask = (_spread(args[i], dims[i], size) for i in (0, 1, 2, 5))
    inner = query.shape[1]
    shapes = [t.reshape(size * inner, *t.shape[2:]) for t in (query, key, value)]
    if mask is not None:
        mask = mask.reshape(size, *(1,) * (5 - mask.ndim), *mask.shape[1:])
        mask = mask.expand(size, inner, *mask.shape[2:]).reshape(size * inner, *mask.shape[2:])
    out, lse = flash(*shapes, args[3], args[4], attn_mask=mask, scale=args[6])
    return tuple(t.reshape(size, inner, *t.shape[1:]) for t in (out, lse)), (0, 0)


def _spread(t, dim, size):
    if t is None:
        return None
    return t.movedim(dim, 0) if dim is not None else t.unsqueeze(0).expand(size, *t.shape)


flash = operator(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool "
    "is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
    lower=lower_attention,
    meta=_flash_shape,
    kernel=lambda xp, q, k, v, dropout_p, is_causal, mask, scale: _blocked(kernels.forward)(
        xp, q, k, v, mask, is_causal, _default_scale(q, scale)
    ),
    strides=dense_like_first,
    method=False,
    function=False,
    out=False,
    nondifferentiable=(1,),
    vjp={("query", "key", "value"): _flash_grads},
    vmap=_vmap_flash,
)

flash_backward = operator(
    "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, "
    "Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> "
    "(Tensor grad_query, Tensor grad_key, Tensor grad_value)",
    lower=lower_attention_backward,
    meta=lambda grad_out, query, key, value, *rest: tuple(Spec(t._array.shape, t.dtype) for t in (query, key, value)),
    kernel=lambda xp, g, q, k, v, out, lse, dropout_p, is_causal, mask, scale: _blocked(kernels.backward)(
        xp, g, q, k, v, out, lse, mask, is_causal, _default_scale(q, scale)
    ),
    method=False,
    function=False,
    out=False,
    vjp=NONDIFFERENTIABLE,
    cost="compute",  # double backward takes the written-out rule of the forward instead
)


# ---- the same, written out
def _whole_mask(query, key, attn_mask, is_causal):
    if not is_causal:
        return attn_mask
    length, span = query.shape[-2], key.shape[-2]
    return _torch("ones")(length, span, dtype=dtypes.bool, device=query.device).tril()


def _weights(query, key, mask, scale: float):
    """softmax(query keyᵀ scale + mask); a row that may see nothing is all zeros."""
    root = sym_sqrt(abs(scale))
    left = query * (root if scale >= 0 else -root)
    scores = left.matmul((key * root).transpose(-2, -1))
    if mask is None:
        return scores.softmax(-1)
    if mask.dtype is dtypes.bool:
        scores = scores.masked_fill(mask.logical_not(), -math.inf)
    else:
        scores = scores + mask
    hidden = (scores == -math.inf).all(-1, keepdim=True)
    return scores.masked_fill(hidden, 0.0).softmax(-1).masked_fill(hidden, 0.0)


@composite(
    "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
    "dropout_p=0.0, bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> "
    "(Tensor, Tensor)",
    method=False,
    out=False,
)
def attention_math(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, dropout_mask=None, scale=None, enable_gqa=False
):
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    key, value = _repeat_heads(query, key, value, enable_gqa)
    weights = _weights(query, key, _whole_mask(query, key, attn_mask, is_causal), _default_scale(query, scale))
    if dropout_mask is not None:
        dropped = weights.masked_fill(dropout_mask.logical_not(), 0.0)
        return dropped.matmul(value * (1.0 / (1.0 - dropout_p))), dropped
    if dropout_p > 0.0:
        weights = _functional("dropout")(weights, dropout_p, True)
    return weights.matmul(value), weights


def _repeat_heads(query, key, value, enable_gqa):
    if not enable_gqa:
        return key, value
    heads, ours, theirs = query.size(-3), key.size(-3), value.size(-3)
    if heads % ours or heads % theirs:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
    grow = lambda t, n: t if n == 1 else t.repeat_interleave(n, -3)
    return grow(key, heads // ours), grow(value, heads // theirs)


def _validate(query, key, value, attn_mask, dropout_p, is_causal) -> None:
    if not (query.dtype is key.dtype is value.dtype):
        names = (
            f"query.dtype: {c_name(query.dtype)} key.dtype: {c_name(key.dtype)} and value.dtype: {c_name(value.dtype)}"
        )
        raise RuntimeError(f"Expected query, key, and value to have the same dtype, but got {names} instead.")
    if min(query.ndim, key.ndim, value.ndim) < 2:
        names = f"query.dim: {query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim}"
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got {names} instead."
        )
    if attn_mask is not None:
        d = attn_mask.dtype
        if d is not dtypes.bool and d is not query.dtype and d is not dtypes.float32:
            raise RuntimeError(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                f"{c_name(d)} and  query.dtype: {c_name(query.dtype)} instead."
            )
        if is_causal:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            )
    if not 0.0 <= dropout_p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")


def _has_tangent(t: Tensor) -> bool:
    return t._autograd is not None and bool(t._autograd.tangents)


def _fits_blocked(query, key, value, attn_mask, dropout_p) -> bool:
    if dropout_p or not query.ndim == key.ndim == value.ndim == 4 or not query.dtype.is_floating_point:
        return False
    q, k, v = query.shape, key.shape, value.shape
    if q[:2] != k[:2] or k[:3] != v[:3] or q[3] != k[3] or q[3] != v[3] or not q[3]:
        return False
    if attn_mask is None:
        return True
    attn_mask.size(-2)  # raises for a mask of one dimension
    if attn_mask.requires_grad or _has_tangent(attn_mask) or attn_mask.ndim not in (2, 4):
        return False
    return broadcast_shapes(attn_mask.shape, (*q[:3], k[2])) == (*q[:3], k[2])


_native = small.table.get("scaled_dot_product_attention.default")


@bypassing("_scaled_dot_product_flash_attention_for_cpu.default")
def _plain_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa) -> Tensor | None:
    """The blocked operator on plain tensors, without mask and dropout, whose queries lie row-major or heads within words; None
    where the call takes more."""
    if attn_mask is not None or dropout_p or ambient.mode >= 2 or process.attention_backends is not None:
        return None
    if not all_plain(query, key, value) or query.dtype not in _DIRECT or is_causal.__class__ is not bool:
        return None
    if enable_gqa:
        if not query._array.ndim == key._array.ndim == value._array.ndim == 4:
            return None
        key, value = _repeat_heads(query, key, value, True)
    recorded = bool(ambient.mode) and any(t._autograd is not None for t in (query, key, value))
    given = (query, key, value, attn_mask, dropout_p, is_causal, scale, False)
    if not recorded and _native is not None and (result := _native(given)) is not None:
        return result
    q, k, v = query._array, key._array, value._array
    if q.ndim != 4 or k.shape != v.shape or q.shape[:2] != k.shape[:2] or q.shape[3:] != k.shape[3:] or not q.size:
        return None
    if not (q.flags.c_contiguous or q.transpose(0, 2, 1, 3).flags.c_contiguous):
        return None
    if not k.size or scale is not None and scale.__class__ is not float:
        return None
    results = kernels.forward(np, q, k, v, None, is_causal, _default_scale(query, scale), np.zeros_like(q))
    tensors = tuple([make_tensor(a, query.dtype) for a in results])
    return (flash.record(tensors, query, key, value, 0.0, is_causal, None, scale) if recorded else tensors)[0]


_DIRECT = frozenset((dtypes.float32, dtypes.float64))


@composite(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, "
    "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    public="nn.functional.scaled_dot_product_attention",
    plain=FunctionCase(_plain_attention),
    out=False,
    autocast_cpu="lower",
    autocast_cuda="lower",
)
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    _validate(query, key, value, attn_mask, dropout_p, is_causal)
    if enable_gqa and query.ndim == 4:
        key, value = _repeat_heads(query, key, value, True)
        enable_gqa = False
    allowed = process.attention_backends
    if allowed is not None and not allowed & {MATH, FLASH}:
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the "
            "math kernel and the fused kernels."
        )
    fits = (allowed is None or FLASH in allowed) and _fits_blocked(query, key, value, attn_mask, dropout_p)
    if not fits and allowed is not None and MATH not in allowed:
        raise RuntimeError("No available kernel. Aborting execution.")
    if fits:
        return dispatch(flash, (query, key, value, 0.0, is_causal, attn_mask, scale))[0]
    return attention_math(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)[0]
