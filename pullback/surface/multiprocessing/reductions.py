"""How tensors travel between processes: by the descriptor of the file that their memory is."""

from __future__ import annotations

import multiprocessing.reduction as transport
import os
import weakref
from multiprocessing.reduction import ForkingPickler

import numpy as np

from ...core.shared_memory import attach, share
from ...core.storage import Storage, UntypedStorage, storage_of
from ...core.tensor import Parameter, Tensor, wrap

_received: dict[tuple[int, int], weakref.ref] = {}  # the storages that were received and still live, by file


class StorageWeakRef:
    """A reference to a storage that does not keep it; equal to every other one to the same storage.

    >>> x = torch.ones(3)
    >>> ref = torch.multiprocessing.reductions.StorageWeakRef(x.untyped_storage())
    >>> ref == torch.multiprocessing.reductions.StorageWeakRef(x[1:].untyped_storage()), ref.expired()
    (True, False)
    """

    __slots__ = ("_reference", "cdata")

    def __init__(self, storage: Storage) -> None:
        self._reference, self.cdata = weakref.ref(storage), id(storage)

    def expired(self) -> bool:
        """Whether the storage is gone."""
        return self._reference() is None

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, StorageWeakRef) and self.cdata == other.cdata


def _rebuild_storage(descriptor, length: int, identity: tuple[int, int]) -> Storage:
    """The storage of a descriptor: the same object for the same memory, so that aliases stay aliases."""
    known = _received.get(identity)
    storage = known() if known is not None else None
    if storage is not None:
        os.close(descriptor.detach())
        return storage
    storage = attach(descriptor.detach(), length)
    _received[identity] = weakref.ref(storage, lambda _: _received.pop(identity, None))
    return storage


def _reduce_storage(storage: Storage) -> tuple:
    share(storage)
    descriptor = storage.__dict__["descriptor"]
    facts = os.fstat(descriptor)
    return transport.DupFd(descriptor), storage.length, (facts.st_dev, facts.st_ino)


def _rebuild_tensor(
    kind: type, parts: tuple, dtype, shape: tuple, stride: tuple, offset: int, requires_grad: bool
) -> Tensor:
    storage = UntypedStorage.of(_rebuild_storage(*parts))
    result = wrap(np.empty(0, dtype.numpy), dtype).set_(storage, offset, shape, stride)
    if kind is Parameter:
        return Parameter(result, requires_grad)
    return result.requires_grad_() if requires_grad else result


def _rebuild_untyped(*parts) -> UntypedStorage:
    return UntypedStorage.of(_rebuild_storage(*parts))


def reduce_tensor(t: Tensor):
    """What is sent of a tensor. One with a history cannot be sent: its graph stays in this process."""
    if t.requires_grad and not t.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
            "process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing "
            "(e.g., putting it on the queue)."
        )
    if t._keys or type(t) not in (Tensor, Parameter) or t.numel() == 0:
        return t.__reduce_ex__(4)
    parts = _reduce_storage(storage_of(t))
    return _rebuild_tensor, (type(t), parts, t.dtype, tuple(t.shape), t.stride(), t.storage_offset(), t.requires_grad)


def reduce_storage(s: UntypedStorage):
    if s._storage.buffer is None or not s.nbytes():
        return s.__reduce__()
    return _rebuild_untyped, _reduce_storage(s._storage)


def init_reductions() -> None:
    """Teach multiprocessing to share tensors instead of copying them."""
    ForkingPickler.register(UntypedStorage, reduce_storage)
    for kind in (Tensor, Parameter):
        ForkingPickler.register(kind, reduce_tensor)
