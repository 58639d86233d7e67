"""LAPACK on stacks of matrices: finding the routine, walking the stack, running on the host.

In: NumPy arrays of float32, float64, complex64 or complex128, matrices in the last two dims, anything before them.
Out: C-contiguous arrays of the same dtype.
Always: empty stacks and empty matrices never reach LAPACK, whose wrappers refuse them; inputs are never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps
from math import prod
from typing import Any

from ...core.blas import scipy_linalg

Array = Any
PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}


@cache
def routine(name: str, char: str) -> Callable[..., Any]:
    """The LAPACK (or BLAS) wrapper of that name for a dtype's character."""
    scipy, full = scipy_linalg(), PREFIX[char] + name
    return getattr(scipy.lapack, full, None) or getattr(scipy.blas, full)


@cache
def workspace(name: str, char: str, *sizes: Any) -> tuple[int, ...]:
    """What a routine asks for as work space, by its `_lwork` companion."""
    *sizes_wanted, info = routine(name + "_lwork", char)(*sizes)
    if info:
        raise ValueError(f"{PREFIX[char]}{name}_lwork{sizes}: illegal argument {-info}")
    return tuple(int(w.real) for w in sizes_wanted)


def is_complex(a: Array) -> bool:
    return a.dtype.kind == "c"


def is_single(a: Array) -> bool:
    """Single precision: NumPy's own stacked routines would do twice the work, in double precision."""
    return a.dtype.char in "fF"


def real_of(a: Array) -> Any:
    """The real dtype of the same precision."""
    return a.real.dtype


def on_host(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Run a LAPACK kernel on host arrays: arrays of a device library are fetched first and sent back after."""

    @wraps(kernel)
    def run(xp: Any, *args: Any) -> Any:
        if xp.__name__ == "numpy":
            return kernel(xp, *args)
        import numpy

        out = kernel(numpy, *(xp.asnumpy(a) if isinstance(a, xp.ndarray) else a for a in args))
        return tuple(map(xp.asarray, out)) if isinstance(out, tuple) else xp.asarray(out)

    return run


def stack(a: Array, core: int = 2) -> Array:
    """The array as one flat stack of its trailing `core`-dimensional items."""
    split = a.ndim - core
    return a.reshape((prod(a.shape[:split]), *a.shape[split:]))


def each(
    xp: Any,
    solve: Callable[..., Sequence[Any]],
    inputs: Sequence[Array],
    outputs: Sequence[tuple[tuple[int, ...], Any]],
) -> tuple[Array, ...]:
    """Call `solve` on every item of the stacked inputs and collect its results into new arrays, zero where none came.

    The first input is a stack of matrices; the others share its stack dims. `outputs` gives, per result, its shape
    without the stack dims and its dtype.
    """
    batch = inputs[0].shape[:-2]
    if not batch and all(x.size for x in inputs):
        return tuple(
            xp.array(value, dtype, order="C") for value, (_, dtype) in zip(solve(*inputs), outputs, strict=True)
        )
    results = tuple(xp.zeros(batch + shape, dtype) for shape, dtype in outputs)
    if all(x.size for x in inputs):
        flat = [stack(x, x.ndim - len(batch)) for x in inputs]
        homes = [stack(r, len(shape)) for r, (shape, _) in zip(results, outputs, strict=True)]
        for i in range(flat[0].shape[0]):
            for home, value in zip(homes, solve(*(x[i] for x in flat)), strict=True):
                home[i] = value
    return results


def broadcast_stacks(xp: Any, *arrays: Array) -> tuple[Array, ...]:
    """The arrays with their stack dims (all but the last two) broadcast together."""
    batch = xp.broadcast_shapes(*(a.shape[:-2] for a in arrays))
    return tuple(xp.broadcast_to(a, batch + a.shape[-2:]) for a in arrays)


def transpose(xp: Any, a: Array) -> Array:
    return xp.swapaxes(a, -1, -2)


def adjoint(xp: Any, a: Array) -> Array:
    """The conjugate transpose of every matrix."""
    return xp.conj(transpose(xp, a)) if is_complex(a) else transpose(xp, a)


def identity_stack(xp: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """Ones on the diagonal of every matrix."""
    return xp.broadcast_to(xp.eye(shape[-2], shape[-1], dtype=dtype), shape).copy()
