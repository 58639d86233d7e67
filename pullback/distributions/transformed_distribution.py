"""A distribution seen through transforms: samples of the base go through them, densities come with the Jacobian."""

from __future__ import annotations

from collections.abc import Sequence

from .. import Size, Tensor, no_grad
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .parameters import sum_rightmost
from .transform import ComposeTransform, Transform

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """`transforms[-1](...transforms[0](x))` with x from `base_distribution`."""

    arg_constraints: dict[str, constraints.Constraint] = {}
    _batched: tuple[str, ...] = ()

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ):
        self.transforms = _as_list(transforms)
        whole = ComposeTransform(self.transforms)
        base, shape = _shaped(base_distribution, whole)
        # The base's own event may have more dimensions than the transforms look at.
        event_dim = len(base_distribution.event_shape) + whole.codomain.event_dim - whole.domain.event_dim
        event_dim = max(whole.codomain.event_dim, event_dim)
        if len(shape) < event_dim:
            raise AssertionError(f"forward_shape length {len(shape)} must be >= event_dim {event_dim}")
        missing = whole.domain.event_dim - len(base.event_shape)
        self.base_dist = Independent(base, missing) if missing > 0 else base
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def _expand_into(self, new: Distribution, batch_shape: Size, names: tuple[str, ...]) -> None:
        super()._expand_into(new, batch_shape, names)
        shape = batch_shape + self._event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        missing = len(self._event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self.event_shape)
        log_prob, y = 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            stretch = transform.log_abs_det_jacobian(x, y)
            log_prob = log_prob - sum_rightmost(stretch, event_dim - transform.domain.event_dim)
            y = x
        base = self.base_dist
        return log_prob + sum_rightmost(base.log_prob(y), event_dim - len(base.event_shape))

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """Turn probabilities round where the transforms fall instead of rise."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))


def _as_list(transforms) -> list[Transform]:
    if isinstance(transforms, Transform):
        return [transforms]
    if not isinstance(transforms, list):
        raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
    if not all(isinstance(t, Transform) for t in transforms):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return transforms


def _shaped(base: Distribution, whole: Transform) -> tuple[Distribution, Size]:
    """The base expanded to what the transforms broadcast it to, and the shape of their results."""
    shape = base.batch_shape + base.event_shape
    if len(shape) < whole.domain.event_dim:
        raise ValueError(
            f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {shape}."
        )
    results = whole.forward_shape(shape)
    needed = whole.inverse_shape(results)
    if shape != needed:
        base = base.expand(needed[: len(needed) - len(base.event_shape)])
    return base, Size(results)
