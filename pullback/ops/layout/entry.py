"""The seam at which tensors that are not dense arrays enter: sparse, nested and opaque layouts.

Importing this module declares their operators and takes over the hooks that dispatch, in-place writes and the engine
leave for them.
"""

from __future__ import annotations

from ...core.tensor import NESTED, OPAQUE, SPARSE
from ..system import dispatch, inplace
from . import nested, opaque, sparse

_otherwise = dispatch.execute_layout


def execute_layout(op, args: tuple, keys: int):
    """The rule of a sparse operator, of a nested or opaque one, or the refusal of dispatch itself."""
    if keys & NESTED:
        return nested.execute_nested(op, args)
    if keys & OPAQUE:
        return opaque.execute_opaque(op, args)
    return sparse.execute_sparse(op, args) if keys & SPARSE else _otherwise(op, args, keys)


def write_layout(target, result) -> None:
    """Write a result into a tensor where either is no dense array."""
    if (target.keys | result.keys) & NESTED:
        nested.write_nested(target, result)
    elif (target.keys | result.keys) & OPAQUE:
        opaque.write_opaque(target, result)
    else:
        sparse.write_sparse(target, result)


def nested_layer(op, args: tuple):
    """An operator of which some argument is nested."""
    return nested.nested_layer(op, args)


dispatch.execute_layout = execute_layout
dispatch.nested_layer = nested_layer
inplace.write_layout = write_layout
