"""Public names that no layer below needs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

PRIVATE_OPS = ("unique_dim",)


class Tag(StrEnum):
    """What can be said of an operator. A tag equals its name, which is how operators state theirs.

    >>> torch.Tag.pointwise in torch.ops.aten.sin.default.tags
    False
    """

    core = "core"
    cudagraph_unsafe = "cudagraph_unsafe"
    data_dependent_output = "data_dependent_output"
    dynamic_output_shape = "dynamic_output_shape"
    flexible_layout = "flexible_layout"
    generated = "generated"
    inplace = "inplace"
    inplace_view = "inplace_view"
    maybe_aliasing_or_mutating = "maybe_aliasing_or_mutating"
    needs_contiguous_strides = "needs_contiguous_strides"
    needs_exact_strides = "needs_exact_strides"
    needs_fixed_stride_order = "needs_fixed_stride_order"
    nondeterministic_bitwise = "nondeterministic_bitwise"
    nondeterministic_seeded = "nondeterministic_seeded"
    out = "out"
    out_variant = "out_variant"
    pointwise = "pointwise"
    pt2_compliant_tag = "pt2_compliant_tag"
    reduction = "reduction"
    view_copy = "view_copy"


class classproperty:
    """A property of the class itself.

    >>> class A:
    ...     @torch.classproperty
    ...     def name(cls):
    ...         return cls.__name__
    >>> A.name
    'A'
    """

    def __init__(self, func):
        self.fget = func.__func__ if isinstance(func, (classmethod, staticmethod)) else func

    def __get__(self, instance, owner=None):
        return self.fget(owner if owner is not None else type(instance))


__all__ = ["PRIVATE_OPS", "TYPE_CHECKING", "Tag", "classproperty"]
