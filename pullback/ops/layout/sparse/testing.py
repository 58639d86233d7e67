"""`as_sparse_gradcheck`: a gradcheck that also perturbs sparse inputs."""

from __future__ import annotations

from ....core.tensor import Tensor
from ...system.operator import exports
from .layouts import is_coo, is_sparse


def as_sparse_gradcheck(gradcheck):
    """Wrap `gradcheck` so that sparse arguments are checked, by dense leaves that stand for them."""

    def wrapped(function, inputs, **kwargs):
        masked = kwargs.pop("masked", False)
        given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        leaves, builders = [], []
        for x in given:
            leaf, build = _leaf(x, masked)
            leaves.append(leaf)
            builders.append(build)

        def dense_function(*parts):
            out = function(*[b(p) for b, p in zip(builders, parts, strict=True)])
            many = out if isinstance(out, (tuple, list)) else (out,)
            result = tuple(o.to_dense(masked_grad=masked) if is_sparse(o) else o for o in many)
            return result if isinstance(out, (tuple, list)) else result[0]

        return gradcheck(dense_function, tuple(leaves), **kwargs)

    wrapped.masked = True
    return wrapped


def _leaf(x, masked: bool):
    """A dense leaf that stands for an input, and how to make the input from it."""
    if not (isinstance(x, Tensor) and is_sparse(x) and x.requires_grad):
        return x, lambda p: p
    if not masked:
        a = x._array
        leaf = x.detach().to_dense().requires_grad_()
        ones = exports["torch"]["ones_like"](leaf)
        everywhere = ones.to_sparse(layout=a.layout, blocksize=a.blocksize, dense_dim=a.dense_dim)
        return leaf, lambda p: p.sparse_mask(everywhere)  # with an element for each that is perturbed
    pattern = x.detach().coalesce() if is_coo(x) else x.detach()
    leaf = pattern.values().detach().clone().requires_grad_()

    def build(values):
        a = pattern._array
        if is_coo(pattern):
            return exports["torch"]["sparse_coo_tensor"](a.indices, values, a.shape, is_coalesced=True)
        return exports["torch"]["sparse_compressed_tensor"](a.compressed, a.plain, values, a.shape, layout=a.layout)

    return leaf, build
