"""`Distribution`: what all distributions are.

A distribution has a batch shape (how many there are of it, side by side) and an event shape (of one sample of one of
them): samples have shape `sample_shape + batch_shape + event_shape`, log probabilities `sample_shape + batch_shape`.
Parameters are checked when it is made, and values when their probability is asked for, unless validation is off.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

from .. import Size, Tensor, no_grad
from ..core.modes import ambient
from ..ops.make.assertions import assert_async_msg
from . import constraints
from .parameters import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """The base of all distributions."""

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__
    # Tensors and distributions in the instance that widen with the batch. The class that states this is the one whose
    # __init__ it fits: a subclass with another __init__ has to say for itself how it is expanded.
    _batched: ClassVar[tuple[str, ...] | None] = None

    def __init__(
        self,
        batch_shape: Sequence[int] = Size(),
        event_shape: Sequence[int] = Size(),
        validate_args: bool | None = None,
    ):
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Turn validation on or off for all distributions made from now on."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None):
        """A distribution of the same kind with a larger batch, without copying the parameters."""
        home = next(cls for cls in type(self).__mro__ if "_batched" in cls.__dict__)
        if home._batched is None:
            raise NotImplementedError
        new = self._get_checked_instance(home, _instance)
        self._expand_into(new, Size(batch_shape), home._batched)
        return new

    def _expand_into(self, new: Distribution, batch_shape: Size, names: tuple[str, ...]) -> None:
        """Give `new` all that self holds, widening what is called `names`; other lazy values are left to be remade."""
        state = {k: v for k, v in vars(self).items() if not isinstance(getattr(type(self), k, None), lazy_property)}
        state |= {name: self._widened(vars(self)[name], batch_shape) for name in names if name in vars(self)}
        state |= {"_batch_shape": batch_shape, "_event_shape": self._event_shape, "_validate_args": self._validate_args}
        vars(new).update(state)

    def _widened(self, value, batch_shape: Size):
        own = value._batch_shape if isinstance(value, Distribution) else value.shape
        return value.expand(batch_shape + own[len(self._batch_shape) :])

    def _get_checked_instance(self, cls: type, _instance: Distribution | None = None):
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method "
                "must also define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    # ---- shapes and regions
    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """What each parameter has to satisfy."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """Where samples fall."""
        raise NotImplementedError

    # ---- moments
    @property
    def mean(self) -> Tensor:
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    # ---- samples and probabilities
    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Samples that carry no gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Samples that are differentiable in the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """`n` samples."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability at `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The number whose `cdf` is `value`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dimension."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Sequence[int] = Size()) -> Size:
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """`values` along a new first dimension before the batch."""
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values

    # ---- validation
    def _validate_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        for name, constraint in wanted.items():
            lazy = name not in vars(self) and isinstance(getattr(type(self), name, None), lazy_property)
            if lazy or constraints.is_dependent(constraint):
                continue
            value = getattr(self, name)
            valid = constraint.check(value)
            if ambient.captures:  # a graph asserts, each time it runs, that all is valid
                words = f"Expected parameter {name} {_told(value)} of {type(self).__name__} to satisfy the constraint {constraint!r}"
                assert_async_msg(valid.all(), words)
            elif not constraints.everywhere(valid):
                raise ValueError(
                    f"Expected parameter {name} {_told(value)} of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    def _validate_sample(self, value: Tensor) -> None:
        """Raise unless `value` can be one of this distribution's."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        self._validate_shape(value)
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=2,
            )
            return
        valid = support.check(value)
        if ambient.captures:
            words = f"Expected value argument {_told(value)} to be within the support ({support!r})"
            assert_async_msg(valid.all(), words)
        elif not constraints.everywhere(valid):
            raise ValueError(
                f"Expected value argument {_told(value)} to be within the support ({support!r}) of the distribution "
                f"{self!r}, but found invalid values:\n{value}"
            )

    def _validate_shape(self, value: Tensor) -> None:
        actual = value.size()
        if actual[len(actual) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {actual} vs {self._event_shape}.")
        expected = self._batch_shape + self._event_shape
        if any(i != j and 1 not in (i, j) for i, j in zip(reversed(actual), reversed(expected))):
            raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {actual} vs {expected}.")

    def __repr__(self) -> str:
        state = {name: vars(self)[name] for name in self.arg_constraints if name in vars(self)}
        shown = ", ".join(f"{name}: {v if v.numel() == 1 else v.size()}" for name, v in state.items())
        return f"{type(self).__name__}({shown})"


def _told(value: Tensor) -> str:
    return f"({type(value).__name__} of shape {tuple(value.shape)})"
