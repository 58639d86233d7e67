"""Calls on masked tensors that are differentiated as a whole: reductions, selections, conversions of layout.

Each is a custom function. Its backward is the backward of the same call on plain data with missing elements filled in, so that
what is missing changes no gradient; and the gradient has the mask of the input.
"""

from __future__ import annotations

from ...autograd import grad
from ...autograd.function import Function
from ...autograd.grad_mode import enable_grad
from ...core.modes import GRAD, ambient
from ...core.tensor import Tensor
from . import rules
from .core import MaskedTensor, is_masked_tensor

_REDUCED_BY = ("dim", "keepdim")


def data_of(t) -> Tensor:
    """The data of a masked tensor, without history; a plain tensor itself."""
    return t._masked_data if is_masked_tensor(t) else t


class MaskedOf(Function):
    """`as_masked_tensor`."""

    @staticmethod
    def forward(ctx, data, mask):
        if is_masked_tensor(data) or not isinstance(data, Tensor):
            raise TypeError(f"data must be a Tensor, got {type(data).__name__}")
        return MaskedTensor(data.detach(), mask)

    @staticmethod
    def backward(ctx, g):
        return g, None


class DataOf(Function):
    """`get_data`: a gradient that comes back is masked."""

    @staticmethod
    def forward(ctx, masked):
        ctx.mask = masked._masked_mask
        return masked._masked_data.detach()

    @staticmethod
    def backward(ctx, g):
        return g if is_masked_tensor(g) else MaskedTensor(g, ctx.mask)


class Reduced(Function):
    """A reduction of the elements that are there."""

    @staticmethod
    def forward(ctx, masked, name, options):
        ctx.masked, ctx.reduction, ctx.options = masked, name, options
        return rules.reduce(name, masked, options)

    @staticmethod
    def backward(ctx, g):
        data, mask = rules.dense(ctx.masked)
        with enable_grad():
            leaf = data.detach().requires_grad_()
            out = rules.REDUCTIONS[ctx.reduction](leaf, mask=mask, **ctx.options)
        (slope,) = grad(out, leaf, data_of(g))
        return rules.like_mask(slope, ctx.masked._masked_mask), None, None


class Chosen(Function):
    """`where(condition, x, y)`."""

    @staticmethod
    def forward(ctx, condition, x, y):
        ctx.condition = data_of(condition)
        ctx.masks = [t._masked_mask if is_masked_tensor(t) else None for t in (x, y)]
        return rules.where(None, (condition, x, y), {})

    @staticmethod
    def backward(ctx, g):
        g, condition = data_of(g), ctx.condition
        parts = g.masked_fill(~condition, 0), g.masked_fill(condition, 0)
        return None, *(p if m is None else MaskedTensor(p, m) for p, m in zip(parts, ctx.masks, strict=True))


class Converted(Function):
    """`to_dense`, `to_sparse` and `to_sparse_csr`: data and mask in another layout."""

    @staticmethod
    def forward(ctx, masked, name):
        ctx.masked = masked
        mask = getattr(masked._masked_mask, name)()
        data = masked._masked_data
        data = data.to_dense() if name == "to_dense" else rules.like_mask(data, mask)._masked_data
        return MaskedTensor(data, mask)

    @staticmethod
    def backward(ctx, g):
        data, _ = rules.dense(g) if is_masked_tensor(g) else (g, None)
        return rules.like_mask(data, ctx.masked._masked_mask), None


CONVERSIONS = ("to_dense", "to_sparse", "to_sparse_csr")


def own_call(func, args: tuple, kwargs: dict):
    """The result of a public function that is differentiated here; NotImplemented for all others."""
    name = getattr(func, "__name__", "")
    masked = args[0] if args and is_masked_tensor(args[0]) else None
    if name in CONVERSIONS and masked is not None and len(args) == 1:
        return masked if masked.layout is _layout(name) else Converted.apply(masked, name)
    if name == "_is_any_true" and masked is not None:
        return rules.any_true(masked)
    if not ambient.mode & GRAD:
        return NotImplemented
    if name in rules.REDUCTIONS and masked is not None and masked.requires_grad and "out" not in kwargs:
        options = dict(zip(_REDUCED_BY, args[1:], strict=False)) | {k: v for k, v in kwargs.items() if v is not None}
        return Reduced.apply(masked, name, options)
    if name == "where" and len(args) == 3 and any(getattr(t, "requires_grad", False) for t in args):
        return Chosen.apply(*args)
    return NotImplemented


def _layout(name: str):
    from ...core import device as devices

    return {"to_dense": devices.strided, "to_sparse": devices.sparse_coo, "to_sparse_csr": devices.sparse_csr}[name]
