"""Operators that slide a window over space: convolution, pooling, unfolding, resampling, sampling by grid, padding.

Each module declares the operators of one kind, their shape rules and derivatives, and the public functions over them;
the arithmetic is in `kernels`.
"""

from . import avg_pool, conv, grid, interpolate, max_pool, pad, pool_functions, resample, shuffle, unfold

__all__ = [
    "avg_pool", "conv", "grid", "interpolate", "max_pool", "pad", "pool_functions", "resample", "shuffle", "unfold",
]  # fmt: skip
