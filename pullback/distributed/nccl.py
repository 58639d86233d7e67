"""Ranks that NCCL joins: a `Channel` between GPUs, through CuPy.

In: arrays of CuPy's, each rank's on its own device. Out: requests that are done when the device has come to an event. The
ranks meet over a channel of the host (MPI, or nothing for one rank), which carries NCCL's unique id and, since NCCL has
none of its own, barriers and pickled objects.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import numpy as np

from .channel import Alone, Channel

OPS = {"SUM": 0, "PROD": 1, "MAX": 2, "MIN": 3, "LOR": 2, "LAND": 3}  # booleans are bytes of 0 and 1
TYPES = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7, "float64": 8,
}  # fmt: skip
BYTE = 1


def is_installed() -> bool:
    """Whether CuPy is there and was built with NCCL; CuPy is imported to see."""
    if importlib.util.find_spec("cupy") is None:
        return False
    try:
        from cupy.cuda import nccl
    except ImportError:
        return False
    return bool(nccl.available)


class _OnStream:
    """A request that is done when the device has come to it. It keeps the arrays until then."""

    def __init__(self, stream: Any, arrays: tuple):
        import cupy

        self.event, self.arrays = cupy.cuda.Event(disable_timing=True), arrays
        self.event.record(stream)

    def Test(self) -> bool:
        return self.event.done


class NcclChannel(Channel):
    """The GPUs of the ranks of another channel."""

    device = "cuda"

    def __init__(self, host: Channel, unique_id: Any):
        import cupy
        from cupy.cuda import nccl

        self.cupy, self.nccl, self.host = cupy, nccl, host
        self.rank, self.size = host.rank, host.size
        self.comm = nccl.NcclCommunicator(host.size, unique_id, host.rank)
        self.stream = cupy.cuda.Stream(non_blocking=True)

    @classmethod
    def of(cls, host: Channel) -> NcclChannel:
        """A channel of the same ranks; each takes the device of its local rank."""
        if not is_installed():
            raise RuntimeError(
                "the backend nccl needs CuPy with NCCL: pip install 'pullback[cuda]' on a machine with a GPU"
            )
        import cupy
        from cupy.cuda import nccl

        cupy.cuda.Device(int(os.environ.get("LOCAL_RANK", 0)) % cupy.cuda.runtime.getDeviceCount()).use()
        return cls(host, _shared_id(host, nccl))

    def split(self, ranks: list[int]) -> NcclChannel | None:
        part = Alone() if isinstance(self.host, Alone) else self.host.split(ranks)  # type: ignore[attr-defined]
        return None if part is None else NcclChannel(part, _shared_id(part, self.nccl))

    def copy(self) -> Channel:
        """Facts of calls are compared on the host."""
        return self.host.copy()  # type: ignore[attr-defined]

    @property
    def on_host(self) -> Channel:
        return self.host

    @property
    def mpi(self) -> Any:
        return self.host.mpi  # type: ignore[attr-defined]

    # ---- arrays
    def buffer(self, tensor):
        if isinstance(tensor._array, np.ndarray):
            raise ValueError("No backend type associated with device type cpu: the backend nccl takes tensors on cuda")
        return self.cupy.ascontiguousarray(tensor._array).reshape(tensor._array.shape)

    def room(self, shape, dtype):
        return self.cupy.empty(shape, dtype)

    def write(self, tensor, array):
        if tensor._array.data.ptr != array.data.ptr:
            tensor._array[...] = array.reshape(tensor._array.shape)

    def _run(self, call: Any, *arrays: Any) -> _OnStream:
        """Enqueue calls of NCCL after what the device was given so far."""
        ready = self.cupy.cuda.get_current_stream().record()
        self.stream.wait_event(ready)
        call(self.stream.ptr)
        return _OnStream(self.stream, arrays)

    @staticmethod
    def _kind(array: Any) -> int:
        if array.dtype.name not in TYPES:
            raise ValueError(f"NCCL cannot reduce elements of dtype {array.dtype}")
        return TYPES[array.dtype.name]

    def allreduce(self, send, recv, kind):
        sent = recv if send is None else send
        return self._run(
            lambda s: self.comm.allReduce(sent.data.ptr, recv.data.ptr, recv.size, self._kind(recv), OPS[kind], s),
            sent,
            recv,
        )

    def reduce(self, send, recv, kind, root):
        sent = recv if send is None else send
        return self._run(
            lambda s: self.comm.reduce(sent.data.ptr, recv.data.ptr, recv.size, self._kind(recv), OPS[kind], root, s),
            sent,
            recv,
        )

    def broadcast(self, array, root):
        return self._run(lambda s: self.comm.bcast(array.data.ptr, array.nbytes, BYTE, root, s), array)

    def allgather(self, send, recv):
        self._check_even(recv)
        if self._adjacent(recv):
            call = lambda s: self.comm.allGather(send.data.ptr, recv[0].data.ptr, send.nbytes, BYTE, s)
            return self._run(call, send, *recv)
        whole = self.cupy.empty((self.size, send.nbytes), np.uint8)

        def call(stream: int) -> None:
            self.comm.allGather(send.data.ptr, whole.data.ptr, send.nbytes, BYTE, stream)
            with self.stream:
                for row, part in zip(whole, recv, strict=True):
                    part.reshape(-1)[...] = row.view(part.dtype)

        return self._run(call, send, whole, *recv)

    def gather(self, send, recv, root):
        return self._exchange([(send, root)], list(enumerate(recv)) if self.rank == root else [])

    def scatter(self, send, recv, root):
        return self._exchange([(a, r) for r, a in enumerate(send)] if self.rank == root else [], [(root, recv)])

    def reduce_scatter(self, send, recv, kind, counts):
        if len(set(counts)) > 1:
            raise ValueError(f"the backend nccl scatters parts of one size, got {counts}")
        call = lambda s: self.comm.reduceScatter(
            send.data.ptr, recv.data.ptr, recv.size, self._kind(recv), OPS[kind], s
        )
        return self._run(call, send, recv)

    def alltoall(self, send, recv):
        return self._exchange([(a, r) for r, a in enumerate(send)], list(enumerate(recv)))

    def _exchange(self, sends: list, receives: list) -> _OnStream:
        """Messages that go and come at once."""

        def call(stream: int) -> None:
            self.nccl.groupStart()
            for array, to in sends:
                if array.nbytes:
                    self.comm.send(array.data.ptr, array.nbytes, BYTE, to, stream)
            for source, array in receives:
                if array.nbytes:
                    self.comm.recv(array.data.ptr, array.nbytes, BYTE, source, stream)
            self.nccl.groupEnd()

        return self._run(call, *[a for a, _ in sends], *[a for _, a in receives])

    def barrier(self):
        self.cupy.cuda.get_current_stream().synchronize()
        return self.host.barrier()

    def send(self, array, to, tag):
        return self._exchange([(array, to)], []) if self.size > 1 else self.host.send(array, to, tag)

    def recv(self, array, source, tag):
        if source is None:
            raise ValueError("the backend nccl receives from a rank that is named, not from anybody")
        return self._exchange([], [(source, array)]) if self.size > 1 else self.host.recv(array, source, tag)

    def _check_even(self, parts: list) -> None:
        if len({p.nbytes for p in parts}) > 1:
            raise ValueError(f"the backend nccl gathers parts of one size, got {[p.nbytes for p in parts]} bytes")

    @staticmethod
    def _adjacent(parts: list) -> bool:
        start, step = parts[0].data.ptr, parts[0].nbytes
        return all(p.data.ptr == start + i * step for i, p in enumerate(parts))


def _shared_id(host: Channel, nccl: Any) -> bytes | tuple:
    """NCCL's name for a new communicator: rank 0's. CuPy gives it as bytes; before version 14, as a tuple of signed ones."""
    result = nccl.get_unique_id()
    as_is = isinstance(result, bytes)
    data = np.frombuffer(bytearray(result), np.uint8) if as_is else np.array(result, np.int8)
    request = host.broadcast(data, 0)
    while not request.Test():
        pass
    return data.tobytes() if as_is else tuple(int(v) for v in data)
