"""What optimizers do to one element of a parameter: several results from several arrays and numbers.

A rule takes an array library, then the arrays and numbers by name, and gives the new values of its first arrays in order. The
printed kernels (`codegen/eager.py`) come from these; `core.elements.update` runs them over whole lists of arrays.
"""

from __future__ import annotations

from collections.abc import Callable


def adam(xp, p, mean, square, g, decay, shrink, fresh, keep, news, scale, eps, rate):
    """Adam, with decay in the gradient (`decay`) or apart from it (`shrink`)."""
    p = p * shrink
    g = g + p * decay
    mean = mean + (g - mean) * fresh
    square = square * keep + news * g * g
    return p - rate * mean / (xp.sqrt(square) / scale + eps), mean, square


def sgd(xp, p, g, decay, rate):
    """Plain descent."""
    return (p - rate * (g + p * decay),)


def momentum(xp, p, buffer, g, decay, keep, news, rate):
    """Descent along a running sum of gradients."""
    buffer = buffer * keep + (g + p * decay) * news
    return p - rate * buffer, buffer


def nesterov(xp, p, buffer, g, decay, keep, news, rate):
    """The same, one step ahead."""
    g = g + p * decay
    buffer = buffer * keep + g * news
    return p - rate * (g + buffer * keep), buffer


# {name: (rule, arrays, how many numbers)}
UPDATES: dict[str, tuple[Callable, int, int]] = {
    "adam": (adam, 4, 8),
    "sgd": (sgd, 2, 2),
    "momentum": (momentum, 3, 4),
    "nesterov": (nesterov, 3, 4),
}
