"""The seam at which tensors that are not dense arrays enter: sparse, nested and opaque layouts.

Importing this module declares their operators and sets the hooks by which dispatch and in-place writes ask for them.
"""

from __future__ import annotations

from ...core.layers import above
from ...core.tensor import NESTED, OPAQUE, SPARSE
from . import nested, opaque, sparse


def execute_layout(op, args: tuple, keys: int):
    """The rule of a sparse operator, of a nested or opaque one, or a refusal."""
    if keys & NESTED:
        return nested.execute_nested(op, args)
    if keys & OPAQUE:
        return opaque.execute_opaque(op, args)
    if keys & SPARSE:
        return sparse.execute_sparse(op, args, keys)
    raise NotImplementedError(
        "Either your tensor may have escaped from inside a function being vmapped and this is a user error (see "
        f"https://pytorch.org/functorch/stable/ux_limitations.html), or {op.display}() is not implemented for transformed tensors"
    )


def write_layout(target, result) -> None:
    """Write a result into a tensor where either is no dense array."""
    if (target._keys | result._keys) & NESTED:
        nested.write_nested(target, result)
    elif (target._keys | result._keys) & OPAQUE:
        opaque.write_opaque(target, result)
    else:
        sparse.write_sparse(target, result)


def resize_layout(target, shape: tuple):
    """`resize_` of a tensor that is no dense array."""
    if target._keys & SPARSE:
        return sparse.resize_sparse_(target, shape)
    raise NotImplementedError(f"resize_(): tensors of layout {target.layout} are not resized")


above.execute_layout = execute_layout
above.nested_layer = nested.nested_layer
above.write_layout = write_layout
above.resize_layout = resize_layout
