"""The multinomial distribution: how often each category comes in `total_count` draws."""

from __future__ import annotations

from collections.abc import Sequence

from .. import Size, Tensor, inf, ones_like, tensor
from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .parameters import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """Vectors of counts that sum to `total_count`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _batched = ("_categorical", "_binomial")

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    @property
    def param_shape(self) -> Size:
        return self._categorical.param_shape

    def _new(self, *args, **kwargs) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        sample_shape = Size(sample_shape)
        draws = self._categorical.sample(Size((self.total_count,)) + sample_shape).movedim(0, -1)
        counts = draws.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, draws, ones_like(draws))
        return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        n = tensor(self.total_count)
        known = n * self._categorical.entropy() - (n + 1).lgamma()
        # The rest is the mean of log x! of each count, which is binomial.
        counts = self._binomial.enumerate_support(expand=False)[1:]
        weighted = self._binomial.log_prob(counts).exp() * (counts + 1).lgamma()
        return known + weighted.sum((0, -1))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -inf), 0)  # never drawn and impossible: 0 log 0 is 0
        arrangements = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return arrangements + (logits * value).sum(-1)
