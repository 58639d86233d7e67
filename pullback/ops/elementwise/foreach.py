"""Operators on lists of tensors, `torch._foreach_add` and its kin: each is its element-wise operator in a loop.

In: lists of tensors, and a second operand that is a number, a list of numbers, a tensor or a list of tensors. Out: a
tuple of results; or, for a name that ends in an underscore, the very list that was given, its tensors changed. What
always holds: gradients, meta and tracing are those of the operators in the loop; a call that returns its results is
recorded as one node.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core import dtype as dtypes
from ...core import modes
from ...core.modes import ambient
from ...core.node import requires_grad
from ...core.tensor import FAKE, META, PLAIN, Tensor
from ..eager.functions import choose
from ..family.base import composite
from ..system.inplace import check_writable
from ..system.operator import Operator, exports, key_of
from ..system.overloads import overloaded, publish, resolve
from .arithmetic import check_addcdiv
from .foreach_nodes import join

UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma",
    "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
    "tan", "tanh", "trunc",
)  # fmt: skip
# Name, the operator that does it, whether a lone tensor may be the other operand, whether there is `alpha`.
BINARY = (
    ("add", "add", True, True), ("sub", "sub", False, True), ("mul", "mul", True, False), ("div", "div", True, False),
    ("maximum", "clamp_min", False, False), ("minimum", "clamp_max", False, False),
    ("clamp_min", "clamp_min", False, False), ("clamp_max", "clamp_max", False, False), ("pow", "pow", False, False),
)  # fmt: skip
TERNARY = ("addcmul", "addcdiv")


def _call(name: str, inplace: bool) -> Callable:
    """The operator's function, or the method that writes; looked up when it is called, as modules load in any order."""
    if inplace:
        return lambda t, *args, **kwargs: exports["Tensor"][f"{name}_"](t, *args, **kwargs)
    return lambda t, *args, **kwargs: exports["torch"][name](t, *args, **kwargs)


# ---- checks
def _check(tensors: tuple, *lists: tuple) -> None:
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for other in lists:
        if len(other) != len(tensors):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {len(tensors)} and {len(other)}"
            )


def _check_scalars(tensors: tuple, scalars: tuple) -> None:
    if len(scalars) != len(tensors):
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def _check_lone(other: Tensor) -> None:
    if other.ndim or other.numel() != 1:
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {other.ndim} dimensions and {other.numel()} elements."
        )


def _unpacked(tensors: tuple, scalars: Tensor) -> tuple:
    """A tensor of numbers as so many 0-d tensors."""
    if scalars.ndim != 1:
        raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {scalars.ndim} instead.")
    if scalars.numel() != len(tensors):
        raise RuntimeError(
            f"Expected length of scalars to match input of length {len(tensors)} but got {scalars.numel()} instead."
        )
    if not scalars.resolve_conj().resolve_neg().is_contiguous():
        raise RuntimeError("Expected scalars to be contiguous.")
    return scalars.unbind(0)


def _are_numbers(scalars: Tensor) -> bool:
    """Whether a tensor can be read as numbers: neither traced nor differentiated, nor without data."""
    followed = ambient.mode & (modes.CAPTURE | modes.TRANSFORM | modes.FORWARD | modes.DISPATCH)
    return not followed and not scalars._keys & (FAKE | META) and not requires_grad(scalars)


# ---- declarations
def _declare(name: str, overload: str, arguments: str, body: Callable, inplace: bool) -> Operator:
    """One overload, functional or in place."""
    head = f"_foreach_{name}{'_' * inplace}" + (f".{overload}" if overload else "")
    first = "Tensor(a!)[] self" if inplace else "Tensor[] self"
    schema = f"{head}({first}{arguments}) -> {'()' if inplace else 'Tensor[]'}"
    if inplace:
        chosen = _refusing_first(body)
    else:
        chosen = body if (name, overload) in _SEVERAL else _recorded(name, overload, body)
    return composite(schema, function=False, method=False, out=False)(chosen)


def _refusing_first(body: Callable) -> Callable:
    """The body of a write, which refuses before any of the tensors is written; it gives nothing."""

    def checked(self, *args):
        if ambient.mode & modes.GRAD and not ambient.mode & modes.BELOW_AUTOGRAD:
            for t, *others in zip(self, *[a for a in args if isinstance(a, tuple)], strict=False):
                if any(isinstance(v, Tensor) and requires_grad(v) for v in (t, *others)):
                    check_writable(t)
        body(self, *args)

    return checked


_SEVERAL = {("addcmul", "Tensor"), ("addcdiv", "Tensor"), ("powsum", "Scalar")}  # several operators for each element


