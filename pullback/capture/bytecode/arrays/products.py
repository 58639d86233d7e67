"""NumPy's products, linear algebra and Fourier transforms on traced arrays, by the operators that do the same."""

from __future__ import annotations

import numpy as np

from ....core.dtype import by_numpy
from ..signals import Break
from .arguments import of, refuse, torch
from .traced import translates


@translates(np.matmul)
def matmul(model, x1, x2):
    return torch("matmul")(of(x1, model.dtype), of(x2, model.dtype))


@translates(np.dot)
def dot(model, a, b, out=None):
    refuse(out=(out, None))
    a, b = of(a, model.dtype), of(b, model.dtype)
    if not a.ndim or not b.ndim:
        return a * b
    return torch("matmul")(a, b) if b.ndim <= 2 else torch("tensordot")(a, b, ([-1], [b.ndim - 2]))


@translates(np.inner)
def inner(model, a, b):
    return torch("inner")(of(a, model.dtype), of(b, model.dtype))


@translates(np.outer)
def outer(model, a, b, out=None):
    refuse(out=(out, None))
    return torch("outer")(of(a, model.dtype).reshape(-1), of(b, model.dtype).reshape(-1))


@translates(np.tensordot)
def tensordot(model, a, b, axes=2):
    return torch("tensordot")(of(a, model.dtype), of(b, model.dtype), axes)


@translates(np.einsum)
def einsum(model, subscripts, *operands, optimize=False):
    if not isinstance(subscripts, str):
        raise Break("it calls numpy.einsum with lists of axes")
    return torch("einsum")(subscripts, *[of(o, model.dtype) for o in operands])


@translates(np.trace)
def trace(model, a, offset=0, axis1=0, axis2=1):
    return torch("diagonal")(of(a), offset, axis1, axis2).to(by_numpy[model.dtype]).sum(-1)


@translates(np.diagonal, is_loose=True)
def diagonal(model, a, offset=0, axis1=0, axis2=1):
    return torch("diagonal")(of(a), offset, axis1, axis2)


@translates(np.diag)
def diag(model, v, k=0):
    t = of(v)
    if t.ndim == 2:
        raise Break("it takes the diagonal of a NumPy array, as a view that may not be written")
    return torch("diag")(t, k)


def triangle(name: str, function) -> None:
    @translates(function)
    def keep(model, m, k=0):
        return torch(name)(of(m), k)


triangle("tril", np.tril)
triangle("triu", np.triu)


def transform(name: str) -> None:
    @translates(getattr(np.fft, name))
    def fft(model, a, n=None, axis=-1, norm=None, out=None):
        refuse(out=(out, None))
        return torch(name, "fft")(of(a), n, axis, norm)


for np_name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    transform(np_name)


def shift(name: str) -> None:
    @translates(getattr(np.fft, name))
    def move(model, x, axes=None):
        return torch(name, "fft")(of(x), axes)


shift("fftshift")
shift("ifftshift")


@translates(np.linalg.norm)
def norm(model, x, ord=None, axis=None, keepdims=False):
    return torch("norm", "linalg")(of(x, model.dtype), ord, axis, bool(keepdims))


@translates(np.linalg.det)
def det(model, a):
    return torch("det", "linalg")(of(a, model.dtype))
