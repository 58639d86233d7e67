"""Ranks that MPI joins: a `Channel` over a communicator.

In: arrays in host memory. Out: MPI's own requests. Calls are nonblocking, so that collectives run while a backward does;
`mpi4py` and the MPI library behind it are loaded when a group of more than one rank is first asked for.
"""

from __future__ import annotations

import atexit
import ctypes
import os
from typing import Any

import numpy as np

from . import pmi
from .channel import LOCK, Channel

LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS", "SLURM_MPI_TYPE")


def launched() -> bool:
    """Whether an MPI launcher started this process, or it joined other ranks itself."""
    return bool(_joined) or any(name in os.environ for name in LAUNCHERS)


_joined: list[pmi.Watch] = []


def join(address: tuple[str, int], rank: int, size: int, limit: float) -> None:
    """Make this process a rank without a launcher: all of them meet at an address."""
    if not is_installed():
        library()  # which says how to get it
    watch = pmi.join(*address, rank, size, limit)
    _start_library()
    comm = library().COMM_WORLD
    pmi.forget()
    if comm.Get_size() != size:
        vendor = " ".join(map(str, library().get_vendor()[:1]))
        raise RuntimeError(
            f"init_process_group: world_size is {size}, but this process was not started by an MPI launcher, and {vendor} joins "
            f"only ranks that one started. Start the program with: pullback launch -n {size} script.py (or mpiexec -n {size} "
            "python script.py); or install MPICH, which joins any: pip install mpich"
        )
    _joined.append(watch)


def _start_library() -> None:
    """Start MPI without holding up other threads: it waits for the other ranks, and one of them may be gone.

    Importing mpi4py would do it too, but not let the thread run that hears of that.
    """
    import importlib.util

    spec = importlib.util.find_spec("mpi4py.MPI")
    if spec is None or spec.origin is None:
        return
    code = ctypes.CDLL(spec.origin).MPI_Init_thread(None, None, 3, ctypes.byref(ctypes.c_int()))  # 3: safe for threads
    if code:
        raise RuntimeError(f"init_process_group: MPI_Init_thread gives the error {code}")
    atexit.register(lambda: library().Is_finalized() or library().Finalize())  # mpi4py ends only what it started


def library() -> Any:
    """The module `mpi4py.MPI`; says how to get it where it is not installed."""
    try:
        from mpi4py import MPI
    except ImportError as e:
        raise RuntimeError(
            "more than one rank needs MPI, and mpi4py cannot be imported "
            f"({e}); install it with: pip install 'pullback[mpi]'"
        ) from e
    return MPI


def is_installed() -> bool:
    """Whether mpi4py can be imported, without importing it (which would start MPI)."""
    import importlib.util

    return importlib.util.find_spec("mpi4py") is not None


class MpiChannel(Channel):
    """The ranks of a communicator."""

    def __init__(self, comm: Any):
        self.mpi = library()
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()
        self.statuses: dict[int, Any] = {}

    def split(self, ranks: list[int]) -> MpiChannel | None:
        """A channel of some of these ranks; all of them call, and those outside get None."""
        with LOCK:
            comm = self.comm.Create(self.comm.Get_group().Incl(ranks))
        return None if comm == self.mpi.COMM_NULL else MpiChannel(comm)

    def among(self, ranks: list[int], tag: int) -> MpiChannel:
        """A channel of some ranks, called by these alone."""
        with LOCK:
            return MpiChannel(self.comm.Create_group(self.comm.Get_group().Incl(ranks), tag))

    def copy(self) -> MpiChannel:
        """A channel of the same ranks whose calls are not ordered with those of this one."""
        with LOCK:
            return MpiChannel(self.comm.Dup())

    def op(self, kind: str) -> Any:
        return getattr(self.mpi, kind)

    def allreduce(self, send, recv, kind):
        given = self.mpi.IN_PLACE if send is None else send
        return _Kept(self.comm.Iallreduce(given, recv, self.op(kind)), send, recv)

    def reduce(self, send, recv, kind, root):
        sent = recv if send is None else send
        if self.rank != root:
            return _Kept(self.comm.Ireduce(sent, None, self.op(kind), root), sent)
        given = self.mpi.IN_PLACE if send is None else send
        return _Kept(self.comm.Ireduce(given, recv, self.op(kind), root), send, recv)

    def broadcast(self, array, root):
        return _Kept(self.comm.Ibcast(as_bytes(array), root), array)

    def allgather(self, send, recv):
        joined = _Joined(recv)
        return joined.after(self.comm.Iallgatherv(as_bytes(send), joined.message()), send)

    def gather(self, send, recv, root):
        if self.rank != root:
            return _Kept(self.comm.Igatherv(as_bytes(send), None, root), send)
        joined = _Joined(recv)
        return joined.after(self.comm.Igatherv(as_bytes(send), joined.message(), root), send)

    def scatter(self, send, recv, root):
        if self.rank != root:
            return _Kept(self.comm.Iscatterv(None, as_bytes(recv), root), recv)
        joined = _Joined(send, filled=True)
        return _Kept(self.comm.Iscatterv(joined.message(), as_bytes(recv), root), joined, recv)

    def reduce_scatter(self, send, recv, kind, counts):
        """Parts of one length; shorter ones travel with room behind them."""
        most = max(counts)
        if all(n == most for n in counts):
            request = self.comm.Ireduce_scatter_block(send.reshape(-1), recv.reshape(-1), self.op(kind))
            return _Kept(request, send, recv)
        whole, mine = np.zeros((self.size, most), send.dtype), np.empty(most, send.dtype)
        for row, part, n in zip(whole, np.split(send.reshape(-1), np.cumsum(counts)[:-1]), counts, strict=True):
            row[:n] = part
        request = self.comm.Ireduce_scatter_block(whole, mine, self.op(kind))
        return _Copied(_Kept(request, whole), mine[: counts[self.rank]], recv.reshape(-1))

    def alltoall(self, send, recv):
        incoming, outgoing = _Joined(recv), _Joined(send, filled=True)
        return incoming.after(self.comm.Ialltoallv(outgoing.message(), incoming.message()), outgoing)

    def barrier(self):
        return self.comm.Ibarrier()

    def send(self, array, to, tag):
        return _Kept(self.comm.Isend(as_bytes(array), to, tag), array)

    def recv(self, array, source, tag):
        where = self.mpi.ANY_SOURCE if source is None else source
        return _Received(self.comm.Irecv(as_bytes(array), where, tag), array, self.mpi.Status())

    def source_of(self, request):
        return request.status.Get_source()


