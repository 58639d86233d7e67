"""`MultiheadAttention`: the projections of attention and how they are called."""

from __future__ import annotations

from ..core import dtype as dtypes
from ..core.modes import is_grad_enabled
from ..core.tensor import Tensor
from ..ops.layout.nested.construct import as_nested_tensor
from ..ops.system.operator import public
from . import functional as F
from . import init
from .lazy import empty
from .linear import NonDynamicallyQuantizableLinear
from .module import Module
from .parameter import Parameter


class MultiheadAttention(Module):
    """Attention in several heads, each on its own projection.

    >>> attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.ones(1, 5, 8)
    >>> out, weights = attention(x, x, x)
    >>> out.shape, weights.shape
    (torch.Size([1, 5, 8]), torch.Size([1, 5, 5]))
    """

    __constants__ = ["batch_first"]

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device=None, dtype=None,
    ) -> None:  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self._make_projections(device, dtype)
        self.register_parameter("in_proj_bias", Parameter(empty(3 * embed_dim, device, dtype)) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        if add_bias_kv:
            self.bias_k = Parameter(empty((1, 1, embed_dim), device, dtype))
            self.bias_v = Parameter(empty((1, 1, embed_dim), device, dtype))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _make_projections(self, device, dtype) -> None:
        """One weight for all three where the sizes allow it, else one each."""
        size = self.embed_dim
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(empty((3 * size, size), device, dtype))
            absent = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        else:
            self.q_proj_weight = Parameter(empty((size, size), device, dtype))
            self.k_proj_weight = Parameter(empty((size, self.kdim), device, dtype))
            self.v_proj_weight = Parameter(empty((size, self.vdim), device, dtype))
            absent = ("in_proj_weight",)
        for name in absent:
            self.register_parameter(name, None)

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def __setstate__(self, state: dict) -> None:
        state.setdefault("_qkv_same_embed_dim", True)  # older modules had no other kind
        super().__setstate__(state)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        if query.is_nested or key.is_nested or value.is_nested:
            return self._of_nested(query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights)
        swap = self.batch_first and query.dim() == 3
        if swap:
            query, key, value = self._time_first(query, key, value)
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return (out.transpose(1, 0) if swap else out), weights

    def _of_nested(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask, need_weights: bool, attn_mask,
        average_attn_weights: bool,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Self-attention of components of different lengths: padded, with the padding masked, and cut again."""
        reason = self._why_not_nested(query, key, value, key_padding_mask is not None or attn_mask is not None)
        if reason is not None:
            raise AssertionError(
                "MultiheadAttention does not support NestedTensor outside of its fast path. The fast path was not hit "
                f"because {reason}"
            )
        lengths = [len(t) for t in query.unbind()]
        if not any(lengths):  # there is nothing to attend to, and nothing that attends
            heads = () if average_attn_weights else (self.num_heads,)
            return query, query.values().new_zeros(len(lengths), *heads, 0, 0) if need_weights else None
        padded = query.to_padded_tensor(0.0)
        ends = padded.new_tensor(lengths, dtype=dtypes.int64)
        padding = public("torch", "arange")(padded.shape[1], device=padded.device) >= ends[:, None]
        out, weights = self.forward(padded, padded, padded, padding, need_weights, None, average_attn_weights)
        if weights is not None:
            rows = padding[:, None] if weights.dim() == 4 else padding
            weights = weights.masked_fill(rows[..., None], 0.0)
        return as_nested_tensor(
            [t[:n] for t, n in zip(out.unbind(), lengths, strict=True)], layout=query.layout
        ), weights

    def _why_not_nested(self, query: Tensor, key: Tensor, value: Tensor, masked: bool) -> str | None:
        """What keeps nested tensors out, in PyTorch's words; None where nothing does."""
        parameters = [p for p in self.parameters() if p.requires_grad]
        reasons = {
            f"input not batched; expected query.dim() of 3 but got {query.dim()}": query.dim() != 3,
            "non-self attention was used (query, key, and value are not the same Tensor)": query is not key
            or key is not value,
            "training is enabled": self.training,
            "self.num_heads is not even": self.num_heads % 2,
            "batch_first was not True": not self.batch_first,
            "self.bias_k was not None": self.bias_k is not None,
            "add_zero_attn was enabled": self.add_zero_attn,
            "_qkv_same_embed_dim was not True": not self._qkv_same_embed_dim,
            "masks are not supported with NestedTensor input, whose lengths say what is padding": masked,
            "grad is enabled and at least one of query or the input/output projection weights or biases requires_grad": (
                is_grad_enabled() and (query.requires_grad or bool(parameters))
            ),
        }
        return next((reason for reason, holds in reasons.items() if holds), None)

    @staticmethod
    def _time_first(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Transposed; what was one tensor stays one, so that it is projected once."""
        q = query.transpose(1, 0)
        k = q if key is query else key.transpose(1, 0)
        return q, k, k if value is key else value.transpose(1, 0)

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """(one mask for both, what kind it is: 0 attention alone, 1 padding alone, 2 both)."""
        kind: int | None = None
        merged: Tensor | None = None
        if key_padding_mask is not None:
            kind, merged = 1, key_padding_mask
        if attn_mask is not None:
            batch, length, _ = query.shape
            kind = 2
            merged = (
                attn_mask.reshape(batch, -1, length, length)
                if attn_mask.dim() == 3
                else attn_mask.reshape(1, 1, length, length)
            )
            merged = merged.expand(batch, self.num_heads, -1, -1)
            if key_padding_mask is not None:
                merged = merged + key_padding_mask.reshape(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, kind
