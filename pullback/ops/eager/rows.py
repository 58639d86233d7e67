"""Public functions whose plain case is one native kernel: sum, mean, max, min, softmax, log_softmax, layer_norm.

Where every tensor is a plain float tensor and nothing listens, the kernel writes into a fresh array and the result is
recorded if a gradient is wanted; anything else takes the general path. Without the compiled kernels, NumPy does the
reductions and the general path the rest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core import dtype as dtypes
from ...core import native
from ...core.arrays import LARGE
from ...core.layers import above
from ...core.modes import ambient
from ...core.tensor import CUDA, wrap
from ...core.threads import thread_count
from ..system.operator import Operator, export, key_of
from ..system.overloads import resolve
from ..system.overrides import any_overridden, call_overridden
from ..system.spelling import by_own_names, speller
from .functions import generate
from .signature import describe
from .text import all_of, block, finish, is_plain

__all__ = ["export_layer_norm", "export_reduction", "export_softmax"]

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
    "SHARED": native.SHARED, "LIMIT": 1 << 62 if native.available else LARGE, "threads": thread_count, "empty": np.empty,
    "dense": native.dense, "float32": dtypes.float32, "float64": dtypes.float64, "resolve": resolve, "wrap": wrap, "above": above, "CUDA": CUDA,
    "reduce": getattr(native._native, "reduce", _numpy_reduce),
    "reduce_dim": getattr(native._native, "reduce", _absent),
    "rows_softmax": getattr(native._native, "softmax", _absent),
    "rows_layer_norm": getattr(native._native, "layer_norm", _absent),
}  # fmt: skip
_FLOAT = "(d is float32 or d is float64)"
_THREADS = "1 if {} < LARGE else threads()"
_ROW_THREADS = "1 if a.size < SHARED else threads()"


def _source(head: str, plain: list[str], tail: str) -> str:
    return "\n".join(block(head, *plain, tail))


# ---- reductions
def _everything() -> list[str]:
    return block(
        "if not args and not kwargs:",
        "r = empty((), a.dtype)",
        *block(
            f"if reduce(a, r, KIND, n, 1, {_THREADS.format('n')}):",
            *finish("d", ["input"], "whole.record(t, input, *DEFAULTS)"),
        ),
    )


def _one_dimension() -> list[str]:
    """One dimension of a row-major array: its stride says how many elements stand inside it."""
    run = f"if reduce_dim(a, r, KIND, shape[dim], a.strides[dim] // a.itemsize, {_THREADS.format('n')}):"
    return block(
        "elif len(args) + len(kwargs) == 1:",
        'dim = args[0] if args else kwargs.get("dim")',
        "shape = a.shape",
        "k = len(shape)",
        *block(
            "if dim.__class__ is int and -k <= dim < k:",
            *block("if dim < 0:", "dim += k"),
            "r = empty(shape[:dim] + shape[dim + 1 :], a.dtype)",
            *block(run, *finish("d", ["input"], "by_dim.record(t, input, (dim,), False, None)")),
        ),
    )


def export_reduction(
    name: str, kind: int, whole: Operator, by_dim: Operator, *others: Operator, defaults: tuple = ()
) -> None:
    """Export `name` for the operator that reduces everything and the other overloads of the name.

    `by_dim` has a plain case too if it reduces a list of dims and takes `keepdim` and `dtype`.
    """
    operators = (whole, *others, by_dim)  # a tensor of one integer is another operand before it is a dim
    cases = [*_everything(), *(_one_dimension() if "ScalarType? dtype" in by_dim.text else [])]
    sized = block("if 0 < n < LIMIT:", *cases)
    floats = block(f"if mode < 2 and {_FLOAT}:", "a = input._array", "n = a.size", *sized)
    lines = block(f"if {is_plain(['input'])}:", "mode = ambient.mode", "d = input.dtype", *floats)
    names = {"whole": whole, "by_dim": by_dim, "operators": operators, "KIND": kind, "DEFAULTS": defaults}
    for home in ("torch", "Tensor"):
        tail = f"return resolve(function, operators, args if input is UNSET else (input, *args), kwargs, {home == 'Tensor'})"

        def write(plain: bool, tail: str = tail) -> tuple[str, dict]:
            return _source("def wrapper(input=UNSET, *args, **kwargs):", lines if plain else [], tail), _NAMES | names

        function = generate(name, f"{home}.{name}", lambda: tuple([key_of(op) for op in operators]), write)
        function.operators = operators  # type: ignore[attr-defined]
        export(home, name, describe(function, operators))


# ---- rows
def _or_overridden(body: Callable) -> Callable:
    """The general path of a function whose plain case is written out: overrides first, then `body`."""

    foreign, parameters = speller(body)

    def general(function, args: tuple, kwargs: dict):
        if kwargs and not foreign.isdisjoint(kwargs):
            kwargs = by_own_names(kwargs, parameters)
        if ambient.mode & 2 or any_overridden(args) or kwargs and any_overridden(kwargs.values()):
            return call_overridden(function, args, kwargs)
        return body(*args, **kwargs)

    return general


def _softmax_lines() -> list[str]:
    alone = "(not kwargs or len(kwargs) == 1 and '_stacklevel' in kwargs)"  # modules say where a warning would point to
    plain = is_plain(["input"], "dim.__class__ is int", "not args", alone)
    run = f"if rows_softmax(a, r, LOGARITHM, a.shape[dim], inner, {_ROW_THREADS}):"
    last = [
        "inner = 0",
        *block("if n and (dim == -1 or dim == n - 1):", "inner = 1"),
        *block("elif -n <= dim < n and a.size and a.flags.c_contiguous:", "inner = a.strides[dim] // a.itemsize"),
        *block(
            "if inner:",
            "r = empty(a.shape, a.dtype)",
            *block(run, *finish("d", ["input"], "op.record(t, input, dim, False)")),
        ),
    ]
    rows = block("if 1 < n < 4 and not a.flags.c_contiguous:", "a = dense(a)")
    floats = block(f"if mode < 2 and {_FLOAT}:", "a = input._array", "n = a.ndim", *rows, *last)
    host = block(f"if {plain}:", "mode = ambient.mode", "d = input.dtype", *floats)
    return host + _device_lines("dim.__class__ is int and not args and not kwargs", "(input, dim, False)", "t")


def _device_lines(fits: str, arguments: str, result: str) -> list[str]:
    """A plain tensor of a CUDA device: the operator itself, where the call is nothing but its kernel."""
    call = f"t = above.plain_on_device(op, {arguments})"
    return block(
        f"elif input.__class__ in PLAIN and input._keys == CUDA and {fits}:",
        call,
        *block("if t is not None:", f"return {result}"),
    )


def _layer_norm_lines() -> list[str]:
    plain = is_plain(["input"], "normalized_shape.__class__ in SHAPES", "eps.__class__ is float")
    fits = all_of(
        f"mode < 2 and {_FLOAT}",
        "k and rows == tuple(normalized_shape)",
        "(w is None or w is not UNSET and w.shape == rows)",
        "(b is None or b is not UNSET and b.shape == rows)",
        "not args and not kwargs",
    )
    wanted = "input._autograd is not None or weight is not None and weight._autograd is not None"
    run = f"if rows_layer_norm(a, r, w, b, mean, rstd, eps, {_ROW_THREADS}):"
    recorded = [
        "made = (make_tensor(r, d), wrap(mean, d), wrap(rstd, d))",
        "return op.record(made, input, tuple(normalized_shape), weight, bias, eps)[0]",
    ]
    host = block(
        f"if {plain}:",
        "mode = ambient.mode",
        "d = input.dtype",
        "a = input._array",
        "k = len(normalized_shape)",
        "shape = a.shape",
        "rows = shape[-k:]",
        "w = b = None",
        *block(
            "if weight is not None:", f"w = weight._array if {is_plain(['weight'], 'weight.dtype is d')} else UNSET"
        ),
        *block("if bias is not None:", f"b = bias._array if {is_plain(['bias'], 'bias.dtype is d')} else UNSET"),
        *block(
            f"if {fits}:",
            "lead = shape[:-k] + (ONES[k] if k < 5 else (1,) * k)",
            "r = empty(shape, a.dtype)",
            "mean = empty(lead, a.dtype)",
            "rstd = empty(lead, a.dtype)",
            *block(
                run,
                *block(f"if mode and ({wanted} or bias is not None and bias._autograd is not None):", *recorded),
                "return make_tensor(r, d)",
            ),
        ),
    )
    return host + _device_lines("not args and not kwargs", "(input, normalized_shape, weight, bias, eps)", "t[0]")


def _export_rows(homes: tuple[str, ...], name: str, op: Operator, body: Callable, head: str, lines, tail: str, **names):
    """Export a function over rows: `op` is recorded in the plain case, `body` called in any other."""
    names |= {"op": op, "otherwise": _or_overridden(body)}
    for home in homes:

        def write(plain: bool) -> tuple[str, dict]:
            return _source(head, lines() if plain else [], tail), _NAMES | names

        function = generate(name, f"{home}.{name}", lambda: (key_of(op),), write)
        function.__wrapped__ = body  # type: ignore[attr-defined]
        function.__doc__ = body.__doc__
        export(home, name, function)


def export_softmax(homes: tuple[str, ...], name: str, logarithm: bool, op: Operator, body: Callable) -> None:
    """Export softmax or log_softmax."""
    head = "def wrapper(input=UNSET, dim=UNSET, *args, **kwargs):"
    tail = "return otherwise(function, (*[v for v in (input, dim) if v is not UNSET], *args), kwargs)"
    _export_rows(homes, name, op, body, head, _softmax_lines, tail, LOGARITHM=logarithm)


def export_layer_norm(homes: tuple[str, ...], op: Operator, body: Callable) -> None:
    """Export layer_norm."""
    head = "def wrapper(input, normalized_shape, weight=None, bias=None, eps=1e-05, *args, **kwargs):"
    tail = "return otherwise(function, (input, normalized_shape, weight, bias, eps, *args), kwargs)"
    names = {"SHAPES": frozenset((tuple, list)), "ONES": tuple((1,) * k for k in range(5))}
    _export_rows(homes, "layer_norm", op, body, head, _layer_norm_lines, tail, **names)
