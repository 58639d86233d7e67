"""Public functions whose plain case is one native kernel: sum, mean, max, min, softmax, log_softmax, layer_norm.

Like the wrappers that `calls` generates, each is straight-line code: where every tensor is a plain float tensor and
nothing listens, the kernel writes into a fresh array and the result is recorded if a gradient is wanted; anything
else takes the general path. Without the compiled kernels, NumPy does the reductions and the general path the rest.
"""

from __future__ import annotations

import numpy as np

from ...core import device as devices
from ...core import dtype as dtypes
from ...core import native
from ...core.arrays import LARGE, thread_count
from ...core.modes import ambient
from ...core.tensor import PLAIN, Tensor, new_object, wrap
from .calls import UNSET
from .operator import Operator, export
from .overloads import resolve
from .overrides import any_overridden, call_overridden

_UFUNCS = {native.SUM: np.add, native.MAX: np.maximum, native.MIN: np.minimum}


def _numpy_reduce(a, out, kind: int, n: int, inner: int, threads: int) -> bool:
    if kind == native.MEAN:
        np.divide(np.add.reduce(a, axis=None), n, out=out)
    else:
        _UFUNCS[kind].reduce(a, axis=None, out=out)
    return True


def _absent(*args) -> bool:
    return False


_NAMES = {
    "PLAIN": PLAIN, "Tensor": Tensor, "new": new_object, "cpu": devices.cpu, "ambient": ambient, "LARGE": LARGE,
    "LIMIT": 1 << 62 if native.available else LARGE, "threads": thread_count, "empty": np.empty,
    "float32": dtypes.float32, "float64": dtypes.float64, "resolve": resolve, "wrap": wrap,
    "reduce": getattr(native._native, "reduce", _numpy_reduce),
    "reduce_dim": getattr(native._native, "reduce", _absent),
    "rows_softmax": getattr(native._native, "softmax", _absent),
    "rows_layer_norm": getattr(native._native, "layer_norm", _absent),
}  # fmt: skip
_WRAP = (
    "t = new(Tensor); t.array = r; t.dtype = d; t.device = cpu; t.keys = 0; t.autograd = None; "
    "t.version = [0]; t.memory = None; t.offset = 0; t.view_info = None"
)

_REDUCTION = f"""
def function(input, *args, **kwargs):
    if input.__class__ in PLAIN and not input.keys:
        mode = ambient.mode
        d = input.dtype
        if mode < 2 and (d is float32 or d is float64):
            a = input.array
            n = a.size
            if 0 < n < LIMIT:
                if not args and not kwargs:
                    r = empty((), a.dtype)
                    if reduce(a, r, KIND, n, 1, 1 if n < LARGE else threads()):
                        {_WRAP}
                        if mode and input.autograd is not None:
                            return whole.record(t, input, *DEFAULTS)
                        return t
                BY_DIM
    return resolve(function, operators, (input, *args), kwargs, METHOD)
"""

# One dimension of a row-major array: its stride says how many elements stand inside it.
_BY_DIM = f"""
                elif len(args) + len(kwargs) == 1:
                    dim = args[0] if args else kwargs.get("dim")
                    shape = a.shape
                    k = len(shape)
                    if dim.__class__ is int and -k <= dim < k:
                        if dim < 0:
                            dim += k
                        r = empty(shape[:dim] + shape[dim + 1:], a.dtype)
                        if reduce_dim(a, r, KIND, shape[dim], a.strides[dim] // a.itemsize, 1 if n < LARGE else threads()):
                            {_WRAP}
                            if mode and input.autograd is not None:
                                return by_dim.record(t, input, (dim,), False, None)
                            return t
"""

_SOFTMAX = f"""
def function(input, dim=DIM, *args, **kwargs):
    if dim.__class__ is int and not args and not kwargs and input.__class__ in PLAIN and not input.keys:
        mode = ambient.mode
        d = input.dtype
        if mode < 2 and (d is float32 or d is float64):
            a = input.array
            n = a.ndim
            if n and (dim == -1 or dim == n - 1):
                r = empty(a.shape, a.dtype)
                if rows_softmax(a, r, LOGARITHM, a.shape[-1], 1, 1 if a.size < LARGE else threads()):
                    {_WRAP}
                    if mode and input.autograd is not None:
                        return op.record(t, input, dim, False)
                    return t
    return general(function, (input, *(() if dim is UNSET else (dim,)), *args), kwargs)
"""

