"""Symbolic numbers: `SymInt`, `SymFloat`, `SymBool`.

What comes in: an expression and the `ShapeEnv` whose symbols it has. What goes out: objects that calculate like numbers and
remember how they were made. What always holds: a result that is a constant is a plain Python number; wherever Python needs a
definite number or truth (`int`, `bool`, `hash`, an index), the environment decides and records the guard, or says why it cannot.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable

from ...core.layers import above
from ...ops.system.calls import INTS
from . import functions as f
from .expressions import Apply, Expr, add, differences, multiply, products, subtract, sums
from .node import SymNode
from .relations import compare, comparisons, logic, negate, truth

FRACTIONS = (f.int_truediv, f.float_truediv, f.to_float)


class SymNumber:
    """What the three kinds share. `node` knows the expression and the environment."""

    __slots__ = ("node", "__weakref__")
    is_symbolic = True
    symbolic_type: type = int
    __array_ufunc__ = None  # NumPy's scalars then leave arithmetic to the methods here

    def __init__(self, node: SymNode):
        self.node = node

    def __array__(self, *args, **kwargs):
        raise TypeError(
            f"cannot make an array of the symbolic number {self}: int() of it fixes its value, with a guard"
        )

    def __repr__(self) -> str:
        return str(self.node.expr)

    def __str__(self) -> str:
        return str(self.node.expr)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __hash__(self) -> int:
        return hash(self.node.guard())

    def __bool__(self) -> bool:
        return self.node.shape_env.decide(truth(self.node.expr))

    def __int__(self) -> int:
        return int(self.node.guard())

    def __float__(self) -> float:
        return float(self.node.guard())

    def __complex__(self) -> complex:
        return complex(self.node.guard())

    def concrete(self):
        """A definite number, with a guard."""
        return self.node.guard()

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError(f"cannot pickle {type(self).__name__} {self}: its symbols belong to one ShapeEnv")

    def _sympy_(self):
        return self.node.expr

    def __sym_not__(self):
        return self.node.wrap(negate(truth(self.node.expr)))

    def __sym_float__(self):
        return self.node.wrap(_to_float(self.node.expr))

    def __sym_int__(self):
        return self.node.wrap(f.trunc(_number(self.node.expr)))


def operand(value):
    """The expression of a number: (expression, kind), or None where it is no number."""
    t = type(value)
    if t is int or t is float:
        return value
    if isinstance(value, SymNumber):
        return value.node.expr
    if t is bool:
        return int(value)
    if isinstance(value, (int, float)):
        return int(value) if isinstance(value, int) else float(value)
    if hasattr(value, "dtype") and hasattr(value, "item") and getattr(value, "shape", None) == ():
        return operand(value.item()) if type(value).__module__ == "numpy" else None
    return None


def _number(expr):
    """A question used as a number counts 0 or 1."""
    if isinstance(expr, bool):
        return int(expr)
    return f.bool_to_int(expr) if isinstance(expr, Expr) and expr.kind is bool else expr


def _is_float(expr) -> bool:
    return expr.__class__ is float or isinstance(expr, Expr) and expr.kind is float


def _to_float(expr):
    return f.to_float(_number(expr))


def _divides(operation: Callable) -> Callable:
    """The check of a division: what it divides by is not 0, with a guard where only the example says so."""

    def check(env, a, b) -> None:
        while isinstance(b, Apply) and b.function in FRACTIONS:  # which is 0 where what it divides is
            b = b.args[0]
        is_zero = env.hint(b) is not None and env.decide(compare("==", b, 0)) if isinstance(b, Expr) else b == 0
        if is_zero:
            operation(1.0 if _is_float(a) else 1, 0.0 if _is_float(b) else 0)  # which raises what Python does

    return check


def _binary(of_ints: Callable, of_floats: Callable, check: Callable | None = None):
    """A method and its reflected one, by what calculates the expressions; `check` is asked first."""

    def calculate(env, a, b):
        a, b = _number(a), _number(b)
        if check is not None:
            check(env, a, b)
        if _is_float(a) or _is_float(b):
            return of_floats(_to_float(a), _to_float(b))
        return of_ints(a, b)

    def forward(self, other):
        b = operand(other)
        return NotImplemented if b is None else self.node.wrap(calculate(self.node.shape_env, self.node.expr, b))

    def reflected(self, other):
        b = operand(other)
        return NotImplemented if b is None else self.node.wrap(calculate(self.node.shape_env, b, self.node.expr))

    return forward, reflected


def _comparison(op: str):
    def method(self, other):
        node = self.node
        b = other if other.__class__ is int else operand(other)
        if b is None:
            return NotImplemented
        a = node.current if node.version == node.shape_env.version else node.expr
        result = node.shape_env.wrapped.get(comparisons.get((op, a, b)))
        return result if result is not None else node.wrap(compare(op, _number(a), _number(b)))

    return method


def _floordiv_floats(a, b):
    return _to_float(f.floor(f.float_truediv(a, b)))


def _power_of_ints(a, b):
    if b.__class__ is int and b < 0:
        return f.float_pow(_to_float(a), float(b))
    return f.power(a, b)


def _shift_left(a, b):
    return multiply(a, f.power(2, b))


def _shift_right(a, b):
    return f.floordiv(a, f.power(2, b))


def _extreme(of_ints, of_floats):
    forward, _ = _binary(of_ints, of_floats)
    return forward


class _Arithmetic(SymNumber):
    __slots__ = ()

    __add__, __radd__ = _binary(add, f.float_add)
    __sub__, __rsub__ = _binary(subtract, f.float_sub)
    __mul__, __rmul__ = _binary(multiply, f.float_mul)
    __floordiv__, __rfloordiv__ = _binary(f.floordiv, _floordiv_floats, _divides(operator.floordiv))
    __mod__, __rmod__ = _binary(f.mod, f.float_mod, _divides(operator.mod))
    __truediv__, __rtruediv__ = _binary(f.int_truediv, f.float_truediv, _divides(operator.truediv))
    __pow__, __rpow__ = _binary(_power_of_ints, f.float_pow)
    __eq__, __ne__, __lt__ = _comparison("=="), _comparison("!="), _comparison("<")
    __le__, __gt__, __ge__ = _comparison("<="), _comparison(">"), _comparison(">=")
    __sym_max__ = _extreme(f.maximum, f.float_max)
    __sym_min__ = _extreme(f.minimum, f.float_min)
    __hash__ = SymNumber.__hash__
    __int_floordiv__, __rint_floordiv__ = __floordiv__, __rfloordiv__
    __int_truediv__, __rint_truediv__ = __truediv__, __rtruediv__
    __float_truediv__, __rfloat_truediv__ = __truediv__, __rtruediv__
    __pow_by_natural__, __float_pow__ = __pow__, __pow__
    __rpow_by_natural__, __rfloat_pow__ = __rpow__, __rpow__

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __pos__(self):
        return self

    def conjugate(self):
        return self


class _IntegerKind(type):
    """The ragged sizes of nested tensors count as symbolic integers too: they are nodes of their own."""

    def __call__(cls, node, *args):
        return node if getattr(type(node), "is_ragged", False) else super().__call__(node, *args)

    def __instancecheck__(cls, value) -> bool:
        return type.__instancecheck__(cls, value) or getattr(type(value), "is_ragged", False)


class SymInt(_Arithmetic, metaclass=_IntegerKind):
    """An integer that remembers its expression; use `int(...)` to fix it to a value.

    >>> isinstance(3, torch.SymInt)
    False
    """

    __slots__ = ()
    symbolic_type = int

    def __index__(self) -> int:
        return self.node.guard()

    # The four operations that shapes are made of, without the general path: remembered results, nothing else.
    def __add__(self, other):
        node = self.node
        a = node.current if node.version == node.shape_env.version else node.expr
        if other.__class__ is SymInt:
            other = other.node.expr
        elif other.__class__ is not int:
            return _add_general(self, other)
        result = node.shape_env.wrapped.get(sums.get((a, other)))
        return result if result is not None else node.wrap(add(a, other))

    __radd__ = __add__

    def __mul__(self, other):
        node = self.node
        a = node.current if node.version == node.shape_env.version else node.expr
        if other.__class__ is SymInt:
            other = other.node.expr
        elif other.__class__ is not int:
            return _multiply_general(self, other)
        result = node.shape_env.wrapped.get(products.get((a, other)))
        return result if result is not None else node.wrap(multiply(a, other))

    __rmul__ = __mul__

    def __sub__(self, other):
        node = self.node
        a = node.current if node.version == node.shape_env.version else node.expr
        if other.__class__ is SymInt:
            other = other.node.expr
        elif other.__class__ is not int:
            return _subtract_general(self, other)
        result = node.shape_env.wrapped.get(differences.get((a, other)))
        return result if result is not None else node.wrap(subtract(a, other))

    def __neg__(self):
        return self.node.wrap(multiply(self.node.expr, -1))

    def __abs__(self):
        expr = self.node.expr
        low, high = self.node.shape_env.bounds(expr)
        return self if low >= 0 else -self if high <= 0 else self.node.wrap(f.absolute(expr))

    def __trunc__(self):
        return self

    def __floor__(self):
        return self

    def __ceil__(self):
        return self

    def __round__(self, ndigits=None):
        return self

    __lshift__, __rlshift__ = _binary(_shift_left, _shift_left)
    __rshift__, __rrshift__ = _binary(_shift_right, _shift_right)
    __and__, __rand__ = _binary(f.bitwise_and, f.bitwise_and)
    __or__, __ror__ = _binary(f.bitwise_or, f.bitwise_or)
    __xor__, __rxor__ = _binary(f.bitwise_xor, f.bitwise_xor)

    def __invert__(self):
        return -self - 1

    def as_integer_ratio(self) -> tuple:
        return self, 1

    def bit_length(self) -> int:
        return self.node.guard().bit_length()

    @property
    def real(self):
        return self

    @property
    def imag(self) -> int:
        return 0


_add_general, _multiply_general, _subtract_general = _Arithmetic.__add__, _Arithmetic.__mul__, _Arithmetic.__sub__


class SymFloat(_Arithmetic):
    """A float that remembers its expression.

    >>> isinstance(0.5, torch.SymFloat)
    False
    """

    __slots__ = ()
    symbolic_type = float

    def __neg__(self):
        return self.node.wrap(f.float_neg(self.node.expr))

    def __abs__(self):
        return self.node.wrap(f.float_abs(self.node.expr))

    def __trunc__(self):
        return self.node.wrap(f.trunc(self.node.expr))

    def __floor__(self):
        return self.node.wrap(f.floor(self.node.expr))

    def __ceil__(self):
        return self.node.wrap(f.ceil(self.node.expr))

    def __round__(self, ndigits=None):
        expr = self.node.expr
        return self.node.wrap(f.round_to_int(expr) if ndigits is None else f.round_decimal(expr, ndigits))

    def __sym_float__(self):
        return self

    def is_integer(self):
        return self.node.wrap(compare("==", self.node.expr, _to_float(f.floor(self.node.expr))))

    def as_integer_ratio(self) -> tuple[int, int]:
        return self.node.guard().as_integer_ratio()

    def hex(self) -> str:
        return self.node.guard().hex()


def _logical(op: str):
    def method(self, other):
        if isinstance(other, (bool, SymBool)):
            b = other.node.expr if isinstance(other, SymBool) else other
            return self.node.wrap(logic(op, self.node.expr, b))
        return NotImplemented

    return method


class SymBool(SymNumber):
    """A truth that remembers its question; `bool()` of it decides, with a guard.

    >>> isinstance(True, torch.SymBool)
    False
    """

    __slots__ = ()
    symbolic_type = bool

    __and__ = __rand__ = _logical("and")
    __or__ = __ror__ = _logical("or")

    def __bool__(self) -> bool:
        node = self.node
        known = node.shape_env.answers.get(node.current)
        return known if known is not None else node.shape_env.decide(node.expr)

    def __invert__(self):
        return self.__sym_not__()

    def __eq__(self, other):
        b = operand(other)
        if b is None:
            return NotImplemented
        a = self.node.expr
        if isinstance(other, bool):
            return self.node.wrap(a if other else negate(a))
        if isinstance(other, SymBool):
            return self.node.wrap(logic("or", logic("and", a, b), logic("and", negate(a), negate(b))))
        return self.node.wrap(compare("==", _number(a), b))

    def __ne__(self, other):
        result = self == other
        if result is NotImplemented:
            return result
        return result.__sym_not__() if isinstance(result, SymBool) else not result

    __hash__ = SymNumber.__hash__
    __lt__, __le__, __gt__, __ge__ = map(_comparison, ("<", "<=", ">", ">="))
    __add__, __radd__ = _binary(add, f.float_add)
    __sub__, __rsub__ = _binary(subtract, f.float_sub)
    __mul__, __rmul__ = _binary(multiply, f.float_mul)

    def __sym_ite__(self, then, otherwise):
        a, b = operand(then), operand(otherwise)
        if a is None or b is None:
            raise TypeError("sym_ite: both values must be numbers")
        if _is_float(a) or _is_float(b):
            return self.node.wrap(f.float_choice(self.node.expr, _to_float(a), _to_float(b)))
        return self.node.wrap(f.choice(self.node.expr, _number(a), _number(b)))


def _install_unary(name: str, function) -> None:
    def method(self):
        return self.node.wrap(function(_to_float(self.node.expr)))

    method.__name__ = f"__sym_{name}__"
    setattr(_Arithmetic, method.__name__, method)


for _name, _function in f.UNARY.items():
    _install_unary(_name, _function)

INTS.add(SymInt)
SymTypes = (SymInt, SymFloat, SymBool)
KINDS = {int: SymInt, float: SymFloat, bool: SymBool}


def wrap(expr, shape_env) -> SymNumber | builtins.int | builtins.float | builtins.bool:
    """The number of an expression: itself where it is a constant; one object per expression and environment."""
    if not isinstance(expr, Expr):
        return expr
    result = shape_env.wrapped.get(expr)
    if result is None:
        result = shape_env.wrapped[expr] = KINDS[expr.kind](SymNode(expr, shape_env))
    return result


def _wrap_beside(self: SymNode, expr):
    return wrap(expr, self.shape_env)


above.wrap_symbol = _wrap_beside