def _recorded(name: str, overload: str, body: Callable) -> Callable:
    """The body, its results made outputs of one node."""
    names = body.__code__.co_varnames[1 : body.__code__.co_argcount]

    def joined(self, *args):
        given = {n: a for n, a in zip(names, args, strict=False) if not _tensors(a)}
        return join(name, overload, body(self, *args), given)

    return joined


def _tensors(value) -> bool:
    return isinstance(value, Tensor) or isinstance(value, (tuple, list)) and any(isinstance(v, Tensor) for v in value)


def _publish(name: str, operators: list[Operator], inplace: bool) -> None:
    if not inplace:
        overloaded(f"_foreach_{name}", *operators, homes=("torch",))
        return

    def function(*args, **kwargs):
        if quick is None or kwargs or not _write_all(quick, args):
            resolve(function, tuple(operators), args, kwargs)
        return args[0] if args else kwargs["self"]

    def allow(allowed: bool) -> None:
        nonlocal quick
        quick = ufunc if allowed else None

    ufunc = quick = _ROUNDED_ONCE.get(name)
    if ufunc is not None:
        own = (f"{name}_.default",) if ufunc.nin == 1 else (f"{name}_.Tensor", f"{name}_.Scalar")
        choose(allow, *(key_of(op) for op in operators if op.overload != "Tensor"), *own)
    function.__name__ = function.__qualname__ = f"_foreach_{name}_"
    function.__doc__ = f"`_foreach_{name}` in place."
    publish(function, f"_foreach_{name}_", homes=("torch",))


# What every way to compute rounds alike, so that the array library may write it.
_ROUNDED_ONCE = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "sqrt": np.sqrt,
    "neg": np.negative,
    "abs": np.abs,
}
_FLOATS = (dtypes.float32, dtypes.float64)
_MOST_WRITTEN = 1 << 13  # elements of one tensor; more are worth threads


def _write_all(ufunc: np.ufunc, args: tuple) -> bool:
    """Write plain tensors of few elements where they lie, without a call for each: alone, with a number, or with tensors of their shapes; False, and
    nothing is written, where it takes more."""
    if ambient.mode >= 2 or not 0 < len(args) == ufunc.nin or args[0].__class__ not in (list, tuple):
        return False
    mine, *others = args
    alone = not others or ufunc is not np.true_divide and others[0].__class__ is float
    theirs = mine if alone else others[0]
    if theirs.__class__ not in (list, tuple) or not mine or len(theirs) != len(mine):
        return False
    for t, o in zip(mine, theirs, strict=True):
        if not (
            _is_own(t)
            and t._memory is None
            and (o is t or _is_own(o))
            and t.dtype is o.dtype
            and t._array.shape == o._array.shape
        ):
            return False
    for t, o in zip(mine, theirs, strict=True):
        a = t._array
        given = (a,) if not others else (a, a.dtype.type(others[0])) if alone else (a, o._array)
        ufunc(*given, out=a)
        t._counter[0] += 1
    return True


def _is_own(t) -> bool:
    """Whether a value is a plain tensor of few floating-point elements, of which no history is wanted."""
    known = t.__class__ in PLAIN and not t._keys and t.dtype in _FLOATS and t._array.size <= _MOST_WRITTEN
    return known and (t._autograd is None or not ambient.mode)


def _unary(name: str, inplace: bool) -> list[Operator]:
    run = _call(name, inplace)

    def body(self):
        _check(self)
        return tuple(run(t) for t in self)

    return [_declare(name, "", "", body, inplace)]


def _binary(name: str, operator_name: str, lone: bool, scaled: bool, inplace: bool) -> list[Operator]:
    run = _call(operator_name, inplace)
    number, numbers, tensors = ("exponent",) * 3 if name == "pow" else ("scalar", "scalars", "other")

    def with_list(self, other, alpha=1):
        _check(self, other)
        return tuple(run(t, o, alpha=alpha) if scaled else run(t, o) for t, o in zip(self, other, strict=True))

    def with_number(self, scalar):
        _check(self)
        return tuple(run(t, scalar) for t in self)

    def with_numbers(self, scalars):
        _check(self)
        _check_scalars(self, scalars)
        return tuple(run(t, s) for t, s in zip(self, scalars, strict=True))

    def with_tensor(self, other, alpha=1):
        _check(self)
        _check_lone(other)
        return tuple(run(t, other, alpha=alpha) if name == "add" else run(t, other) for t in self)

    alpha = ", *, Scalar alpha=1"
    result = [
        _declare(name, "Scalar", f", Scalar {number}", with_number, inplace),
        _declare(name, "ScalarList", f", Scalar[] {numbers}", with_numbers, inplace),
        _declare(name, "List", f", Tensor[] {tensors}{alpha * scaled}", with_list, inplace),
    ]
    if lone:
        result.append(_declare(name, "Tensor", f", Tensor other{alpha * (name == 'add')}", with_tensor, inplace))
    return result


