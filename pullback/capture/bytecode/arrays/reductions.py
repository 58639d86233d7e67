"""NumPy's reductions on traced arrays, by the operators that do the same."""

from __future__ import annotations

import numpy as np

from ..signals import Break
from .arguments import all_axes, of, reduced, refuse, torch
from .traced import translates


@translates(np.sum)
def sum(model, a, axis=None, dtype=None, out=None, keepdims=False):
    refuse(out=(out, None))
    return reduced(torch("sum"), of(a, model.dtype), axis, keepdims)


@translates(np.prod)
def prod(model, a, axis=None, dtype=None, out=None, keepdims=False):
    refuse(out=(out, None))
    t = of(a, model.dtype)
    if axis is None:
        flat = torch("prod")(t)
        return flat.reshape([1] * t.ndim) if keepdims else flat
    if isinstance(axis, tuple):
        raise Break("it multiplies a NumPy array over several axes")
    return torch("prod")(t, axis, keepdim=bool(keepdims))


@translates(np.mean)
def mean(model, a, axis=None, dtype=None, out=None, keepdims=False):
    refuse(out=(out, None))
    return reduced(torch("mean"), of(a, model.dtype), axis, keepdims)


def spread(name: str, function) -> None:
    @translates(function)
    def measure(model, a, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
        refuse(out=(out, None))
        t = of(a)
        if t.is_complex():
            raise Break("it measures the spread of complex numbers")
        t = of(a, model.dtype)
        return torch(name)(t, all_axes(t, axis), correction=ddof, keepdim=bool(keepdims))


spread("std", np.std)
spread("var", np.var)


def extreme(name: str, *functions) -> None:
    @translates(*functions)
    def measure(model, a, axis=None, out=None, keepdims=False):
        refuse(out=(out, None))
        return reduced(torch(name), of(a), axis, keepdims)


extreme("amax", np.max, np.amax)
extreme("amin", np.min, np.amin)


def index_of(name: str, function) -> None:
    @translates(function)
    def find(model, a, axis=None, out=None, *, keepdims=False):
        refuse(out=(out, None), keepdims=(keepdims, False))
        return torch(name)(of(a)) if axis is None else torch(name)(of(a), axis)


index_of("argmax", np.argmax)
index_of("argmin", np.argmin)


def truth(name: str, function) -> None:
    @translates(function)
    def ask(model, a, axis=None, out=None, keepdims=False):
        refuse(out=(out, None))
        return reduced(torch(name), of(a) != 0, axis, keepdims)


truth("any", np.any)
truth("all", np.all)


def running(name: str, function) -> None:
    @translates(function)
    def accumulate(model, a, axis=None, dtype=None, out=None):
        refuse(out=(out, None))
        t = of(a, model.dtype)
        return torch(name)(t.reshape(-1), 0) if axis is None else torch(name)(t, axis)


running("cumsum", np.cumsum)
running("cumprod", np.cumprod)
