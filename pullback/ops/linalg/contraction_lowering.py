"""Loops of products of matrices: calls of BLAS, and what is added around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.tensor import stride_of
from ..lowering import NotLowerable, of_complex

if TYPE_CHECKING:
    from ..lowering.builder import Builder
    from ..lowering.loops import Value

INTEGERS = NotLowerable("a product of integers, which BLAS has not")


def lower_mm(b: Builder, x: Value, y: Value):
    if not x.dtype.is_floating_point:
        return INTEGERS
    return b.returned(b.product(x, y, b.spec()))


def lower_addmm(b: Builder, bias: Value, x: Value, y: Value, beta, alpha):
    if not x.dtype.is_floating_point:
        return INTEGERS
    if isinstance(alpha, complex) or isinstance(beta, complex):
        return NotLowerable("a factor that is complex")
    if alpha == beta == 1:
        whole = b.biased_product(x, y, bias)
        if whole is not None:
            return b.returned(whole)
    result, out = b.product(x, y), b.result()
    rank = len(out.shape)
    e = b.element(result, rank) if alpha == 1 else b.element(result, rank) * alpha
    if beta == 0:
        return b.fill(out, e)
    addend = b.element(bias, rank)
    return b.fill(out, e + (addend if beta == 1 else addend * beta))


def lower_mv(b: Builder, x: Value, y: Value):
    """A matrix, or a vector, and a vector."""
    if not x.dtype.is_floating_point:
        return INTEGERS
    d = b.wide(x.dtype)
    result = b.reduce("sum", [x, y], lambda p, q: p * q, [len(x.shape) - 1], d, keepdim=False)
    return b.store(b.result(), result)


@of_complex
def lower_unsafe_view(b: Builder, x: Value, size):
    if not x.is_contiguous:
        return NotLowerable("an unsafe view of what is not contiguous")
    t = b.spec()
    return x.window(t._array.shape, stride_of(t))
