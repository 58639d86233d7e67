"""Exponential families: densities `exp(t(x)·η - A(η) + k(x))`, whose entropy follows from A and its gradient."""

from __future__ import annotations

from .. import Tensor
from ..autograd import grad
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions that can state their natural parameters η and their log normalizer A."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        """The mean of k(x)."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """A(η) - η·∇A(η) - E[k]."""
        carrier = self._mean_carrier_measure
        params, normalizer, gradients = mean_statistics(self)
        result = normalizer - carrier
        for param, g in zip(params, gradients):
            result = result - (param * g).reshape(self._batch_shape + (-1,)).sum(-1)
        return result


def mean_statistics(p: ExponentialFamily) -> tuple[list[Tensor], Tensor, tuple[Tensor, ...]]:
    """Natural parameters, A at them, and ∇A, which is the mean of the sufficient statistics."""
    params = [param.detach().requires_grad_() for param in p._natural_params]
    normalizer = p._log_normalizer(*params)
    return params, normalizer, grad(normalizer.sum(), params, create_graph=True)
