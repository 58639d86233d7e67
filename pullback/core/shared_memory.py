"""Memory that other processes see: storages on shared pages, and on files.

`share(storage)` moves a storage to an anonymous file in memory. A forked child has the same pages; a spawned one, or one at
the other end of a queue, maps the file by the descriptor that it is sent (`attach`). The file lives as long as somebody
has it open. `map_file` reads a file as a storage without copying it.
"""

from __future__ import annotations

import mmap
import os
import weakref

import numpy as np

from . import device as devices
from .storage import Storage


def share(storage: Storage) -> Storage:
    """Move a storage to shared memory, once; every tensor on it sees the new memory."""
    if storage.shared or storage.buffer is None:
        storage.shared = True
        return storage
    if storage.device.type != "cpu":
        storage.shared = True  # device memory is shared by its own means, as in PyTorch
        return storage
    descriptor = os.memfd_create("pullback")
    buffer = _mapped(descriptor, storage.length)
    buffer[:] = storage.buffer[: storage.length]
    storage.replace_buffer(buffer, storage.length)
    _own(storage, descriptor)
    return storage


def attach(descriptor: int, length: int) -> Storage:
    """The storage that another process shares by a file descriptor; the descriptor belongs to it from now on."""
    storage = Storage(_mapped(descriptor, length), length, devices.cpu, resizable=False)
    _own(storage, descriptor)
    return storage


def _own(storage: Storage, descriptor: int) -> None:
    storage.shared, storage.may_resize = True, False
    storage.__dict__["descriptor"] = descriptor
    weakref.finalize(storage, os.close, descriptor)


def _mapped(descriptor: int, length: int) -> np.ndarray:
    if os.fstat(descriptor).st_size < length:
        os.ftruncate(descriptor, length)
    if length == 0:
        return np.empty(0, np.uint8)
    return np.frombuffer(mmap.mmap(descriptor, length), np.uint8)


def map_file(filename, shared: bool, nbytes: int) -> Storage:
    """A storage on a file. `shared`: writes go to the file, which is made and grown as needed; otherwise they stay here."""
    if shared:
        descriptor = os.open(filename, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            buffer = _mapped(descriptor, nbytes)
        finally:
            os.close(descriptor)
        storage = Storage(buffer, nbytes, devices.cpu, resizable=False)
        storage.shared = True
        storage.__dict__["filename"] = os.fspath(filename)
        return storage
    size = os.path.getsize(filename)
    if nbytes > size:
        raise RuntimeError(f"unable to map {nbytes} bytes of file <{os.fspath(filename)}>: it has only {size} bytes")
    if nbytes == 0:
        return Storage(np.empty(0, np.uint8), 0, devices.cpu)
    with open(filename, "rb") as file:
        pages = mmap.mmap(file.fileno(), nbytes, access=mmap.ACCESS_COPY)
    return Storage(np.frombuffer(pages, np.uint8), nbytes, devices.cpu, resizable=False)
