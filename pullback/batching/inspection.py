"""Questions about batched tensors, as PyTorch's `torch._C._functorch` answers them."""

from __future__ import annotations

from ..core.geometry import wrap_dim
from ..core.tensor import Tensor
from .batched import Wrapped


def _wrapped(tensor) -> Wrapped | None:
    return tensor.__dict__.get("wrapped") if isinstance(tensor, Tensor) and hasattr(tensor, "__dict__") else None


def is_batchedtensor(tensor) -> bool:
    """Whether a tensor stands for one example of a batch inside `vmap`."""
    return _wrapped(tensor) is not None


is_functorch_wrapped_tensor = is_batchedtensor


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The value with one more dimension under a batched tensor."""
    wrapped = _wrapped(tensor)
    if wrapped is None:
        raise RuntimeError("get_unwrapped: expected a batched tensor")
    return wrapped.value


def maybe_get_bdim(tensor: Tensor) -> int:
    """The batch dimension of a batched tensor; -1 for any other."""
    wrapped = _wrapped(tensor)
    return -1 if wrapped is None else wrapped.dim


def is_legacy_batchedtensor(tensor) -> bool:
    """Never: there is one kind of batched tensor here."""
    return False


def reshape_dim_into(source: int, target: int, tensor: Tensor) -> Tensor:
    """A tensor without dimension `source`, which becomes the outer part of the dimension that is then at `target`."""
    rank = tensor.ndim
    source, target = wrap_dim(source, rank), wrap_dim(target, rank - 1)
    moved = tensor.movedim(source, target)
    joined = moved.shape[target] * moved.shape[target + 1]
    return moved.reshape((*moved.shape[:target], joined, *moved.shape[target + 2 :]))


def reshape_dim_outof(source: int, size: int, tensor: Tensor) -> Tensor:
    """A tensor whose dimension `source` is two: an outer one of `size`, and the rest."""
    source = wrap_dim(source, tensor.ndim)
    if tensor.shape[source] % size:
        raise RuntimeError(
            f"reshape_dim_outof: {size} does not divide {tensor.shape[source]}, the size of dimension {source}"
        )
    inner = tensor.shape[source] // size
    return tensor.reshape((*tensor.shape[:source], size, inner, *tensor.shape[source + 1 :]))
