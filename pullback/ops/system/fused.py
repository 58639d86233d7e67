"""Element-wise kernels on a CUDA device as one kernel of the device.

A kernel of many array operations passes over memory once for each. `call_fused` lets CuPy trace it into one kernel, once
for each operator and set of attributes; what cannot be traced (a kernel that looks at numbers, allocates, or writes into
its temporaries) is called as it is, and remembered. Small arrays are: their passes cost little, compiling costs much.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from .operator import Operator

FROM = 1 << 16  # elements
MOST = 32  # traces of one operator: attributes that are never the same again must not be compiled for ever
_made: dict[tuple, Any] = {}  # (operator, dtypes, attributes) -> the traced kernel, or None where there is none
_counts: Counter = Counter()


def call_fused(op: Operator, xp, values: list):
    """`op.kernel(xp, *values)`, by one kernel where the arrays are large and it can be traced."""
    arrays = [v for v in values if isinstance(v, xp.ndarray)]
    if max((a.size for a in arrays), default=0) < FROM or arrays[0].dtype.kind not in "fbiu":
        return op.kernel(xp, *values)
    # Python's floats differ from call to call (a learning rate): they are numbers that the kernel is given
    values = [arrays[0].dtype.type(v) if v.__class__ is float and arrays[0].dtype.kind == "f" else v for v in values]
    given = [isinstance(v, (xp.ndarray, np.generic)) for v in values]
    key = (op, *[(v.dtype, v.ndim) if g else (v.__class__, v) for v, g in zip(values, given, strict=True)])
    try:
        traced = _made[key]
    except KeyError:
        return _first_call(op, xp, values, given, key)
    except TypeError:  # attributes that cannot be a key
        traced = None
    if traced is None:
        return op.kernel(xp, *values)
    return traced(*[v for v, g in zip(values, given, strict=True) if g])


def _first_call(op: Operator, xp, values: list, given: list[bool], key: tuple):
    """Trace the kernel; it is called as it is as well, so that what the two give can be compared."""
    plain = op.kernel(xp, *values)
    _counts[op] += 1
    if _counts[op] > MOST:
        return plain
    attributes = [None if g else v for v, g in zip(values, given, strict=True)]

    def kernel(*arrays):
        rest = iter(arrays)
        return op.kernel(xp, *[next(rest) if g else a for a, g in zip(attributes, given, strict=True)])

    traced = xp.cupy.fuse(kernel)
    try:
        result = traced(*[v for v, g in zip(values, given, strict=True) if g])
        same = result.shape == plain.shape and result.dtype == plain.dtype and _close(xp, result, plain)
    except Exception:  # tracing runs the kernel on stand-ins, which fails in as many ways as there are kernels
        same = False
    _made[key] = traced if same else None
    return plain


def _close(xp, a, b) -> bool:
    """Whether two results are the same up to rounding."""
    if a.dtype.kind not in "fc":
        return bool((a == b).all())
    eps = np.finfo(a.dtype).eps
    return bool(xp.cupy.allclose(a, b, rtol=64 * eps, atol=64 * eps, equal_nan=True))
