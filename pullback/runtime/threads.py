"""The pool of threads for generated code, as an address that every library is handed.

`parallel()` is the address of `void (*)(body, begin, end, grain, arguments, threads)`, which calls
`body(first, last, arguments)` on pieces of a range. It is the pool of the kernels in C (`core/native_pool.h`, where it is
described); where that extension is not built, the same source is built here, once for the process.
"""

from __future__ import annotations

import ctypes
import functools
from importlib import resources

from ..core.threads import native_pool
from .build import build


@functools.cache
def built() -> ctypes.CDLL:
    """The pool, compiled by itself."""
    source = resources.files("pullback.core").joinpath("native_pool.h").read_text()
    return ctypes.CDLL(str(build(f"#define POOL_API\n{source}", ("-pthread",))))


def parallel() -> int:
    """The address of the pool's function; 0 where it cannot be built."""
    return native_pool() or ctypes.cast(built().parallel, ctypes.c_void_p).value or 0
