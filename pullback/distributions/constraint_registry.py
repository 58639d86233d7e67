"""From a constraint to a transform of unconstrained numbers onto it.

`biject_to(constraint)` is one to one; `transform_to(constraint)` need not be, and is the better one to optimize
through. Both can be taught new constraints with `register`.
"""

from __future__ import annotations

from collections.abc import Callable

from . import constraints, transforms
from .constraints import Constraint
from .parameters import Number

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Which transform belongs to which kind of constraint."""

    def __init__(self):
        self._registry: dict[type, Callable] = {}

    def register(self, constraint: Constraint | type[Constraint], factory: Callable | None = None):
        """Teach `factory(constraint)` for a kind of constraint; without a factory, a decorator for one."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {kind}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> transforms.Transform:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _greater_than(constraint):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


def _less_than(constraint):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


def _interval(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, Number) and isinstance(high, Number) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


def _kinds_of_both(registry: ConstraintRegistry) -> dict:
    """The factories that differ between the registries only in which of them the parts ask."""
    return {
        constraints.real: lambda c: transforms.identity_transform,
        constraints.independent: lambda c: transforms.IndependentTransform(
            registry(c.base_constraint), c.reinterpreted_batch_ndims
        ),
        constraints.greater_than: _greater_than,
        constraints.greater_than_eq: _greater_than,
        constraints.less_than: _less_than,
        constraints.interval: _interval,
        constraints.half_open_interval: _interval,
        constraints.corr_cholesky: lambda c: transforms.CorrCholeskyTransform(),
        constraints.cat: lambda c: transforms.CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths),
        constraints.stack: lambda c: transforms.StackTransform([registry(part) for part in c.cseq], c.dim),
    }


for _registry in (biject_to, transform_to):
    for _constraint, _factory in _kinds_of_both(_registry).items():
        _registry.register(_constraint, _factory)

biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda c: transforms.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda c: transforms.PositiveDefiniteTransform())
