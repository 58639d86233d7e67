"""NumPy's functions that make arrays, shape them and choose from them, on traced arrays: each does with operators what NumPy does;
dtype and shape are NumPy's (`translates`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....core.dtype import by_numpy
from ....core.tensor import Tensor
from ..lookups import is_symbol
from ..signals import Break
from .arguments import all_axes, of, refuse, torch
from .traced import TABLE, TracedArray, asked, is_traced, lifted, model_of, translates


# ---- making arrays
@translates(np.array, np.asarray, np.asanyarray, np.ascontiguousarray)
def array(model, object, dtype=None, *, copy=True, order=None, ndmin=0):
    refuse(order=(None if order in ("K", "C") else order, None), ndmin=(ndmin, 0))
    return stacked(object, model.dtype)


def stacked(value, dtype: np.dtype) -> Tensor:
    """Nested lists of numbers and arrays as one tensor."""
    if isinstance(value, TracedArray):
        return value.tensor.to(by_numpy[dtype])
    if isinstance(value, (list, tuple)):
        if not value:
            raise Break("it makes a NumPy array of empty lists")
        return torch("stack")([stacked(v, dtype) for v in value])
    if is_symbol(value):
        return torch("scalar_tensor")(value, dtype=by_numpy[dtype])
    return torch("tensor")(np.asarray(value, dtype))


def _array(*args, copy=True, **kwargs):
    """`np.array(traced)`: a copy; `np.asarray` of one that has the dtype is itself."""
    result = _make_array(*args, **kwargs)
    first = args[0] if args else kwargs.get("object")
    if isinstance(copy, np._CopyMode):
        copy = copy is np._CopyMode.ALWAYS
    if isinstance(first, TracedArray) and copy and result.tensor is first.tensor:
        return TracedArray(first.tensor.clone())
    return result


def _asarray(function) -> Callable:
    def call(a, dtype=None, **kwargs):
        if isinstance(a, TracedArray) and not a.is_scalar and not kwargs and dtype in (None, a.dtype):
            return a if function is not np.ascontiguousarray else TABLE[np.reshape](a, a.shape or (1,))
        return _as_array[function](a, dtype, **kwargs)

    return call


_make_array = TABLE[np.array]
TABLE[np.array] = _array
_as_array = {f: TABLE[f] for f in (np.asarray, np.asanyarray, np.ascontiguousarray)}
for one in _as_array:
    TABLE[one] = _asarray(one)


def _factory(function, make: Callable) -> Callable:
    """`np.zeros(shape)`, ...: computed by the graph, since a constant would be kept with it."""

    def call(*args, **kwargs):
        model = asked(function, args, kwargs)
        if model.dtype not in by_numpy or kwargs.get("order", "C") != "C" or "like" in kwargs:
            return lifted(function(*args, **kwargs))
        shape = args[0] if args else kwargs["shape"]
        shape = tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
        fill = () if make is not _full else (args[1] if len(args) > 1 else kwargs["fill_value"],)
        return TracedArray(make(shape, by_numpy[model.dtype], *fill))

    return call


def _full(shape, dtype, fill_value) -> Tensor:
    if is_traced(fill_value):
        return of(fill_value).to(dtype).expand(shape).clone()
    return torch("full")(shape, np.asarray(fill_value, dtype.numpy).item(), dtype=dtype)


TABLE[np.zeros] = _factory(np.zeros, lambda shape, dtype: torch("zeros")(shape, dtype=dtype))
TABLE[np.empty] = _factory(np.empty, lambda shape, dtype: torch("zeros")(shape, dtype=dtype))
TABLE[np.ones] = _factory(np.ones, lambda shape, dtype: torch("ones")(shape, dtype=dtype))
TABLE[np.full] = _factory(np.full, _full)


@translates(np.zeros_like, np.empty_like)
def zeros_like(model, a, dtype=None):
    return torch("zeros_like")(of(a), dtype=by_numpy[model.dtype])


@translates(np.ones_like)
def ones_like(model, a, dtype=None):
    return torch("ones_like")(of(a), dtype=by_numpy[model.dtype])


@translates(np.full_like)
def full_like(model, a, fill_value, dtype=None):
    return of(fill_value, model.dtype).expand(of(a).shape).clone()


@translates(np.arange)
def arange(model, *args, dtype=None):
    return torch("arange")(*args, dtype=by_numpy[model.dtype])


@translates(np.linspace, np.eye, np.identity, np.tri, np.logspace, np.geomspace, np.fft.fftfreq, np.fft.rfftfreq)
def of_constants(model, *args, **kwargs):
    raise Break("it makes a NumPy array of numbers that are not known yet")


@translates(np.copy)
def copy(model, a, order="K", subok=False):
    return of(a).clone()


# ---- shapes
def shape_of(shape) -> tuple:
    return tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)


@translates(np.reshape)
def reshape(model, a, shape=None, order="C", *, copy=None):
    refuse(order=(order, "C"), copy=(copy, None))
    return of(a).reshape(shape_of(shape))


@translates(np.ravel)
def ravel(model, a, order="C"):
    refuse(order=(order, "C"))
    return of(a).reshape(-1)


@translates(np.transpose)
def transpose(model, a, axes=None):
    t = of(a)
    return t.permute(*(range(t.ndim - 1, -1, -1) if axes is None else axes))


@translates(np.swapaxes)
def swapaxes(model, a, axis1, axis2):
    return of(a).transpose(axis1, axis2)


@translates(np.moveaxis)
def moveaxis(model, a, source, destination):
    return torch("movedim")(of(a), source, destination)


@translates(np.squeeze)
def squeeze(model, a, axis=None):
    return of(a).squeeze() if axis is None else of(a).squeeze(axis)


@translates(np.expand_dims)
def expand_dims(model, a, axis):
    t, axes = of(a), axis if isinstance(axis, (list, tuple)) else (axis,)
    total = t.ndim + len(axes)
    for place in sorted(x % total for x in axes):
        t = t.unsqueeze(place)
    return t


@translates(np.broadcast_to, is_loose=True)
def broadcast_to(model, array, shape):
    return of(array).expand(shape_of(shape))


@translates(np.atleast_1d)
def atleast_1d(model, a):
    return torch("atleast_1d")(of(a))


@translates(np.atleast_2d)
def atleast_2d(model, a):
    return torch("atleast_2d")(of(a))


def joined(name: str, function) -> None:
    @translates(function)
    def join(model, tup):
        return torch(name)([of(a, model.dtype) for a in tup])


for np_name in ("vstack", "hstack", "dstack", "column_stack"):
    joined(np_name, getattr(np, np_name))


@translates(np.concatenate)
def concatenate(model, arrays, axis=0):
    if axis is None:
        return torch("cat")([of(a, model.dtype).reshape(-1) for a in arrays])
    return torch("cat")([of(a, model.dtype) for a in arrays], axis)


@translates(np.stack)
def stack(model, arrays, axis=0):
    return torch("stack")([of(a, model.dtype) for a in arrays], axis)


@translates(np.split, np.array_split)
def split(model, ary, indices_or_sections, axis=0):
    return torch("tensor_split")(of(ary), indices_or_sections, axis)


@translates(np.tile)
def tile(model, A, reps):
    return torch("tile")(of(A), shape_of(reps)).clone()


@translates(np.repeat)
def repeat(model, a, repeats, axis=None):
    if not isinstance(repeats, int):
        raise Break("it repeats items of a NumPy array by an array")
    return torch("repeat_interleave")(of(a), repeats, axis)


@translates(np.flip, is_loose=True)
def flip(model, m, axis=None):
    t = of(m)
    return t.flip(all_axes(t, axis))


@translates(np.flipud, is_loose=True)
def flipud(model, m):
    return of(m).flip(0)


@translates(np.fliplr, is_loose=True)
def fliplr(model, m):
    return of(m).flip(1)


@translates(np.roll)
def roll(model, a, shift, axis=None):
    return torch("roll")(of(a), shift, axis)


@translates(np.meshgrid)
def meshgrid(model, *xi, copy=True, sparse=False, indexing="xy"):
    refuse(copy=(copy, True), sparse=(sparse, False))
    return [t.clone() for t in torch("meshgrid")(*[of(x).reshape(-1) for x in xi], indexing=indexing)]


# ---- choosing
@translates(np.where)
def where(model, condition, x=None, y=None):
    if x is None or y is None:
        raise Break("it asks where a NumPy array is true")
    return torch("where")(of(condition) != 0, of(x, model.dtype), of(y, model.dtype))


@translates(np.clip)
def clip(model, a, a_min=None, a_max=None, out=None, *, min=None, max=None):
    refuse(out=(out, None))
    t, low, high = of(a, model.dtype), a_min if min is None else min, a_max if max is None else max
    t = t if low is None else torch("maximum")(t, of(low, model.dtype))
    t = t if high is None else torch("minimum")(t, of(high, model.dtype))
    return t.clone() if low is None and high is None else t


@translates(np.sort)
def sort(model, a, axis=-1, kind=None):
    t = of(a)
    return torch("sort")(t.reshape(-1) if axis is None else t, -1 if axis is None else axis)[0]


@translates(np.argsort)
def argsort(model, a, axis=-1, kind=None, *, stable=None):
    if kind not in ("stable", "mergesort") and not stable:
        raise Break("it sorts a NumPy array in an order that is not said for equal items: kind='stable' is")
    t = of(a)
    return torch("argsort")(t.reshape(-1) if axis is None else t, -1 if axis is None else axis, stable=True)


@translates(np.take)
def take(model, a, indices, axis=None, out=None, mode="raise"):
    refuse(out=(out, None), mode=(mode, "raise"))
    t = of(a)
    t, axis = (t.reshape(-1), 0) if axis is None else (t, axis % t.ndim)
    return t[(*[slice(None)] * axis, of(indices).long())].clone()


@translates(np.take_along_axis)
def take_along_axis(model, arr, indices, axis=-1):
    t = of(arr)
    return torch("take_along_dim")(t if axis is not None else t.reshape(-1), of(indices).long(), axis)


@translates(np.diff)
def diff(model, a, n=1, axis=-1):
    return torch("diff")(of(a), n, axis)


@translates(np.nan_to_num)
def nan_to_num(model, x, copy=True, nan=0.0, posinf=None, neginf=None):
    refuse(copy=(copy, True))
    return torch("nan_to_num")(of(x), nan, posinf, neginf)


@translates(np.isclose)
def isclose(model, a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    wanted = np.result_type(model_of(a), model_of(b), np.float64 if _is_whole(a) and _is_whole(b) else np.float16)
    return torch("isclose")(of(a, wanted), of(b, wanted), rtol, atol, bool(equal_nan))


def _is_whole(value) -> bool:
    return np.result_type(model_of(value)).kind in "biu"


@translates(np.round, np.around)
def rounded(model, a, decimals=0, out=None):
    refuse(out=(out, None))
    t = of(a, model.dtype)
    if t.is_complex():
        raise Break("it rounds complex numbers in a NumPy array")
    if not t.is_floating_point():
        refuse(decimals=(decimals, 0))
        return t.clone()
    return torch("round")(t, decimals=decimals)


@translates(np.real)
def real(model, val):
    t = of(val)
    return torch("real")(t) if t.is_complex() else t


@translates(np.imag)
def imag(model, val):
    t = of(val)
    return torch("imag")(t) if t.is_complex() else torch("zeros_like")(t)


# ---- what depends on dtypes and shapes alone
def _of_dtypes(function) -> Callable:
    return lambda *args, **kwargs: asked(function, args, kwargs)


for one in (np.result_type, np.issubdtype, np.can_cast, np.promote_types, np.iscomplexobj, np.isrealobj):
    TABLE[one] = _of_dtypes(one)
TABLE[np.shape] = lambda a: a.shape if isinstance(a, TracedArray) else np.shape(model_of(a))
TABLE[np.ndim] = lambda a: np.ndim(model_of(a))
TABLE[np.size] = lambda a, axis=None: (
    (a.size if axis is None else a.shape[axis]) if isinstance(a, TracedArray) else np.size(model_of(a), axis)
)
