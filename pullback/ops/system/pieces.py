"""Large work in pieces that fit the cache, shared by threads.

A chain of array operations over a large array reads and writes memory once for each; over pieces its temporaries stay
in cache. `by_pieces` cuts along an axis that the work keeps, so that pieces do not need each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...core.arrays import LARGE, run_chunks
from ...core.threads import thread_count

PIECE = 1 << 16  # elements
RUN = 512  # elements of a piece that should stand together in memory


def by_pieces(function: Callable, arrays: tuple, axes: tuple):
    """`function(*arrays)` (one array, or a tuple), where the first array is large, piece by piece.

    The first array and all results have their full length along the axis that is cut; arrays with 1 there are passed
    whole, as is what is no array.
    """
    x = arrays[0]
    kept = [d for d in range(x.ndim) if d not in axes]
    if x.__class__ is not np.ndarray or x.size < LARGE or not kept:
        return function(*arrays)
    axis = max(kept, key=lambda d: x.shape[d])
    n = x.shape[axis]
    step = max(1, n * PIECE // x.size, -(-RUN // math.prod(x.shape[axis + 1 :])))
    cuts = [(slice(None),) * axis + (slice(s, min(s + step, n)),) for s in range(0, n, step)]
    outs: list = []

    def piece(cut: tuple) -> tuple:
        result = function(*[a[cut] if getattr(a, "ndim", 0) and a.shape[axis] == n else a for a in arrays])
        return result if isinstance(result, tuple) else (result,)

    def work(own: list[tuple]) -> None:
        for cut in own:
            for out, result in zip(outs, piece(cut), strict=True):
                out[cut] = result

    first = piece(cuts[0])
    outs += [np.empty((*m.shape[:axis], n, *m.shape[axis + 1 :]), m.dtype) for m in first]
    for out, result in zip(outs, first, strict=True):
        out[cuts[0]] = result
    threads = thread_count()
    run_chunks([lambda t=t: work(cuts[1 + t :: threads]) for t in range(threads)])
    return tuple(outs) if len(outs) > 1 else outs[0]
