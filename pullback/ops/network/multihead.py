"""`multi_head_attention_forward`: projections, heads, masks and attention of the `nn.MultiheadAttention` module.

Queries, keys and values come as (length, batch, size), or (length, size) without a batch. Out come the result in the
same form, and the weights (averaged over heads, or per head) where they are wanted.
"""

from __future__ import annotations

import math
import warnings

from ...core import dtype as dtypes
from ...core.symbolic import sym_sqrt
from ...core.tensor import Tensor
from ..family.base import composite
from ..linalg.contraction import linear
from ..system.calls import front
from ..system.operator import public
from .attention import scaled_dot_product_attention


def _torch(name: str):
    return public("torch", name)


def _functional(name: str):
    return public("nn.functional", name)


def _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads: int) -> bool:
    """Whether there is a batch dimension; raises where the ranks do not belong together."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    rank = query.dim()
    kind = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {rank}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != rank - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise AssertionError(
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor "
            "instead"
        )
    if attn_mask is not None and rank == 2 and attn_mask.dim() == 3:
        expected = (num_heads, query.shape[0], key.shape[0])
        if tuple(attn_mask.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return rank == 3


def additive_mask(mask, name: str, dtype, other=None, other_name: str = ""):
    """A mask as numbers to add: -inf where a boolean mask is True."""
    if mask is None:
        return None
    is_float = mask.dtype.is_floating_point
    if not is_float and mask.dtype is not dtypes.bool:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and mask.dtype is not other.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=3,
        )
    if is_float:
        return mask
    return _torch("zeros_like")(mask, dtype=dtype).masked_fill(mask, -math.inf)


def _project(query, key, value, weights: tuple, bias):
    """Three linear maps; one product where query, key and value are one tensor and the weights lie in one."""
    packed, separate = weights
    if packed is not None and query is key is value:
        joint = linear(query, packed, bias)
        return joint.reshape(*query.shape[:2], 3, query.shape[2]).permute(2, 0, 1, 3).contiguous().unbind(0)
    parts = separate if packed is None else packed.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    size = query.size(-1)
    if packed is None:
        for name, t, w, b in zip(("query", "key", "value"), (query, key, value), parts, biases, strict=True):
            if tuple(w.shape) != (size, t.size(-1)):
                raise AssertionError(f"expecting {name} weights shape of {(size, t.size(-1))}, but got {w.shape}")
            if b is not None and tuple(b.shape) != (size,):
                raise AssertionError(f"expecting {name} bias shape of {(size,)}, but got {b.shape}")
    return tuple(linear(t, w, b) for t, w, b in zip((query, key, value), parts, biases, strict=True))


def _three_dimensional(attn_mask, length: int, span: int, rows: int):
    if attn_mask is None:
        return None
    expected = (length, span) if attn_mask.dim() == 2 else (rows, length, span)
    if tuple(attn_mask.shape) != expected:
        raise RuntimeError(
            f"The shape of the {attn_mask.dim()}D attn_mask is {attn_mask.shape}, but should be {expected}."
        )
    return attn_mask.unsqueeze(0) if attn_mask.dim() == 2 else attn_mask


def _one_more(mask):
    """A mask for one more key, which everybody sees."""
    return None if mask is None else _functional("pad")(mask, (0, 1))


def _heads(t, static, name: str, rows: int, head_dim: int):
    """(length, batch, size) as (batch * heads, length, size of a head); a static tensor has that form already."""
    if static is None:
        return t.reshape(t.shape[0], rows, head_dim).transpose(0, 1)
    if static.size(0) != rows:
        raise AssertionError(f"expecting {name}.size(0) of {rows}, but got {static.size(0)}")
    if static.size(2) != head_dim:
        raise AssertionError(f"expecting {name}.size(2) of {head_dim}, but got {static.size(2)}")
    return static


def _merge_padding(attn_mask, padding, bsz: int, num_heads: int, span: int):
    if padding is None:
        return attn_mask
    for d, n in ((0, bsz), (1, span)):
        if padding.shape[d] != n:
            raise AssertionError(f"Expected key_padded_mask.shape[{d}] to be {n}, but got {padding.shape[d]}")
    spread = padding.reshape(bsz, 1, 1, span).expand(-1, num_heads, -1, -1).reshape(bsz * num_heads, 1, span)
    return spread if attn_mask is None else attn_mask + spread


def _check_sizes(query, key, value, expected: int, num_heads: int, separate: bool, weights: dict) -> int:
    size = query.shape[-1]
    if size != expected:
        raise AssertionError(f"was expecting embedding dimension of {expected}, but got {size}")
    head_dim = size // num_heads
    if head_dim * num_heads != size:
        raise AssertionError(f"embed_dim {size} not divisible by num_heads {num_heads}")
    if separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    if not separate and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    for name, w in weights.items():
        if w is None:
            raise AssertionError(f"use_separate_proj_weight is {separate} but {name} is None")
    return head_dim


def _with_weights(q, k, v, attn_mask, dropout_p: float):
    scores = (q * sym_sqrt(1.0 / q.shape[-1]), k.transpose(-2, -1))
    scores = _torch("bmm")(*scores) if attn_mask is None else _torch("baddbmm")(attn_mask, *scores)
    weights = _functional("softmax")(scores, -1)
    if dropout_p > 0.0:
        weights = _functional("dropout")(weights, dropout_p)
    return weights.bmm(v), weights


def _without_weights(q, k, v, attn_mask, dropout_p: float, is_causal: bool, bsz: int, num_heads: int):
    parts = [t.reshape(bsz, num_heads, *t.shape[1:]) for t in (q, k, v)]
    if attn_mask is not None:
        attn_mask = (
            attn_mask.unsqueeze(0)
            if attn_mask.size(0) == 1
            else attn_mask.reshape(bsz, num_heads, *attn_mask.shape[1:])
        )
    result = scaled_dot_product_attention(*parts, attn_mask, dropout_p, is_causal)
    return result.reshape(bsz * num_heads, *result.shape[2:])


def _resolve_masks(query, key_padding_mask, attn_mask, is_causal: bool, need_weights: bool):
    """(padding mask, attention mask, whether the causal hint still holds)."""
    padding = additive_mask(key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask")
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not need_weights:
        return padding, None, True
    return padding, additive_mask(attn_mask, "attn_mask", query.dtype), is_causal and padding is None


def _extended(k, v, bias_k, bias_v, static_k, static_v, bsz: int):
    """Keys and values with the learned extra ones at the end."""
    if bias_k is None or bias_v is None:
        if bias_k is not None:
            raise AssertionError("bias_k is set but bias_v is None")
        if bias_v is not None:
            raise AssertionError("bias_v is set but bias_k is None")
        return k, v, False
    if static_k is not None:
        raise AssertionError("bias cannot be added to static key.")
    if static_v is not None:
        raise AssertionError("bias cannot be added to static value.")
    cat = _torch("cat")
    return cat([k, bias_k.repeat(1, bsz, 1)]), cat([v, bias_v.repeat(1, bsz, 1)]), True


def _append_zero(t):
    return _torch("cat")([t, t.new_zeros((t.shape[0], 1, t.shape[2]))], 1)


@front("nn.functional.multi_head_attention_forward")
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight, in_proj_bias,
    bias_k, bias_v, add_zero_attn: bool, dropout_p: float, out_proj_weight, out_proj_bias, training: bool = True,
    key_padding_mask=None, need_weights: bool = True, attn_mask=None, use_separate_proj_weight: bool = False,
    q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None,
    average_attn_weights: bool = True, is_causal: bool = False,
):  # fmt: skip
    """(attention output, weights or None)."""
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        one = query is key is value
        query = query.unsqueeze(1)
        key, value = (query, query) if one else (key.unsqueeze(1), value.unsqueeze(1))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, bsz, size = query.shape
    padding, attn_mask, is_causal = _resolve_masks(query, key_padding_mask, attn_mask, is_causal, need_weights)
    separate = {"q_proj_weight": q_proj_weight, "k_proj_weight": k_proj_weight, "v_proj_weight": v_proj_weight}
    wanted = separate if use_separate_proj_weight else {"in_proj_weight": in_proj_weight}
    head_dim = _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight, wanted)
    rows = bsz * num_heads
    q, k, v = _project(
        query,
        key,
        value,
        (None if use_separate_proj_weight else in_proj_weight, tuple(separate.values())),
        in_proj_bias,
    )
    attn_mask = _three_dimensional(attn_mask, length, key.shape[0], rows)
    k, v, extended = _extended(k, v, bias_k, bias_v, static_k, static_v, bsz)
    q = _heads(q, None, "", rows, head_dim)
    k, v = _heads(k, static_k, "static_k", rows, head_dim), _heads(v, static_v, "static_v", rows, head_dim)
    if add_zero_attn:
        k, v = _append_zero(k), _append_zero(v)
    for _ in range(extended + bool(add_zero_attn)):
        attn_mask, padding = _one_more(attn_mask), _one_more(padding)
    attn_mask = _merge_padding(attn_mask, padding, bsz, num_heads, k.size(1))
    dropout_p = dropout_p if training else 0.0
    weights = None
    if need_weights:
        result, weights = _with_weights(q, k, v, attn_mask, dropout_p)
        weights = weights.reshape(bsz, num_heads, length, k.size(1))
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        result = _without_weights(q, k, v, attn_mask, dropout_p, is_causal, bsz, num_heads)
    out = linear(result.transpose(0, 1).reshape(length * bsz, size), out_proj_weight, out_proj_bias)
    out = out.reshape(length, bsz, out.size(1))
    if batched:
        return out, weights
    return out.squeeze(1), None if weights is None else weights.squeeze(0)


# ---- in one call
@composite(
    "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, "
    "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, "
    "bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
    method=False,
    out=False,
    autocast_cpu="lower",
    autocast_cuda="lower",
)
def native_multi_head_attention(
    query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, need_weights,
    average_attn_weights, mask_type,
):  # fmt: skip
    """Self-attention of (batch, length, size) in one call; `mask_type` says what is masked: 0 pairs, 1 padding, 2 pairs of each head."""
    if mask is not None and mask_type not in (0, 1, 2):
        raise RuntimeError(
            f"Mask Type should be defined: 0 (length, length), 1 (batch, length) or 2 (batch, heads, length, length), but got {mask_type}"
        )
    x = query.transpose(0, 1)
    k = x if key is query else key.transpose(0, 1)
    v = k if value is key else value.transpose(0, 1)
    pairs = None if mask is None or mask_type == 1 else mask if mask_type == 0 else mask.flatten(0, 1)
    out, weights = multi_head_attention_forward(
        x, k, v, embed_dim, num_head, qkv_weight, qkv_bias, None, None, False, 0.0, proj_weight, proj_bias, training=False,
        key_padding_mask=mask if mask_type == 1 else None, attn_mask=pairs, need_weights=need_weights,
        average_attn_weights=average_attn_weights,
    )  # fmt: skip
    return out.transpose(0, 1), weights
