"""The categorical distribution, over the numbers 0, 1, ... of the last dimension of its parameter."""

from __future__ import annotations

from collections.abc import Sequence

from .. import Size, Tensor, arange, broadcast_tensors, finfo, full, int64, multinomial, nan
from . import constraints
from .distribution import Distribution
from .parameters import ProbsOrLogits, only_one_given

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits, Distribution):
    """Category numbers, from weights (`probs`, which are normalized) or log weights (`logits`)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False
    _batched = ("probs", "logits")

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        only_one_given(probs, logits)
        self._given = "logits" if probs is None else "probs"
        given: Tensor = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueError(f"`{self._given}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = given - given.logsumexp(dim=-1, keepdim=True)
        else:
            self.probs = given / given.sum(-1, keepdim=True)
        self._num_events = given.size()[-1]
        super().__init__(given.size()[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        sample_shape = Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        return multinomial(rows, sample_shape.numel(), True).T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        index, log_probs = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return log_probs.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        # Categories that never come have log weight -inf and add nothing: 0 times the smallest number is 0.
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(arange(self._num_events, dtype=int64, device=self._param.device), expand)
