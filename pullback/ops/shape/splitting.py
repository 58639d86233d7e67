"""A tensor taken apart: split, chunk, tensor_split and their kin, and `_chunk_cat`, which joins what it splits.

In: a tensor and sizes, counts or places. Out: a tuple of views (copies without a link to the source for the `unsafe_`
forms).
"""

from __future__ import annotations

from ...core.device import contiguous_format
from ...core.geometry import wrap_dim
from ...core.symbolic import sym_int
from ...core.tensor import Tensor
from ..eager.straight import FunctionCase
from ..eager.views import is_plain_tensor
from ..family.base import composite
from ..system.calls import front
from ..system.dispatch import dispatch
from .joining import cat, joined_out
from .shapes import narrow_bounds
from .views import quick_pieces, quick_split, slice_, split_even, split_with_sizes

Pieces = tuple[Tensor, ...]


@front("torch.split", "Tensor.split")
def split(input, split_size_or_sections=None, dim: int = 0, *, split_size=None) -> Pieces:
    """Pieces of one size, or of the sizes given."""
    size = split_size_or_sections if split_size_or_sections is not None else split_size
    if (quick := quick_split(input, size, dim)) is not None:
        return quick
    if isinstance(size, (tuple, list)):
        return dispatch(split_with_sizes, split_with_sizes.convert((input, size, dim)))
    return dispatch(split_even, split_even.convert((input, size, dim)))


def _chunk_size(t: Tensor, chunks: int, dim: int) -> tuple:
    """(size of a chunk, dimension)."""
    if not t.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    d = wrap_dim(dim, t.ndim)
    return (t.shape[d] + chunks - 1) // chunks, d


def _quick_chunk(input, chunks, dim):
    if not is_plain_tensor(input) or chunks.__class__ is not int or dim.__class__ is not int or chunks <= 0:
        return None
    shape = input._array.shape
    return quick_split(input, -(-shape[dim] // chunks), dim) if -len(shape) <= dim < len(shape) else None


@composite(
    "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", out=False, plain=FunctionCase(_quick_chunk)
)
def chunk(self, chunks, dim):
    size, d = _chunk_size(self, chunks, dim)
    if size == 0 and self.shape[d] == 0:  # as many empty pieces as asked for
        return dispatch(split_with_sizes, (self, (0,) * chunks, d))
    return dispatch(split_even, (self, size, d))


# ---- tensor_split
@front("torch.tensor_split", "Tensor.tensor_split")
def tensor_split(
    input, indices_or_sections=None, dim: int = 0, *, indices=None, sections=None, tensor_indices_or_sections=None
) -> Pieces:
    """Pieces that differ in size by at most one, or pieces between given places."""
    how = indices_or_sections
    if how is None:
        how = next((g for g in (indices, sections, tensor_indices_or_sections) if g is not None), None)
    if not input.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    wrap_dim(dim, input.ndim)
    if isinstance(how, Tensor):
        how = _places(how)
    if isinstance(how, (tuple, list)):
        return _between(input, [sym_int(i) for i in how], dim)
    return _near_equal(input, how, dim)


def _places(how: Tensor):
    if how.dtype.name != "int64":
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {how.dtype.scalar_name}"
        )
    if how.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, "
            f"but got a tensor with {how.ndim} dims"
        )
    return how.tolist()


def _between(t: Tensor, places: list, dim: int) -> Pieces:
    d = wrap_dim(dim, t.ndim)
    starts, ends = [0, *places], [*places, t.shape[d]]
    return tuple(dispatch(slice_, (t, d, a, b, 1)) for a, b in zip(starts, ends, strict=True))


def _near_equal(t: Tensor, sections: int, dim: int) -> Pieces:
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    d = wrap_dim(dim, t.ndim)
    size, larger = divmod(t.shape[d], sections)
    places = [i * size + min(i, larger) for i in range(sections + 1)]
    if (pieces := quick_pieces(t, d, places)) is not None:
        return pieces
    return tuple(dispatch(slice_, (t, d, a, b, 1)) for a, b in zip(places, places[1:], strict=False))


def _make_split(name: str, dim: int, least: int) -> None:
    def make(input, indices_or_sections=None, *, indices=None, sections=None) -> Pieces:
        """Split along one dimension by count or by places."""
        how = next((g for g in (indices_or_sections, indices, sections) if g is not None), None)
        if input.ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with "
                f"{input.ndim} dimensions!"
            )
        d = 0 if name == "hsplit" and input.ndim == 1 else dim
        if not isinstance(how, (tuple, list)) and (how == 0 or input.shape[d] % how):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {d}, but the size of the dimension {input.shape[d]} "
                f"is not divisible by the split_size {how}!"
            )
        return tensor_split(input, how, d)

    make.__name__ = name
    front(f"torch.{name}", f"Tensor.{name}")(make)


_make_split("hsplit", 1, 1)
_make_split("vsplit", 0, 2)
_make_split("dsplit", 2, 3)


# ---- copies that know nothing of their source
def _copies(pieces) -> Pieces:
    return tuple(p.clone() for p in pieces)


@composite("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", out=False)
def unsafe_split(self, split_size, dim):
    return _copies(dispatch(split_even, (self, split_size, dim)))


@composite("unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", out=False)
def unsafe_split_with_sizes(self, split_sizes, dim):
    return _copies(dispatch(split_with_sizes, (self, split_sizes, dim)))


@composite("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", out=False)
def unsafe_chunk(self, chunks, dim):
    return _copies(self.chunk(chunks, dim))


@composite("narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor")
def narrow_copy(self, dim, start, length):
    dim, start = narrow_bounds(self, dim, start, length)
    return dispatch(slice_, (self, dim, start, start + length, 1)).clone(memory_format=contiguous_format)


# ---- split, pad, join
def _check_chunk_cat(tensors, num_chunks: int) -> None:
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    for t in tensors:
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")


@composite("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", method=False, check_out=joined_out)
def chunk_cat(tensors, dim, num_chunks):
    """Each tensor padded with zeros to a multiple of `num_chunks` along `dim`, cut into as many rows; rows joined."""
    _check_chunk_cat(tensors, num_chunks)
    d = wrap_dim(dim, tensors[0].ndim)
    rows = []
    for t in tensors:
        short = -t.shape[d] % num_chunks
        if short:
            t = dispatch(cat, ((t, t.new_zeros((*t.shape[:d], short, *t.shape[d + 1 :]))), d))
        rows.append(t.reshape((*t.shape[:d], num_chunks, -1)))
    return dispatch(cat, (tuple(rows), d + 1))
