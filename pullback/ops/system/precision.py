"""float16 and bfloat16 are storage: kernels compute in float32 and round once."""

from __future__ import annotations

import functools

from ...core.dtype import reduced_precision

NARROW = frozenset(d.numpy for d in reduced_precision)


def wide(xp, a):
    """An array to compute with: narrow floats as float32, anything else as it is."""
    return a.astype(xp.float32) if a is not None and a.dtype in NARROW else a


def rounded(a, dtype):
    """A result in the dtype it is kept in."""
    return a if a is None or a.dtype == dtype else a.astype(dtype)


def widened(kernel):
    """A kernel of one floating dtype: narrow inputs are widened, floating results rounded to the first one's dtype."""

    @functools.wraps(kernel)
    def run(xp, *args):
        kept = next(a.dtype for a in args if hasattr(a, "dtype"))
        if kept not in NARROW:
            return kernel(xp, *args)
        result = kernel(xp, *[wide(xp, a) if hasattr(a, "dtype") else a for a in args])
        if isinstance(result, tuple):
            return tuple(rounded(m, kept) if m is not None and m.dtype.kind == "f" else m for m in result)
        return rounded(result, kept) if result.dtype.kind == "f" else result

    return run
