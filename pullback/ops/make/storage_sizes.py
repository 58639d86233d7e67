"""How many bytes there are under a tensor, changed by a call that graphs keep: `inductor::resize_storage_bytes_`.

In: a tensor, and a number of bytes. Sharded training takes the memory of parameters away between the layers that use them, and gives
it back: the tensors stay what they are, shape and all.
"""

from __future__ import annotations

from ...core.storage import UntypedStorage, storage_of
from ...core.tensor import Tensor
from ..system.inplace import told_mode
from .memory_operators import declare


def resize_storage(variable: Tensor, new_size: int) -> None:
    """Give the memory under a tensor `new_size` bytes; all tensors on it see the new memory."""
    told_mode("resize_storage", variable, new_size)
    UntypedStorage.of(storage_of(variable)).resize_(new_size)


declare("resize_storage_bytes_(Tensor(a!) variable, SymInt new_size) -> ()", resize_storage, "inductor")
