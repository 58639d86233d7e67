"""Words that the rules of linear algebra are written in: adjoints, triangles, diagonals, over tensors.

In and out: tensors, matrices in the last two dims. Everything here is made of operators, so that it can be
differentiated, traced and batched; `stacked` makes the vmap rule of an operator that works on stacks of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.geometry import broadcast_shapes
from ...core.tensor import Tensor
from ..elementwise.arithmetic import conj
from ..system.operator import Operator, Spec, exports


def mT(a: Tensor) -> Tensor:
    """The transpose."""
    return a.transpose(-2, -1)


def mH(a: Tensor) -> Tensor:
    """The conjugate transpose."""
    return conj(mT(a))


def cat(tensors: Sequence[Tensor], dim: int) -> Tensor:
    return exports["torch"]["cat"](tensors, dim)


def where(condition: Tensor, a: Any, b: Any) -> Tensor:
    return exports["torch"]["where"](condition, a, b)


def eye_like(a: Tensor, n: int | None = None) -> Tensor:
    """One identity matrix of the tensor's dtype and device."""
    n = a.shape[-1] if n is None else n
    return exports["torch"]["eye"](n, dtype=a.dtype, device=a.device)


def diagonal(a: Tensor) -> Tensor:
    return a.diagonal(0, -2, -1)


def diagonal_matrix(d: Tensor) -> Tensor:
    return d.diag_embed(0, -2, -1)


def real_part(a: Tensor) -> Tensor:
    return a.real if a.dtype.is_complex else a


def add(*parts: Tensor | None) -> Tensor | None:
    """The sum of what is there."""
    total = None
    for p in parts:
        if p is not None:
            total = p if total is None else total + p
    return total


def spec(t: Tensor, shape: Sequence[int], dtype: Any = None) -> Spec:
    return Spec(tuple(shape), dtype or t.dtype)


def stack_shape(*tensors: Tensor, cores: Sequence[int] | None = None) -> tuple[int, ...]:
    """The stack dims of several tensors, broadcast; `cores` counts the trailing dims that are not stack dims."""
    cores = cores or (2,) * len(tensors)
    return tuple(broadcast_shapes(*(tuple(t.shape[: t.ndim - c]) for t, c in zip(tensors, cores))))


def expand_stack(t: Tensor, batch: Sequence[int], core: int = 2) -> Tensor:
    """The tensor with its stack dims expanded to `batch`."""
    shape = (*batch, *t.shape[t.ndim - core :])
    return t if tuple(t.shape) == shape else t.expand(shape)


def stacked(cores: dict[int, int]) -> Callable[[Callable[[], Operator]], Callable[..., Any]]:
    """The vmap rule of an operator over stacks: `cores` gives each tensor argument's number of non-stack dims."""

    def bind(operator: Callable[[], Operator]) -> Callable[..., Any]:
        def rule(args: tuple, dims: tuple, size: int) -> tuple[Any, int]:
            here = {i: core for i, core in cores.items() if args[i] is not None}
            ranks = [args[i].ndim - (dims[i] is not None) - core for i, core in here.items()]
            moved = list(args)
            for (i, _), rank in zip(here.items(), ranks):
                t = args[i].movedim(dims[i], 0) if dims[i] is not None else args[i].expand((size, *args[i].shape))
                missing = max(ranks) - rank
                moved[i] = t.reshape((size, *(1,) * missing, *t.shape[1:])) if missing else t
            return operator()(*moved), 0

        return rule

    return bind
