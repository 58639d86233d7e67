"""Where collectives run: a `Channel` joins the ranks of one group.

In: contiguous arrays. Out: requests, which say by `Test()` whether they are done; nothing blocks. A channel moves bytes
and reduces; which tensor they come from, and what becomes of them, is known above. `Alone` is the channel of one rank: it
copies, and needs no library.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.tensor import Tensor

LOCK = threading.RLock()  # held around every call of the communication library: it need not be safe for threads


class Done:
    """The request of what was done at once."""

    def Test(self) -> bool:
        return True


class Channel:
    """The ranks of a group, and what they can do together. Arrays are contiguous and live until the request is done."""

    rank: int
    size: int
    device = "cpu"  # where its arrays are

    @property
    def on_host(self) -> Channel:
        """The channel of the same ranks that takes arrays of NumPy's: pickled objects travel over it."""
        return self

    def buffer(self, tensor: Tensor) -> Any:
        """A contiguous array of a tensor's elements: its own memory where that fits, else a copy."""
        array = tensor._array
        if not isinstance(array, np.ndarray):
            if not hasattr(array, "get"):
                raise ValueError(f"a collective needs a tensor with data on a CPU or GPU, got one on {tensor.device}")
            array = array.get()
        if array.dtype.byteorder not in "=|":
            raise ValueError(f"a collective needs elements in this machine's byte order, got dtype {array.dtype}")
        return np.ascontiguousarray(array).reshape(array.shape)

    def room(self, shape: Sequence[int], dtype: Any) -> Any:
        """An array to receive into."""
        return np.empty(shape, dtype)

    def write(self, tensor: Tensor, array: Any) -> None:
        """Put received elements into a tensor, if they are not in its memory already."""
        own = tensor._array
        if own is array:
            return
        if isinstance(own, np.ndarray):
            if not np.may_share_memory(own, array) or own.ctypes.data != array.ctypes.data:
                np.copyto(own, array.reshape(own.shape))
        else:
            own.set(array.reshape(own.shape))

    # Each gives a request. `send is None`: the received array holds what is sent.
    def allreduce(self, send: Any, recv: Any, kind: str) -> Any:
        raise NotImplementedError

    def reduce(self, send: Any, recv: Any, kind: str, root: int) -> Any:
        raise NotImplementedError

    def broadcast(self, array: Any, root: int) -> Any:
        raise NotImplementedError

    def allgather(self, send: Any, recv: list) -> Any:
        raise NotImplementedError

    def gather(self, send: Any, recv: list | None, root: int) -> Any:
        raise NotImplementedError

    def scatter(self, send: list | None, recv: Any, root: int) -> Any:
        raise NotImplementedError

    def reduce_scatter(self, send: Any, recv: Any, kind: str, counts: list[int]) -> Any:
        raise NotImplementedError

    def alltoall(self, send: list, recv: list) -> Any:
        raise NotImplementedError

    def barrier(self) -> Any:
        raise NotImplementedError

    def send(self, array: Any, to: int, tag: int) -> Any:
        raise NotImplementedError

    def recv(self, array: Any, source: int | None, tag: int) -> Any:
        raise NotImplementedError

    def source_of(self, request: Any) -> int:
        """The rank that a finished `recv` from anybody got its message from."""
        raise NotImplementedError


class Alone(Channel):
    """One rank: what it sends, it receives."""

    rank, size = 0, 1

    def __init__(self) -> None:
        self.messages: dict[int, deque] = {}  # by tag, sent to itself and not yet received

    def allreduce(self, send, recv, kind):
        return self._copy(send, recv)

    def reduce(self, send, recv, kind, root):
        return self._copy(send, recv)

    def broadcast(self, array, root):
        return Done()

    def allgather(self, send, recv):
        return self._copy(send, recv[0])

    def gather(self, send, recv, root):
        return self._copy(send, recv[0])

    def scatter(self, send, recv, root):
        return self._copy(send[0], recv)

    def reduce_scatter(self, send, recv, kind, counts):
        return self._copy(send, recv)

    def alltoall(self, send, recv):
        return self._copy(send[0], recv[0])

    def barrier(self):
        return Done()

    def send(self, array, to, tag):
        self.messages.setdefault(tag, deque()).append(array.copy())
        return Done()

    def recv(self, array, source, tag):
        return _FromSelf(self.messages.setdefault(tag, deque()), array)

    def source_of(self, request):
        return 0

    @staticmethod
    def _copy(send: Any, recv: Any) -> Done:
        if send is not None and send is not recv:
            recv.reshape(-1)[...] = send.reshape(-1)
        return Done()


class _FromSelf:
    """A message that one rank will send itself."""

    def __init__(self, waiting: deque, array: Any):
        self.waiting, self.array, self.done = waiting, array, False

    def Test(self) -> bool:
        if not self.done and self.waiting:
            self.array.reshape(-1)[...] = self.waiting.popleft().reshape(-1)
            self.done = True
        return self.done
