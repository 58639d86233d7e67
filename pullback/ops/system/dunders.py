"""Python's operators on tensors: `x + y`, `x @ y`, `~x`, `x in t`, iteration, attributes such as `x.T`.

Binary operators call the public functions and answer NotImplemented for operands they do not know, so that Python can
ask the other side or raise its own TypeError.
"""

from __future__ import annotations

import inspect
from contextlib import suppress

import numpy as np

from ...core import modes
from ...core.layers import above, extend
from ...core.modes import ambient
from ...core.symbolic import symbolic
from ...core.tensor import CUDA, Tensor
from ..eager.functions import generate
from ..eager.text import Call, block
from .calls import bypassed
from .operator import exports
from .overrides import NoImplementation, any_overridden, call_overridden

_OPERANDS = (Tensor, int, float, complex, bool, np.generic)


_OPERANDS_SIGNATURE = inspect.signature(lambda self, other, /: None)


def _known(other) -> bool:
    return (
        isinstance(other, _OPERANDS)
        or getattr(other, "is_symbolic", False)
        or hasattr(type(other), "__torch_function__")
    )


def _binary(dunder: str, name: str) -> None:
    function = exports["torch"].get(name) or exports["Tensor"].get(name)
    if function is None:
        return

    op = getattr(function, "operator", None)
    function, seen = _method(name, function), dunder in _SEEN_THEMSELVES
    whole = op is not None and not getattr(op.declared, "overloads", None)  # numbers are no matter of another operator
    rest = tuple([a.default for a in op.schema.arguments[2:]]) if whole else None

    def general(self, other):
        if (
            rest is not None
            and self._keys == CUDA
            and (result := above.plain_on_device(op, (self, other, *rest))) is not None
        ):
            return result
        if other.__class__ is Tensor or _known(other):
            try:
                if seen and _is_overridden(self, other):
                    return call_overridden(getattr(Tensor, dunder), (self, other), {})
                return function(self, other)
            except NoImplementation:  # Python asks the other operand
                return NotImplemented
        if isinstance(other, np.ndarray):
            return function(self, _from_array(other))
        return NotImplemented

    _hang(dunder, general if op is None else quick_method(dunder, op, general, function))


def _hang(dunder: str, method) -> None:
    method.__name__, method.__qualname__ = dunder, f"Tensor.{dunder}"
    setattr(Tensor, dunder, method)


def _method(name: str, function):
    """The method that is an operator of Python's: by it classes that override functions know the call."""
    return exports["Tensor"].get(_METHODS.get(name, name), function)


_METHODS = {"true_divide": "div"}


def quick_method(dunder: str, op, general, function):
    """A method with the operator's own plain case in it, so that `x + y` is one call; for the rest, `general`."""

    def write(plain: bool) -> tuple[str, dict]:
        arguments = op.schema.arguments
        values = ["input" if i == 0 else a.name for i, a in enumerate(arguments)]
        quick = plain and len(values) >= 2 and all(a.has_default for a in arguments[2:])
        call = Call(op, False, values, False, frozenset(values[2:]))
        lines = op.family.plain_lines(call) + op.family.choice_lines(call) if quick else []
        names = {**op.family.plain_names(op), "op": op, "otherwise": general}
        if dunder not in _SEEN_THEMSELVES:
            names["function"] = function
        names.update({a.name: a.default for a in arguments[2:]})
        second = values[1] if quick else "other"
        tail = f"return otherwise(input, {second})"
        return "\n".join(block(f"def wrapper(input, {second}):", *lines, tail)), names

    method = generate(dunder, f"Tensor.{dunder}", lambda: bypassed(op), write)
    method.__signature__ = _OPERANDS_SIGNATURE  # type: ignore[attr-defined]
    method.__doc__ = f"Python's operator: `{op.text}`"
    return method


def _reflected(dunder: str, name: str) -> None:
    function = exports["torch"].get(name) or exports["Tensor"].get(name)
    if function is None:
        return

    turned, seen = _TURNED.get(name), dunder in _SEEN_THEMSELVES

    def method(self, other):
        if not _known(other):
            return NotImplemented
        if seen and _is_overridden(self, other):
            try:
                return call_overridden(method, (self, other), {})
            except NoImplementation:
                return NotImplemented
        return function(other, self) if turned is None else turned(self, other)

    _hang(dunder, method)


_PLAIN_OPERANDS = frozenset((Tensor, int, float, bool))


