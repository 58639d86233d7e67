"""Numbers of the host, for kernels of a CUDA device: they travel with a launch, which writes them where the kernels read them.

In: arrays of NumPy's without dimensions. What always holds: work that is in the stream already sees the numbers of its own run, since
they are written in the stream's order; and nothing waits, since a launch takes its arguments along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

SIZE = 8  # bytes of a place
MOST = 500  # numbers of one launch: its arguments are at most 4 KiB
THREADS = 512
SOURCE = f"""
struct Arguments {{ unsigned long long *to; long long count; unsigned long long numbers[{MOST}]; }};
extern "C" __global__ void __launch_bounds__({THREADS}) told(const Arguments t) {{
    if (threadIdx.x < t.count) t.to[threadIdx.x] = t.numbers[threadIdx.x];
}}
"""


class Numbers:
    """Places on a device for so many numbers, on each stream of its own; `machine` is the device."""

    def __init__(self, machine: Any, count: int):
        self.machine, self.count = machine, count
        self.tables: dict[int, Any] = {}  # by stream

    def told(self, arrays: Sequence[np.ndarray]) -> list[int]:
        """The addresses at which kernels that are launched from now on find these numbers."""
        on = self.machine
        with on.in_use():
            stream = on.stream()
            table = self.tables.get(stream)
            if table is None:
                table = self.tables[stream] = on.memory(self.count * SIZE)
            function = on.kernel(SOURCE, "told")
            packed = b"".join([a.tobytes().ljust(SIZE, b"\0") for a in arrays])
            for start in range(0, self.count, MOST):
                count = min(self.count - start, MOST)
                head = np.array([table.ptr + start * SIZE, count], np.int64).tobytes()
                part = packed[start * SIZE : (start + count) * SIZE]
                on.start(function, 1, THREADS, head + part.ljust(MOST * SIZE, b"\0"))
        return list(range(table.ptr, table.ptr + self.count * SIZE, SIZE))