def _ternary(name: str, inplace: bool) -> list[Operator]:
    run, add = _call(name, inplace), _call("add", inplace)

    def each(self, tensor1, tensor2, values):
        _check(self, tensor1, tensor2)
        _check_scalars(self, values)
        return tuple(run(t, a, b, value=v) for t, a, b, v in zip(self, tensor1, tensor2, values, strict=True))

    def with_number(self, tensor1, tensor2, value=1):
        return each(self, tensor1, tensor2, (value,) * len(self))

    def with_tensor(self, tensor1, tensor2, scalars):
        _check(self, tensor1, tensor2)
        values = _unpacked(self, scalars)
        if _are_numbers(scalars):
            return each(self, tensor1, tensor2, tuple(scalars.tolist()))
        if name == "addcdiv":
            for t, a, b in zip(self, tensor1, tensor2, strict=True):
                check_addcdiv(t, a, b)
        scaled = [a * (v if a.is_floating_point() else v.to(a.dtype)) for a, v in zip(tensor1, values, strict=True)]
        pairs = [a * b if name == "addcmul" else a / b for a, b in zip(scaled, tensor2, strict=True)]
        return tuple(add(t, p) for t, p in zip(self, pairs, strict=True))

    pair = ", Tensor[] tensor1, Tensor[] tensor2"
    return [
        _declare(name, "Scalar", f"{pair}, Scalar value=1", with_number, inplace),
        _declare(name, "ScalarList", f"{pair}, Scalar[] scalars", each, inplace),
        _declare(name, "Tensor", f"{pair}, Tensor scalars", with_tensor, inplace),
    ]


def _lerp(inplace: bool) -> list[Operator]:
    run = _call("lerp", inplace)

    def with_list(self, tensors1, weights):
        _check(self, tensors1, weights)
        return tuple(run(t, e, w) for t, e, w in zip(self, tensors1, weights, strict=True))

    def with_number(self, tensors1, weight):
        return with_list(self, tensors1, (weight,) * len(self))

    def with_numbers(self, tensors1, weight):
        _check_scalars(self, weight)
        return with_list(self, tensors1, weight)

    return [
        _declare("lerp", "Scalar", ", Tensor[] tensors1, Scalar weight", with_number, inplace),
        _declare("lerp", "ScalarList", ", Tensor[] tensors1, Scalar[] weight", with_numbers, inplace),
        _declare("lerp", "List", ", Tensor[] tensors1, Tensor[] weights", with_list, inplace),
    ]


# ---- the table
for _inplace in (False, True):
    for _name in UNARY:
        _publish(_name, _unary(_name, _inplace), _inplace)
    for _row in BINARY:
        _overloads = _binary(*_row, _inplace)
        if _row[0] == "pow" and not _inplace:
            _overloads.append(
                composite(
                    "_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]",
                    function=False,
                    method=False,
                    out=False,
                )(
                    _recorded(
                        "pow",
                        "ScalarAndTensor",
                        lambda self, exponent: tuple(exports["torch"]["pow"](self, e) for e in exponent),
                    )
                )
            )
        _publish(_row[0], _overloads, _inplace)
    for _name in TERNARY:
        _publish(_name, _ternary(_name, _inplace), _inplace)
    _publish("lerp", _lerp(_inplace), _inplace)


# ---- the rest
def _copy(self, src, non_blocking=False):
    _check(self, src)
    return tuple(t.copy_(s, non_blocking) for t, s in zip(self, src, strict=True))


def _norm(self, ord=2, dtype=None):
    _check(self)
    return tuple(exports["linalg"]["vector_norm"](t, ord, dtype=dtype) for t in self)


def _powsum(self, ord=2, dtype=None):
    _check(self)
    return tuple(t.abs().pow(ord).sum(dtype=dtype) for t in self)


def _clone(self, memory_format=None):
    keywords = {} if memory_format is None else {"memory_format": memory_format}
    return tuple(t.clone(**keywords) for t in self)


def _mm(self, mat2):
    _check(self, mat2)
    return tuple(t.mm(m) for t, m in zip(self, mat2, strict=True))


_publish("copy", [_declare("copy", "", ", Tensor[] src, bool non_blocking=False", _copy, True)], True)
_publish("zero", [_declare("zero", "", "", lambda self: tuple(t.zero_() for t in self), True)], True)
for _name, _overload, _arguments, _body in (
    ("clone", "", ", *, MemoryFormat? memory_format=None", _clone),
    ("max", "", "", lambda self: tuple(t.max() for t in self)),
    ("mm", "", ", Tensor[] mat2", _mm),
    ("norm", "Scalar", ", Scalar ord=2, ScalarType? dtype=None", _norm),
    ("powsum", "Scalar", ", Scalar ord=2, ScalarType? dtype=None", _powsum),
):
    _publish(_name, [_declare(_name, _overload, _arguments, _body, False)], False)
