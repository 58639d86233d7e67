"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ...core.tensor import Tensor
from ...ops.system.operator import public
from ..module import type_name


def _one_device(parameters: Iterable[Tensor]) -> list[Tensor]:
    listed = list(parameters)
    if len({p.device for p in listed}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return listed


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after another.

    >>> torch.nn.utils.parameters_to_vector([torch.zeros(2), torch.ones(1)])
    tensor([0., 0., 1.])
    """
    return public("torch", "cat")([p.view(-1) for p in _one_device(parameters)])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give each parameter its part of the vector as data.

    >>> w = torch.nn.Parameter(torch.zeros(2))
    >>> torch.nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0]), [w])
    >>> w
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type_name(vec)}")
    at = 0
    for p in _one_device(parameters):
        n = p.numel()
        p.data = vec[at : at + n].view_as(p).data
        at += n


def flatten_dense(tensors) -> Tensor:
    """Dense tensors of one dtype as one vector, in their order."""
    return public("torch", "cat")([t.contiguous().view(-1) for t in tensors])


def unflatten_dense(flat: Tensor, tensors) -> tuple[Tensor, ...]:
    """The parts of a vector, with the shapes of the tensors that it was made of."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view_as(t) for part, t in zip(parts, tensors, strict=True))
