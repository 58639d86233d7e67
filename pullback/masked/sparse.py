"""Reductions of sparse tensors: the elements that take part are those where the mask is True, or those that are specified.

In: a reduction of dense tensors. Out: the same of every layout. Always: an element that takes part and is not specified is zero, and the
result, of the layout of the input, has an element where one took part.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..core import device as devices
from ..core import dtype as dtypes
from ..core.tensor import Tensor
from ..ops.system.operator import public
from .filling import Dims, every, input_mask

SPARSE = (devices.sparse_coo, devices.sparse_csr)


def of_layouts(*layouts, unmasked: bool = False) -> Callable:
    """A decorator: reduce tensors of these layouts as well; `unmasked`, without a mask, too."""

    def decorate(reduce: Callable) -> Callable:
        name = reduce.__name__

        @functools.wraps(reduce)
        def reduction(
            input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None
        ):
            if input.layout is devices.strided:
                return reduce(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
            check_layout(name, input, layouts)
            if mask is None and not unmasked:
                kind = str(input.layout).removeprefix("torch.")
                raise ValueError(f"masked {name} expects explicit mask for {kind} tensor input")
            if input.layout is devices.sparse_csr and not keepdim:
                raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
            taking = specified(input) if mask is None else input_mask(input, mask=mask).to_dense()
            result = reduce(input.to_dense(), dim, keepdim=keepdim, dtype=dtype, mask=taking)
            if input.layout is devices.sparse_coo and len(every(dim, input.ndim)) == input.ndim:
                return result.to_sparse()  # one number, which is not specified where it is zero
            return result.sparse_mask(_places(input, taking, every(dim, input.ndim), keepdim))

        return reduction

    return decorate


def check_layout(name: str, input: Tensor, layouts: tuple = ()) -> None:
    """Refuse a layout of which a function is not made."""
    if input.layout is devices.strided or input.layout in layouts:
        return
    known = " or ".join(["strided", *(str(layout).removeprefix("torch.") for layout in layouts)])
    raise ValueError(f"masked {name} expects {known} tensor (got {input.layout} tensor)")


def specified(input: Tensor) -> Tensor:
    """Where a sparse tensor has elements, dense."""
    if input.layout is devices.sparse_csr:
        return public("torch", "ones_like")(input, dtype=dtypes.bool).to_dense()
    held = input.detach().coalesce()
    ones = public("torch", "ones_like")(held.values(), dtype=dtypes.bool)
    return public("torch", "sparse_coo_tensor")(held.indices(), ones, input.shape, is_coalesced=True).to_dense()


def _places(input: Tensor, taking: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Where a result has elements, as a sparse tensor of its layout."""
    for d in sorted(dims, reverse=True):
        taking = taking.any(d, keepdim)
    if input.layout is devices.sparse_csr:
        return taking.to_sparse_csr()
    left = input.sparse_dim() - (0 if keepdim else sum(d < input.sparse_dim() for d in dims))
    if left:
        return taking.to_sparse(left)
    nowhere = public("torch", "zeros")((0, 1), dtype=dtypes.int64)
    return public("torch", "sparse_coo_tensor")(nowhere, taking[None], taking.shape, is_coalesced=True)
