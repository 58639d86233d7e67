"""Causal masks by name: `scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(3, 5))`.

A `CausalBias` says which corner the diagonal starts from, so that attention can be told "causal" where the two corners
mean the same, instead of being given a mask. It has no numbers of its own; `_materialize()` makes the mask.
"""

from __future__ import annotations

import warnings
from enum import IntEnum
from typing import Any

from ...core import dtype as dtypes
from ...core.tensor import Tensor
from ...ops.system.operator import public

__all__ = ["causal_upper_left", "causal_lower_right", "CausalVariant", "CausalBias"]


class CausalVariant(IntEnum):
    """The corner that the diagonal of a mask goes through; the two differ where lengths do."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask for queries and keys of given lengths."""

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant)}")
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2
            )

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask: true where a query may look at a key."""
        shift = self.seq_len_kv - self.seq_len_q if self.variant is CausalVariant.LOWER_RIGHT else 0
        whole = public("torch", "ones")(self.seq_len_q, self.seq_len_kv, dtype=dtypes.bool, device=device)
        return whole.tril(diagonal=shift)

    @staticmethod
    def _dispatch(
        query: Tensor, key: Tensor, value: Tensor, attn_mask: CausalBias, dropout_p: float = 0.0, is_causal: bool = False,
        scale: float | None = None, enable_gqa: bool = False,
    ) -> Tensor:  # fmt: skip
        """Attention with this mask: by the word `is_causal` where it means the same."""
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        attend = public("nn.functional", "scaled_dot_product_attention")
        same = attn_mask.seq_len_q == attn_mask.seq_len_kv or attn_mask.variant is CausalVariant.UPPER_LEFT
        mask = None if same else attn_mask._materialize(query.device)
        return attend(
            query, key, value, attn_mask=mask, dropout_p=dropout_p, is_causal=same, scale=scale, enable_gqa=enable_gqa
        )

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") == "scaled_dot_product_attention":
            return cls._dispatch(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)

    def __repr__(self) -> str:
        return repr(self._materialize())

    __str__ = __repr__


def causal_upper_left(*size: int) -> CausalBias:
    """The mask whose diagonal starts at the first query and the first key."""
    return _bias(CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask whose diagonal ends at the last query and the last key."""
    return _bias(CausalVariant.LOWER_RIGHT, size)


def _bias(variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"causal_{variant.name.lower()} only supports 2D tensors")
    return CausalBias(variant, *size)