def _is_overridden(first, second) -> bool:
    if ambient.mode & modes.FUNCTION:
        return True
    if first.__class__ is Tensor and second.__class__ in _PLAIN_OPERANDS:
        return False
    return any_overridden((first, second))


# Classes that override functions are offered these by their own names; the others as the method that they are.
_SEEN_THEMSELVES = {
    *(f"__r{name}__" for name in ("sub", "truediv", "floordiv", "mod", "pow", "lshift", "rshift")),
    *(f"__{name}__" for name in ("pow", "floordiv", "and", "or", "xor", "lshift", "rshift", "eq")),
    *(f"__i{name}__" for name in ("pow", "and", "or", "xor", "lshift", "rshift")),
}

# `other OP self` by an operator whose first operand is the tensor: the way that is quick, and that PyTorch goes.
_TURNED = {
    "add": lambda self, other: self.__add__(other),
    "mul": lambda self, other: self.__mul__(other),
    "sub": lambda self, other: exports["torch"]["rsub"](self, other),
    "true_divide": lambda self, other: self.reciprocal() * other,
    "bitwise_and": lambda self, other: exports["Tensor"]["bitwise_and"](self, other),
    "bitwise_or": lambda self, other: exports["Tensor"]["bitwise_or"](self, other),
    "bitwise_xor": lambda self, other: exports["Tensor"]["bitwise_xor"](self, other),
}


def _from_array(array):
    return exports["torch"]["from_numpy"](array)


def _offered(dunder: str, method, function):
    """`function`, to which classes that override functions are asked by the operator's name or by the function's; where none of them
    has an answer, Python asks the other operand."""
    seen = dunder in _SEEN_THEMSELVES

    def call(self, other):
        try:
            if seen and _is_overridden(self, other):
                return call_overridden(method, (self, other), {})
            return function(self, other)
        except NoImplementation:
            return NotImplemented

    return call


def _inplace(dunder: str, name: str) -> None:
    function = exports["Tensor"].get(name)
    if function is None:
        return

    def method(self, other):
        return offered(self, other) if _known(other) else NotImplemented

    offered = _offered(dunder, method, function)
    _hang(dunder, method)


def _equality(dunder: str, name: str) -> None:
    function = exports["Tensor"].get(name)
    if function is None:
        return

    def method(self, other):
        if self.__class__ is Tensor and other.__class__ in _PLAIN_OPERANDS and not ambient.mode & modes.FUNCTION:
            return function(self, other)
        if _known(other):
            return offered(self, other)
        return function(self, _from_array(other)) if isinstance(other, np.ndarray) else NotImplemented

    offered = _offered(dunder, method, function)
    _hang(dunder, method)


_ARITHMETIC = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "true_divide", "floordiv": "floor_divide", "mod": "remainder", "pow": "pow",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip


def install() -> None:
    """Hang Python's operators on Tensor; called once all operators are declared."""
    for dunder, name in _ARITHMETIC.items():
        _binary(f"__{dunder}__", name)
        _reflected(f"__r{dunder}__", name)
        _inplace(f"__i{dunder}__", f"{name}_" if name != "true_divide" else "div_")
    for dunder, name in {"lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}.items():
        _binary(f"__{dunder}__", name)
    _equality("__eq__", "eq")
    _equality("__ne__", "ne")
    for dunder, name in {"__neg__": "neg", "__abs__": "abs", "__pos__": "positive"}.items():
        if name in exports["torch"]:
            setattr(Tensor, dunder, exports["torch"][name])
    result = Tensor.__dict__
    extend(
        Tensor, __name__, __rdiv__=result["__rtruediv__"], __div__=result["__truediv__"], __idiv__=result["__itruediv__"], __matmul__=_matmul,
        __rmatmul__=_reflected_matmul, __invert__=_invert, __contains__=_contains, __iter__=_iterate,
        __reversed__=lambda self: self.flip(0) if self.ndim else self,
    )  # fmt: skip


def _reflected_matmul(self, other):
    return exports["torch"]["matmul"](other, self) if isinstance(other, Tensor) else NotImplemented


def _matmul(self, other):
    if isinstance(other, Tensor) or hasattr(type(other), "__torch_function__"):
        with suppress(NoImplementation):
            return exports["Tensor"]["matmul"](self, other)
    return NotImplemented


def _invert(self):
    if self.dtype.is_floating_point or self.dtype.is_complex:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return exports["torch"]["bitwise_not"](self)


def _contains(self, element) -> bool:
    if isinstance(element, (Tensor, int, float, bool, complex)) or symbolic(element):
        return bool((element == self).any().item())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


def _iterate(self):
    if not self._array.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))
