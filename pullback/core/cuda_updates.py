"""An optimizer's whole update of one parameter as one kernel of a CUDA device, where it would be many."""

from __future__ import annotations

from functools import cache

_ADAM = """
    T slope = g + decay * p;
    mean += (slope - mean) * fresh;
    square = square * keep + slope * slope * news;
    p = p * shrink - rate * mean / (sqrt(square) / scale + eps);
"""


@cache
def _adam_kernel():
    import cupy

    numbers = "T decay, T shrink, T fresh, T keep, T news, T scale, T eps, T rate"
    return cupy.ElementwiseKernel(f"T g, {numbers}", "T p, T mean, T square", _ADAM, "pullback_adam")


def adam(p, g, mean, square, **numbers: float) -> None:
    """Write Adam's next `p`, `mean` and `square`, all of one floating dtype.

    `decay` is added to the gradient times `p`, `shrink` is a factor of `p`; `fresh`, `keep` and `news` weigh the new gradient,
    the old square and the new one; `scale` and `eps` go to the root, `rate` is the length of the step.
    """
    names = ("decay", "shrink", "fresh", "keep", "news", "scale", "eps", "rate")
    _adam_kernel()(g, *[p.dtype.type(numbers[n]) for n in names], p, mean, square)
