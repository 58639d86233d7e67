"""`torch.sparse.FloatTensor(indices, values, size)` and its like: sparse tensors of one dtype, made the old way.

What always holds: calling one gives a COO tensor of its dtype; `isinstance` with one asks for the layout and the dtype.
"""

from __future__ import annotations

from typing import Any

from ....core import device as devices
from ....core import dtype as dtypes
from ....core.tensor import Tensor
from ...make.construct import TYPED as DENSE
from .construct import sparse_coo_tensor


class _TypedSparseMeta(type):
    dtype: dtypes.dtype

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor) and x.layout is devices.sparse_coo and x.dtype is cls.dtype and not x.is_cuda


def _typed(name: str, d: dtypes.dtype) -> type:
    def __new__(cls, *args, device=None):
        if not args:
            return sparse_coo_tensor((0,), dtype=d, device=device)
        return sparse_coo_tensor(*args, dtype=d, device=device)

    body = {
        "__new__": __new__, "__module__": "torch.sparse", "dtype": d, "is_cuda": False, "is_sparse": True,
        "layout": devices.sparse_coo,
    }  # fmt: skip
    return _TypedSparseMeta(name, (), body)


TYPED = {name: _typed(name, dense.dtype) for name, dense in DENSE.items()}
