"""The Kullback-Leibler divergence: which formula belongs to which pair of distributions.

`register_kl(P, Q)` teaches one; `kl_divergence(p, q)` takes the one registered for the nearest bases of the two
classes. The formulas are in `kl_same`, for pairs of one kind, and `kl_mixed`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from .. import Tensor
from .distribution import Distribution

__all__ = ["register_kl", "kl_divergence"]

_KL_REGISTRY: dict[tuple[type, type], Callable] = {}
_KL_MEMOIZE: dict[tuple[type, type], Callable] = {}


def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Callable[[Callable], Callable]:
    """A decorator: `fun(p, q)` is the divergence between distributions of these types and their subclasses."""

    def decorator(fun: Callable) -> Callable:
        for name, kind in (("type_p", type_p), ("type_q", type_q)):
            if not isinstance(kind, type):
                raise TypeError(f"Expected {name} to be a class of distributions but got {kind}")
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorator


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q): by how much samples of p are more likely under p than under q, in nats and on average."""
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _nearest(*pair)
    return _KL_MEMOIZE[pair](p, q)


def _nearest(type_p: type, type_q: type) -> Callable:
    """The formula for the nearest bases. Where p's nearest and q's nearest lead to different ones, p's is taken."""
    fits = [pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not fits:
        return _unknown
    distance_p, distance_q = type_p.__mro__.index, type_q.__mro__.index
    by_p = min(fits, key=lambda pair: (distance_p(pair[0]), distance_q(pair[1])))
    by_q = min(fits, key=lambda pair: (distance_q(pair[1]), distance_p(pair[0])))
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[by_p]


def _unknown(p: Distribution, q: Distribution) -> Tensor:
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
    )
