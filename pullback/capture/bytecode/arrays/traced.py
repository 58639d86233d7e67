"""Arrays of a captured program: `TracedArray` stands for an `ndarray` or a NumPy scalar that the graph computes.

What comes in are tensors of the trace; what comes out are tensors again, or real arrays when the graph has run. The dtype, the
shape and the kind (array or scalar) of every result are asked of NumPy itself, which is called on arrays of ones (`model_of`),
so that they and the errors are its own. What a tensor cannot do as an array does ends the graph: nothing is guessed.
"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ....core.dtype import by_numpy
from ....core.modes import ambient
from ....core.tensor import Tensor
from ....ops.system.operator import public
from ..lookups import is_symbol
from ..signals import Break

TABLE: dict[Any, Callable] = {}  # functions of NumPy, and what does the same on traced arrays
UNKNOWN_SIZE = 2  # what a size that depends on data is in a model


class TracedArray:
    """An array, or with `is_scalar` a NumPy scalar, of a captured program. `is_loose`: where NumPy has a view, this is a copy or
    may be written though it must not, so that nothing may be written while it is alive, and it cannot leave the graph."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, tensor: Tensor, is_scalar: bool = False, is_loose: bool = False):
        self.tensor, self.is_scalar, self.is_loose = tensor, is_scalar, is_loose
        if is_loose:
            ambient.captures[-1].has_loose_arrays = True

    # ---- what it is
    @property
    def dtype(self) -> np.dtype:
        return self.tensor.dtype.numpy

    @property
    def kind(self) -> type:
        """The class that the program sees."""
        return self.dtype.type if self.is_scalar else np.ndarray

    @property
    def shape(self) -> tuple:
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        return self.tensor.ndim

    @property
    def size(self):
        return self.tensor.numel()

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self):
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple:
        return tuple([s * self.itemsize for s in self.tensor.stride()])

    @property
    def T(self):
        return TABLE[np.transpose](self)

    @property
    def real(self):
        return TABLE[np.real](self)

    @property
    def imag(self):
        return TABLE[np.imag](self)

    # ---- what it holds
    def item(self, *args):
        return (self.tensor[args] if args else self.tensor).item()

    def tolist(self):
        return self.tensor.tolist()

    def __bool__(self) -> bool:
        if isinstance(self.size, int) and self.size != 1:
            bool(model_of(self))
        raise Break("a branch depends on what is in a NumPy array")

    def __int__(self) -> int:
        raise Break("it makes a number of what is in a NumPy array")

    __float__ = __complex__ = __index__ = __int__

    def __repr__(self) -> str:
        if not ambient.captures:
            return f"TracedArray({self.tensor!r})"
        raise Break("it makes text of a NumPy array")

    def __format__(self, spec) -> str:
        raise Break("it makes text of a NumPy array")

    def __len__(self) -> int:
        return len(model_of(self)) if self.ndim == 0 else int(self.tensor.shape[0])

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def __contains__(self, value) -> bool:
        raise Break("it looks for a value in a NumPy array")

    # ---- items
    def __getitem__(self, key):
        traced = [k for k in _parts(key) if isinstance(k, TracedArray)]
        if not traced:
            model_of(self)[_models(key)]  # it raises what NumPy raises
        with known_to_numpy("ndarray.__getitem__"):
            found = self.tensor[_tensor_key(key)]
        is_scalar = found.ndim == 0 and not any(k is Ellipsis for k in _parts(key))
        return TracedArray(found.clone() if is_scalar else found, is_scalar)

    def __setitem__(self, key, value) -> None:
        self.check_write()
        if not any(isinstance(k, TracedArray) for k in _parts(key)):
            model_of(self).copy()[_models(key)] = model_of(value)  # it raises what NumPy raises
        with known_to_numpy("ndarray.__setitem__"):
            self.tensor[_tensor_key(key)] = self._as_own(value)

    def _as_own(self, value):
        """A value that is put into the array: of its dtype."""
        if isinstance(value, (list, tuple)):
            value = TABLE[np.array](value)
        if isinstance(value, TracedArray):
            if value.dtype.kind == "c" and self.dtype.kind != "c":
                raise Break("it puts complex numbers into an array of real ones")
            return value.tensor.to(self.tensor.dtype)
        if is_symbol(value):
            return value
        return plain(self.dtype.type(refuse_tensor(value)))

    def check_write(self) -> None:
        """End the graph where a write would be seen elsewhere than in NumPy."""
        if self.is_scalar:
            raise TypeError(f"'{self.kind.__module__}.{self.kind.__name__}' object does not support item assignment")
        if self.is_loose or getattr(ambient.captures[-1], "has_loose_arrays", False):
            raise Break("it writes to a NumPy array of which there may be views that are copies in a graph")

    def __copy__(self):
        return TracedArray(self.tensor.clone(), self.is_scalar)

    def __array_ufunc__(self, ufunc, method: str, *inputs, **kwargs):
        name = ufunc if method == "__call__" else getattr(ufunc, method)
        if method != "__call__" or ufunc not in TABLE:
            raise Break(f"it calls numpy.{ufunc.__name__}{'' if method == '__call__' else '.' + method}")
        return TABLE[name](*inputs, **kwargs)

    def __array_function__(self, function, kinds, args, kwargs):
        if function not in TABLE:
            raise Break(f"it calls {function.__module__}.{function.__name__}")
        return TABLE[function](*args, **kwargs)


