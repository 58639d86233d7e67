"""The Dirichlet distribution, over vectors of shares that sum to one."""

from __future__ import annotations

from collections.abc import Sequence

from .. import Tensor, _dirichlet_grad, _sample_dirichlet, where, xlogy
from ..autograd import Function
from ..autograd.function import once_differentiable
from ..ops.system.operator import public
from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]

one_hot = public("nn.functional", "one_hot")


class _Dirichlet(Function):
    """A draw whose gradient follows how it moves along with the concentration."""

    @staticmethod
    def forward(ctx, concentration):
        x = _sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, concentration = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        return _dirichlet_grad(x, concentration, total) * (g - (x * g).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """Shares, from one concentration each."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _batched = ("concentration",)

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        c = self.concentration
        return xlogy(c - 1.0, value).sum(-1) + c.sum(-1).lgamma() - c.lgamma().sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        """Where all concentrations are below one, the density is largest in a corner, and the first one is told."""
        above = (self.concentration - 1).clamp(min=0.0)
        inside = above / above.sum(-1, True)
        corner = one_hot(inside.argmax(-1), self.concentration.shape[-1]).to(inside)
        return where((self.concentration < 1).all(-1, keepdim=True), corner, inside)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        total = c.sum(-1, True)
        return c * (total - c) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        c, k = self.concentration, self.concentration.size(-1)
        total = c.sum(-1)
        normalizer = c.lgamma().sum(-1) - total.lgamma()
        return normalizer - (k - total) * total.digamma() - ((c - 1.0) * c.digamma()).sum(-1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
