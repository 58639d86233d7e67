"""Mixtures: one of several distributions of a kind, picked anew for each sample."""

from __future__ import annotations

from collections.abc import Sequence

from .. import Size, Tensor, no_grad
from . import constraints
from .categorical import Categorical
from .constraints import MixtureSameFamilyConstraint
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """The components lie along the last batch dimension of `component_distribution`."""

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False
    _batched = ("_mixture_distribution", "_component_distribution")

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ):
        _check(mixture_distribution, component_distribution)
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = component_distribution.batch_shape[-1]
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(component_distribution.batch_shape[:-1], event_shape, validate_args=validate_args)

    @constraints.dependent_property
    def support(self):
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        return self._component_distribution

    @property
    def mean(self) -> Tensor:
        return self._mixed(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """The mean of the variances plus the variance of the means."""
        means = self.component_distribution.mean
        spread = (means - self._pad(self._mixed(means))).pow(2.0)
        return self._mixed(self.component_distribution.variance) + self._mixed(spread)

    def _mixed(self, values: Tensor) -> Tensor:
        """The mean over the components."""
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return (probs * values).sum(-1 - self._event_ndims)

    def cdf(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return (self.component_distribution.cdf(self._pad(x)) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:  # type: ignore[override]
        if self._validate_args:
            self._validate_sample(x)
        log_probs = self.component_distribution.log_prob(self._pad(x))
        return (log_probs + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            picked = self.mixture_distribution.sample(sample_shape)
            samples = self.component_distribution.sample(sample_shape)
            event_shape = self.event_shape
            index = picked.reshape(picked.shape + (1,) * (len(event_shape) + 1))
            index = index.repeat(Size((1,) * len(picked.shape)) + Size((1,)) + event_shape)
            return samples.gather(dim, index).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """`x` of the mixture's shape, in the components' shape."""
        own = len(self.mixture_distribution.batch_shape)
        missing = 0 if own == 1 else len(self.batch_shape) - own
        return x.reshape(x.shape[:-1] + (1,) * missing + x.shape[-1:] + (1,) * self._event_ndims)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"


def _check(mixture: Categorical, component: Distribution) -> None:
    if not isinstance(mixture, Categorical):
        raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
    if not isinstance(component, Distribution):
        raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
    ours, theirs = mixture.batch_shape, component.batch_shape[:-1]
    if any(a != b and 1 not in (a, b) for a, b in zip(reversed(ours), reversed(theirs))):
        raise ValueError(
            f"`mixture_distribution.batch_shape` ({ours}) is not compatible with "
            f"`component_distribution.batch_shape`({theirs})"
        )
    km, kc = mixture.logits.shape[-1], component.batch_shape[-1]
    if km != kc:
        raise ValueError(
            f"`mixture_distribution component` ({km}) does not equal `component_distribution.batch_shape[-1]` ({kc})"
        )