def plain(value: np.generic):
    """A NumPy scalar as a number of Python."""
    return value.item() if isinstance(value, np.generic) else value


def refuse_tensor(value):
    if isinstance(value, Tensor):
        raise Break("it gives NumPy a tensor")
    return value


def _parts(key) -> tuple:
    return key if type(key) is tuple else (key,)


def _models(key):
    return tuple(map(_model_part, key)) if type(key) is tuple else _model_part(key)


def _model_part(key):
    if isinstance(key, slice):
        return slice(*[hint(v) for v in (key.start, key.stop, key.step)])
    return hint(key)


def _tensor_key(key):
    return tuple(map(_tensor_part, key)) if type(key) is tuple else _tensor_part(key)


def _tensor_part(key):
    """One part of an index as tensors take it."""
    if isinstance(key, TracedArray):
        return key.tensor if key.dtype.kind == "b" else key.tensor.long()
    if isinstance(key, slice):
        if key.step is not None and not is_symbol(key.step) and key.step < 0:
            raise Break("it takes a NumPy array backwards, as a view that no tensor is")
        return slice(*map(plain, (key.start, key.stop, key.step)))
    if isinstance(key, list):
        return _tensor_part(TABLE[np.array](key)) if key else key
    return plain(refuse_tensor(key))


# ---- models
def hint(value):
    """A symbolic number as one that it may be."""
    if not is_symbol(value):
        return plain(value)
    return value.node.hint if value.node.has_hint() else UNKNOWN_SIZE


def model_of(value):
    """A value as NumPy gets it to say what comes of it: arrays of ones in the place of traced ones."""
    if isinstance(value, TracedArray):
        if value.is_scalar:
            return value.dtype.type(1)
        return np.broadcast_to(np.ones((), value.dtype), tuple(map(hint, value.shape)))
    if isinstance(value, (list, tuple)):
        items = [model_of(v) for v in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {k: model_of(v) for k, v in value.items()}
    return hint(value) if is_symbol(value) else refuse_tensor(value)


def is_traced(value) -> bool:
    """Whether a value is, or has in it, something that the graph computes."""
    if isinstance(value, (list, tuple)):
        return any(map(is_traced, value))
    if isinstance(value, dict):
        return any(map(is_traced, value.values()))
    return isinstance(value, (TracedArray, Tensor)) or is_symbol(value)


def asked(function: Callable, args: tuple, kwargs: dict):
    """What NumPy gives for models of the arguments: the dtype and shape of the result, or its error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*model_of(args), **model_of(kwargs))


def lifted(value):
    """What NumPy computed of constants: arrays are made anew at each run of the graph."""
    if isinstance(value, np.ndarray):
        if value.dtype not in by_numpy:
            raise Break(f"it makes a NumPy array of {value.dtype}")
        return TracedArray(public("torch", "tensor")(np.ascontiguousarray(value).reshape(value.shape)))
    if type(value) in (list, tuple):
        return type(value)([lifted(v) for v in value])
    return value


def conformed(found, model, name: str, is_loose: bool = False):
    """A result as NumPy has it: of the model's dtype and kind."""
    if isinstance(model, (list, tuple)):
        items = [conformed(f, m, name, is_loose) for f, m in zip(found, model, strict=True)]
        return type(model)(items) if type(model) in (list, tuple) else tuple(items)
    if not isinstance(model, (np.ndarray, np.generic)) or model.dtype not in by_numpy:
        raise Break(f"it calls numpy.{name}, which gives a {type(model).__name__}")
    wanted = by_numpy[model.dtype]
    found = found if found.dtype is wanted else found.to(wanted)
    known = all(not is_symbol(s) or s.node.has_hint() for s in found.shape)
    if known and tuple(map(hint, found.shape)) != model.shape:
        raise Break(f"it calls numpy.{name}, whose result has another shape in a graph")
    return TracedArray(found, isinstance(model, np.generic), is_loose)


def translates(*functions, is_loose: bool = False) -> Callable:
    """Declare what does the same as functions of NumPy: `implementation(model, *arguments)` gives a tensor, or several."""

    def declare(implementation: Callable) -> Callable:
        signature = inspect.signature(implementation)
        for function in functions:
            TABLE[function] = _translation(function, implementation, signature, is_loose)
        return implementation

    return declare


def _translation(function, implementation: Callable, signature: inspect.Signature, is_loose: bool) -> Callable:
    name = function.__name__

    def call(*args, **kwargs):
        if not is_traced((args, kwargs)):
            return lifted(function(*args, **kwargs))
        model = asked(function, args, kwargs)
        try:
            bound = signature.bind(model, *args, **kwargs)
        except TypeError as error:
            raise Break(f"it calls numpy.{name} with other arguments than are known: {error}") from None
        with known_to_numpy(name):
            return conformed(implementation(*bound.args, **bound.kwargs), model, name, is_loose)

    return call


@contextlib.contextmanager
def known_to_numpy(name: str) -> Iterator[None]:
    """NumPy has done it for the model: where tensors cannot, the graph ends."""
    try:
        yield
    except Exception as error:
        raise Break(f"it calls numpy.{name} as no tensors can: {error}") from error
