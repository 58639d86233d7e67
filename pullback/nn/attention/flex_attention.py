"""Attention whose scores a function of one's own changes, and whose mask a function says.

`score_mod(score, b, h, q, kv)` and `mask_mod(b, h, q, kv)` are element-wise functions of the score and of four indices.
They are called once, with tensors that broadcast against (batch, heads, queries, keys). A `BlockMask` keeps, beside the
function, which blocks of the score matrix are empty, partly allowed and fully allowed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple, TypedDict

from ...core import dtype as dtypes
from ...core.modes import DISPATCH, TRANSFORM, ambient
from ...core.tensor import Tensor
from ...ops.system.operator import public
from ...ops.system.packet import ops

_DEFAULT_BLOCK = _DEFAULT_SPARSE_BLOCK_SIZE = 128


class FlexKernelOptions(TypedDict, total=False):
    """Settings of fused kernels; the implementation here has none, and takes and ignores them."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    BLOCK_M1: int
    BLOCK_N1: int
    BLOCK_M2: int
    BLOCK_N2: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    BACKEND: str


class AuxRequest(NamedTuple):
    """What to return beside the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was returned beside the result."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def _torch(name: str):
    return public("torch", name)


def _indices(sizes: tuple, device) -> list[Tensor]:
    """One index tensor for each of four dimensions, shaped to broadcast against the others."""
    result = []
    for d, n in enumerate(sizes):
        shape = [1] * 4
        shape[d] = n
        result.append(_torch("arange")(n, device=device).reshape(shape))
    return result


def _identity(score: Tensor, batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The scores as they are."""
    return score


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Allows everything."""
    return batch.new_ones((), dtype=dtypes.bool)


def _combined(mask_mods: tuple, start: bool, join: Callable) -> Callable:
    if not all(callable(m) for m in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask_mod(b, h, q, kv):
        result = b.new_full((), start, dtype=dtypes.bool)
        for m in mask_mods:
            result = join(result, m(b, h, q, kv))
        return result

    return mask_mod


def and_masks(*mask_mods: Callable) -> Callable:
    """Allows what all allow."""
    return _combined(mask_mods, True, lambda a, b: a & b)


def or_masks(*mask_mods: Callable) -> Callable:
    """Allows what any allows."""
    return _combined(mask_mods, False, lambda a, b: a | b)


def create_mask(mod_fn: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device=None) -> Tensor:
    """The whole mask of a mask function, or of a score function: what it does not make minus infinity."""
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    indices = _indices(sizes, device)
    takes_scores = mod_fn.__code__.co_argcount == 5 if hasattr(mod_fn, "__code__") else False
    result = (
        mod_fn(*indices) if not takes_scores else ~mod_fn(_torch("zeros")(sizes, device=device), *indices).isneginf()
    )
    return result.to(dtypes.bool).expand(sizes).clone()


class BlockMask:
    """A mask function and, for blocks of queries and keys, which of them it leaves empty, part or whole."""

    def __init__(
        self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None, full_kv_indices: Tensor | None, q_num_blocks: Tensor | None,
        q_indices: Tensor | None, full_q_num_blocks: Tensor | None, full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_BLOCK, _DEFAULT_BLOCK), mask_mod: Callable = noop_mask,
    ) -> None:  # fmt: skip
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        self.seq_lengths = tuple(seq_lengths)
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.BLOCK_SIZE = tuple(BLOCK_SIZE)
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None, BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_BLOCK,
        mask_mod: Callable | None = None, seq_lengths: tuple[int, int] | None = None, compute_q_blocks: bool = True,
    ) -> BlockMask:  # fmt: skip
        """A BlockMask from the lists of key blocks that each query block sees."""
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        columns = kv_indices.shape[-1]
        by_query = [None] * 4
        if compute_q_blocks:
            by_query[:2] = _listed(_table(kv_num_blocks, kv_indices, columns).transpose(-2, -1))
            if full_kv_num_blocks is not None:
                by_query[2:] = _listed(_table(full_kv_num_blocks, full_kv_indices, columns).transpose(-2, -1))
        lengths = seq_lengths or (kv_indices.shape[-2] * size[0], columns * size[1])
        own = (kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices)
        return cls(lengths, *own, *by_query, BLOCK_SIZE=size, mask_mod=mask_mod or noop_mask)

    @property
    def shape(self) -> tuple[int, ...]:
        *batch, _, _ = self.kv_indices.shape
        return (*batch, *self.seq_lengths)

    def as_tuple(self, flatten: bool = True) -> tuple:
        """Everything that makes the mask, in the constructor's order."""
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        size = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        return (*lengths, *self._tensors().values(), *size, self.mask_mod)

    def _tensors(self) -> dict[str, Tensor | None]:
        names = (
            "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices",
            "full_q_num_blocks", "full_q_indices",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}

    def to(self, device) -> BlockMask:
        """The mask on another device."""
        moved = [None if t is None else t.to(device) for t in self._tensors().values()]
        return BlockMask(self.seq_lengths, *moved, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod)

    def __getitem__(self, index) -> BlockMask:
        """The mask of some batches, heads and query blocks."""
        index = index if isinstance(index, tuple) else (index,)
        index = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in index)
        kept = [None if t is None else t[index] for t in list(self._tensors().values())[:4]]
        return BlockMask.from_kv_blocks(*kept, self.BLOCK_SIZE, None, self.seq_lengths, self.q_indices is not None)

    def numel(self) -> int:
        """How many elements the whole mask would have."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """1 for each block of which something is allowed."""
        columns = self.kv_indices.shape[-1]
        result = _table(self.kv_num_blocks, self.kv_indices, columns)
        if self.full_kv_num_blocks is not None:
            result = result | _table(self.full_kv_num_blocks, self.full_kv_indices, columns)
        return result.to(dtypes.int32)

    def sparsity(self) -> float:
        """The percentage of the mask that lies in empty blocks."""
        blocks = self.to_dense().sum().item()
        return 100 * (1 - blocks * math.prod(self.BLOCK_SIZE) / self.numel())

    def to_string(self, grid_size=(20, 20), limit: int = 4) -> str:
        """A picture of the blocks of each batch and head."""
        dense = self.to_dense()
        lead = dense.shape[:-2]
        lines = []
        for n in range(min(math.prod(lead), limit)):
            at = tuple(n // math.prod(lead[d + 1 :]) % lead[d] for d in range(len(lead)))
            lines += [str(at), *("".join("██" if v else "  " for v in row) for row in dense[at].tolist())]
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string()}\n)"

    def __repr__(self) -> str:
        rows = [f"{k}={None if t is None else t.shape}" for k, t in self._tensors().items()]
        name = getattr(self.mask_mod, "__name__", self.mask_mod)
        rows += [
            f"BLOCK_SIZE={self.BLOCK_SIZE}",
            f"shape={self.shape}",
            f"sparsity={self.sparsity():.2f}%",
            f"mask_mod={name}",
        ]
        return "BlockMask(\n" + ",\n".join(f"    {r}" for r in rows) + "\n)"


def _table(counts: Tensor, indices: Tensor, columns: int) -> Tensor:
    """Lists of block numbers as a table of booleans."""
    valid = _torch("arange")(indices.shape[-1], device=indices.device) < counts.unsqueeze(-1)
    result = indices.new_zeros((*indices.shape[:-1], columns + 1), dtype=dtypes.int64)
    places = _torch("where")(valid, indices.long(), columns)  # what is not listed goes into a column that is cut off
    return result.scatter(-1, places, 1)[..., :columns].to(dtypes.bool)


def _listed(table: Tensor) -> tuple[Tensor, Tensor]:
    """A table of booleans as lists of block numbers: (how many, which, those first)."""
    counts = table.sum(-1).to(dtypes.int32)
    order = table.to(dtypes.int32).argsort(dim=-1, descending=True, stable=True)
    return counts, order.to(dtypes.int32)


def create_block_mask(
    mask_mod: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device=None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_BLOCK, _compile: bool = False, separate_full_blocks: bool = True,
) -> BlockMask:  # fmt: skip
    """The BlockMask of a mask function."""
    if not callable(mask_mod):
        raise TypeError(f"{mask_mod} is not a callable object")
    rows, columns = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    padded = public("nn.functional", "pad")(mask, (0, -KV_LEN % columns, 0, -Q_LEN % rows))
    b, h, q, kv = padded.shape
    allowed = padded.reshape(b, h, q // rows, rows, kv // columns, columns).to(dtypes.int64).sum((3, 5))
    whole = allowed == rows * columns
    if separate_full_blocks:
        part, full = _listed((allowed > 0) & ~whole), _listed(whole)
    else:
        part, full = _listed(allowed > 0), (None, None)
    return BlockMask.from_kv_blocks(*part, *full, (rows, columns), mask_mod, (Q_LEN, KV_LEN))


def _check(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.size(-1)} and E={key.size(-1)}."
        )
    heads, fewer = query.size(1), key.size(1)
    if not enable_gqa and heads != fewer:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={fewer}. "
            "Try setting enable_gqa=True for GQA."
        )
    if heads % fewer:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={fewer}."
        )
    if block_mask is not None:
        q_len, kv_len = query.size(-2), key.size(-2)
        rows, columns = block_mask.shape[-2:]
        if q_len > rows or kv_len > columns:
            raise ValueError(
                f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={q_len} and "
                f"kv_len={kv_len}. As the block mask was created for a smaller length than you're using it for, you "
                "likely need to create a new block mask."
            )


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None, *, return_aux: AuxRequest | None = None,
):  # fmt: skip
    """softmax(score_mod(query keyᵀ scale)) value, over what the mask allows."""
    _check(query, key, value, block_mask, enable_gqa)
    if return_lse:
        if return_aux is not None:
            raise ValueError(
                "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use return_aux "
                "instead."
            )
        warnings.warn(
            "return_lse is deprecated and will be removed in v2.10. Please use return_aux=AuxRequest(lse=True) "
            "instead.",
            FutureWarning,
            stacklevel=2,
        )
    groups = query.size(1) // key.size(1)
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scale = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    if ambient.mode & (DISPATCH | TRANSFORM) == DISPATCH:
        result = block_mask if block_mask is not None else _nothing_masked(query)
        kept = score_mod or (lambda score, b, h, q, kv: score.clone())
        out, lse, largest = ops.higher_order.flex_attention(
            query, key, value, kept, result.as_tuple(), scale, dict(kernel_options or {})
        )
    else:
        mask_mod = block_mask.mask_mod if block_mask is not None else None
        out, scores = attend(query, key, value, score_mod, mask_mod, scale)
        lse = scores.logsumexp(-1) if return_lse or return_aux is not None and return_aux.lse else None
        largest = scores.amax(-1) if return_aux is not None and return_aux.max_scores else None
    if return_lse:
        return out, lse
    if return_aux is None:
        return out
    return out, AuxOutput(lse if return_aux.lse else None, largest if return_aux.max_scores else None)


def attend(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable | None, mask_mod: Callable | None, scale: float
) -> tuple[Tensor, Tensor]:
    """The result, and the scores it weighs by; both functions take tensors that broadcast against the scores."""
    working = dtypes.float64 if query.dtype is dtypes.float64 else dtypes.float32
    scores = (query.to(working) @ key.to(working).transpose(-2, -1)) * scale
    indices = _indices(tuple(scores.shape), query.device)
    if score_mod is not None:
        scores = score_mod(scores, *indices)
    if mask_mod is not None:
        scores = scores.masked_fill(~mask_mod(*indices).to(dtypes.bool), -math.inf)
    hidden = (scores == -math.inf).all(-1, keepdim=True)
    weights = scores.masked_fill(hidden, 0.0).softmax(-1).masked_fill(hidden, 0.0)
    return (weights @ value.to(working)).to(query.dtype), scores


def _nothing_masked(query: Tensor) -> BlockMask:
    """The mask that allows everything, as one block larger than any tensor."""
    counts = _torch("ones")((1, 1, 1), dtype=dtypes.int32, device=query.device)
    places = _torch("zeros")((1, 1, 1, 1), dtype=dtypes.int32, device=query.device)
    return BlockMask.from_kv_blocks(counts, places, BLOCK_SIZE=1 << 30, seq_lengths=(1, 1))