def as_bytes(array: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array, whatever its elements are."""
    return array.reshape(-1).view(np.uint8)


class _Kept:
    """A request that keeps its buffers: MPI reads and writes them until it is done, and mpi4py does not keep all of them."""

    def __init__(self, request: Any, *buffers: Any):
        self.request, self.buffers = request, buffers

    def Test(self) -> bool:
        return self.request.Test()


class _Received:
    """A receive, with what is known of its message when it has come."""

    def __init__(self, request: Any, array: np.ndarray, status: Any):
        self.request, self.array, self.status = request, array, status

    def Test(self) -> bool:
        return self.request.Test(self.status)


class _Copied:
    """A request whose buffer is copied when it is done."""

    def __init__(self, request: Any, source: np.ndarray, target: np.ndarray):
        self.request, self.source, self.target, self.done = request, source, target, False

    def Test(self) -> bool:
        if not self.done and self.request.Test():
            self.target[...] = self.source
            self.done = True
        return self.done


class _Joined:
    """Arrays one after the other in one buffer of bytes, as MPI takes parts of different lengths."""

    def __init__(self, parts: list, filled: bool = False):
        self.parts = parts
        self.counts = [p.nbytes for p in parts]
        self.starts = [0, *np.cumsum(self.counts)[:-1].tolist()]
        self.whole = self._adjacent()
        if self.whole is None:
            self.whole = np.empty(sum(self.counts), np.uint8)
            if filled:
                for part, start, n in zip(parts, self.starts, self.counts, strict=True):
                    self.whole[start : start + n] = as_bytes(part)
            self.apart = True
        else:
            self.apart = False

    def _adjacent(self) -> np.ndarray | None:
        """The memory of the parts, where they are slices of one array in order."""
        first = self.parts[0]
        if first.base is None or any(p.base is not first.base for p in self.parts):
            return None
        start = first.ctypes.data
        if any(p.ctypes.data != start + s for p, s in zip(self.parts, self.starts, strict=True)):
            return None
        base = as_bytes(first.base) if first.base.flags.c_contiguous else None
        if base is None:
            return None
        offset = start - base.ctypes.data
        return base[offset : offset + sum(self.counts)]

    def message(self) -> list:
        return [self.whole, self.counts, self.starts, library().BYTE]

    def after(self, request: Any, *buffers: Any) -> Any:
        """The request, with the parts filled when it is done."""
        kept = _Kept(request, self, *buffers)
        return _Spread(kept, self) if self.apart else kept


class _Spread:
    """A request whose buffer is spread over several arrays."""

    def __init__(self, request: Any, joined: _Joined):
        self.request, self.joined, self.done = request, joined, False

    def Test(self) -> bool:
        if not self.done and self.request.Test():
            joined = self.joined
            for part, start, n in zip(joined.parts, joined.starts, joined.counts, strict=True):
                as_bytes(part)[...] = joined.whole[start : start + n]
            self.done = True
        return self.done