_LAYER_NORM = f"""
def function(input, normalized_shape, weight=None, bias=None, eps=1e-05, *args, **kwargs):
    if normalized_shape.__class__ in SHAPES and eps.__class__ is float and input.__class__ in PLAIN and not input.keys:
        mode = ambient.mode
        d = input.dtype
        a = input.array
        k = len(normalized_shape)
        shape = a.shape
        rows = shape[-k:]
        w = b = None
        if weight is not None:
            w = weight.array if weight.__class__ in PLAIN and not weight.keys and weight.dtype is d else UNSET
        if bias is not None:
            b = bias.array if bias.__class__ in PLAIN and not bias.keys and bias.dtype is d else UNSET
        if (
            mode < 2 and (d is float32 or d is float64) and k and rows == tuple(normalized_shape)
            and (w is None or w is not UNSET and w.shape == rows) and (b is None or b is not UNSET and b.shape == rows)
            and not args and not kwargs
        ):
            lead = shape[:-k] + ONES[k] if k < 5 else shape[:-k] + (1,) * k
            r = empty(shape, a.dtype)
            mean = empty(lead, a.dtype)
            rstd = empty(lead, a.dtype)
            if rows_layer_norm(a, r, w, b, mean, rstd, eps, 1 if a.size < LARGE else threads()):
                {_WRAP}
                if mode and (
                    input.autograd is not None or weight is not None and weight.autograd is not None
                    or bias is not None and bias.autograd is not None
                ):
                    made = (t, wrap(mean, d), wrap(rstd, d))
                    return op.record(made, input, tuple(normalized_shape), weight, bias, eps)[0]
                return t
    return general(function, (input, normalized_shape, weight, bias, eps, *args), kwargs)
"""


def _compiled(source: str, name: str, doc: str, **names):
    space = {**_NAMES, **names}
    exec(compile(source, f"<pullback quick {name}>", "exec"), space)
    function = space["function"]
    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = doc
    return function


def quick_reduction(
    name: str, kind: int, whole: Operator, by_dim: Operator, *others: Operator, defaults: tuple = ()
) -> None:
    """Export `name` for the operator that reduces everything and the other overloads of the name.

    `by_dim` has a plain case too if it reduces a list of dims and takes `keepdim` and `dtype`.
    """
    operators = (whole, *others, by_dim)  # a tensor of one integer is another operand before it is a dim
    doc = f"{name}: " + "; ".join(f"`{o.text}`" for o in operators)
    source = _REDUCTION.replace("                BY_DIM\n", _BY_DIM[1:] if "ScalarType? dtype" in by_dim.text else "")
    for home in ("torch", "Tensor"):
        names = {"whole": whole, "by_dim": by_dim, "operators": operators, "KIND": kind, "DEFAULTS": defaults}
        function = _compiled(source, name, doc, METHOD=home == "Tensor", **names)
        function.operators = operators
        export(home, name, function)


def _general(body):
    """The general path of a function whose plain case is written out: overrides first, then `body`."""

    def general(function, args: tuple, kwargs: dict):
        if ambient.mode & 2 or any_overridden(args) or kwargs and any_overridden(kwargs.values()):
            return call_overridden(function, args, kwargs)
        return body(*args, **kwargs)

    return general


def quick_softmax(homes: tuple[str, ...], name: str, logarithm: bool, op: Operator, body) -> None:
    """Export softmax or log_softmax: `op` is recorded in the plain case, `body` called in any other."""
    names = {"op": op, "general": _general(body), "LOGARITHM": logarithm, "DIM": UNSET, "UNSET": UNSET}
    for home in homes:
        export(home, name, _compiled(_SOFTMAX, name, body.__doc__, **names))


def quick_layer_norm(homes: tuple[str, ...], op: Operator, body) -> None:
    """Export layer_norm."""
    ones = tuple((1,) * k for k in range(5))
    names = {"op": op, "general": _general(body), "SHAPES": frozenset((tuple, list)), "ONES": ones, "UNSET": UNSET}
    for home in homes:
        export(home, "layer_norm", _compiled(_LAYER_NORM, "layer_norm", body.__doc__, **names))
