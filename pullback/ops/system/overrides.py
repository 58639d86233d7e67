"""`__torch_function__` and `__torch_dispatch__`: who may take a call over, and how it is handed to them.

The order is PyTorch's: function modes first (innermost first), then the arguments' classes, subclasses before their
bases, left to right; below autograd, dispatch modes and then the arguments' classes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import partial

from ...core import modes
from ...core.calls import simple
from ...core.layers import above, extend
from ...core.modes import ambient
from ...core.tensor import (
    DISPATCH_SUBCLASS,
    PLAIN,
    Tensor,
    disabled_torch_dispatch,
    disabled_torch_function,
)

ONE_HOP = -1  # of `ambient.function_disabled`: the next question about overrides is answered no, those after it as ever
_SIMPLE = frozenset((int, float, bool, type(None), str, complex))


def overridden_args(values, found: list) -> list:
    """Arguments whose class has its own `__torch_function__`, one per class, subclasses first."""
    for v in values:
        cls = v.__class__
        if cls in PLAIN or cls in _SIMPLE:
            continue
        if cls is tuple or cls is list:
            overridden_args(v, found)
        elif cls is dict:
            overridden_args(v.values(), found)
        elif has_override(cls) and all(type(f) is not cls for f in found):
            at = next((i for i, f in enumerate(found) if issubclass(cls, type(f))), len(found))
            found.insert(at, v)
    return found


def has_override(cls: type) -> bool:
    override = getattr(cls, "__torch_function__", None)
    return override is not None and override is not disabled_torch_function and cls is not Tensor


def any_overridden(args, out=None, depth: int = 3) -> bool:
    """Whether an argument has overrides of its own; lists are looked into, but not into data of any depth."""
    if ambient.function_disabled:
        if ambient.function_disabled == ONE_HOP:
            redispatch.end_hop()
        return False
    if out is None and simple(args):
        return False
    for v in args:
        cls = v.__class__
        if cls in PLAIN or cls in _SIMPLE:
            continue
        if cls is tuple or cls is list:
            if depth and any_overridden(v, None, depth - 1):
                return True
        elif has_override(cls):
            return True
    return out is not None and any_overridden(out if isinstance(out, (tuple, list)) else (out,))


class NoImplementation(TypeError):
    """Every class that was offered a call declined it."""


def call_overridden(function, args: tuple, kwargs: dict):
    """Offer a public call to function modes and overriding classes; without takers, make it."""
    overridden = [] if ambient.function_disabled else overridden_args((*args, *kwargs.values()), [])
    types = tuple(type(o) for o in overridden)
    asked = ambient.mode & modes.FUNCTION and ambient.function_disabled < 2
    if asked:
        mode = ambient.function_modes[-1]
        with without_function_mode():
            result = mode.__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for o in overridden:
        result = _answer(o, function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    if not overridden and not asked:
        with disable_torch_function(2 if ambient.function_disabled else 0):
            return function(*args, **kwargs)
    name = f"{getattr(function, '__module__', 'torch')}.{getattr(function, '__name__', function)}"
    declined = f", and the function mode {type(mode).__name__} declined" if asked else ""
    raise NoImplementation(
        f"no implementation found for '{name}' on types that implement __torch_function__: [{', '.join(t.__name__ for t in types)}]{declined}"
    )


def _answer(o, function, types: tuple, args: tuple, kwargs: dict):
    """What the class of an argument makes of a call; a capture interprets what is the program's own."""
    for trace in reversed(ambient.captures) if ambient.mode & modes.CAPTURE else ():
        if trace.interprets:
            return trace.answer(o, (function, types, args, kwargs))
    return o.__torch_function__(function, types, args, kwargs)  # a method of the class, or of the object


class without_function_mode:
    """The innermost function mode steps aside while it handles a call."""

    def __enter__(self):
        self.mode = ambient.function_modes.pop()
        ambient.switch(modes.FUNCTION, ambient.function_modes)
        return self.mode

    def __exit__(self, *exc):
        ambient.function_modes.append(self.mode)
        ambient.switch(modes.FUNCTION, True)


class disable_torch_function:
    """Turn class overrides off (1), or class overrides and modes (2), inside a block."""

    def __init__(self, level: int = 1):
        self.level = level

    def __enter__(self):
        self.before = ambient.function_disabled, ambient.mode & modes.FUNCTION
        ambient.function_disabled = max(self.level, ambient.function_disabled)
        if self.level >= 2:
            ambient.switch(modes.FUNCTION, False)

    def __exit__(self, *exc):
        ambient.function_disabled = self.before[0]
        ambient.switch(modes.FUNCTION, self.before[1])


class enable_torch_function:
    """Turn class overrides and modes on again inside a block, whatever turned them off."""

    def __init__(self) -> None:
        self.before = ambient.function_disabled, ambient.mode & modes.FUNCTION
        ambient.function_disabled = 0
        ambient.switch(modes.FUNCTION, ambient.function_modes)

    def __enter__(self) -> None:
        """It is on from the moment it is made."""

    def __exit__(self, *exc) -> None:
        ambient.function_disabled = self.before[0]
        ambient.switch(modes.FUNCTION, self.before[1])
        self.before = ()  # type: ignore[assignment]

    def __del__(self) -> None:
        if self.before:
            self.__exit__()


class redispatch:
    """A block whose first call is made as if nothing had overrides; what that call calls in turn meets them again."""

    def __enter__(self) -> None:
        self.before = ambient.function_disabled, ambient.mode & modes.FUNCTION
        if not self.before[0]:
            ambient.function_disabled = ONE_HOP
            ambient.switch(modes.FUNCTION, False)

    def __exit__(self, *exc) -> None:
        ambient.function_disabled = self.before[0]
        ambient.switch(modes.FUNCTION, self.before[1])

    @staticmethod
    def end_hop() -> None:
        ambient.function_disabled = 0
        ambient.switch(modes.FUNCTION, ambient.function_modes)


def redispatch_function(func, types, args, kwargs):
    """Make a call past the overrides that are handling it, once: functions that it calls are offered to them again.

    For `__torch_function__` of subclasses and modes that want to see what a function is made of. A mode is asked about the inner
    calls if it is on again, `with self:`.

    >>> torch.overrides.redispatch_function(torch.add, (), (torch.ones(1), 1), None)
    tensor([2.])
    """
    with redispatch():
        return func(*args, **(kwargs or {}))


def is_function_all_disabled() -> bool:
    """Whether overrides of classes and modes are both off."""
    return ambient.function_disabled >= 2


class DisableTorchFunctionSubclass(disable_torch_function):
    """`torch._C.DisableTorchFunctionSubclass`.

    >>> with torch.DisableTorchFunctionSubclass():
    ...     torch.ones(1)
    tensor([1.])
    """

    def __init__(self):
        super().__init__(1)


# ---- for functions written in Python, in nn and by users
def has_torch_function(relevant_args: Iterable) -> bool:
    """Whether any argument has its own `__torch_function__`, or a function mode is active."""
    try:
        values = tuple(relevant_args)
    except TypeError:
        raise TypeError(f"expected a sequence, got {type(relevant_args).__name__}") from None
    return bool(ambient.mode & modes.FUNCTION) or any_overridden(values)


def has_torch_function_unary(x) -> bool:
    """`has_torch_function` of one argument.

    >>> torch.overrides.has_torch_function_unary(torch.ones(1))
    False
    """
    return has_torch_function((x,))


def has_torch_function_variadic(*args) -> bool:
    """`has_torch_function` of arguments one by one.

    >>> torch.overrides.has_torch_function_variadic(torch.ones(1), 2)
    False
    """
    return has_torch_function(args)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Hand a call to the overrides of its arguments."""
    return call_overridden(public_api, args, kwargs)


class DisableTorchFunction(disable_torch_function):
    """`torch._C.DisableTorchFunction`.

    >>> with torch.DisableTorchFunction():
    ...     torch.ones(1)
    tensor([1.])
    """

    def __init__(self):
        super().__init__(2)


def default_torch_function(cls, func, types, args=(), kwargs=None):
    """What subclasses inherit: run the function on them as tensors, and give results their class."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if func in keeps_type else convert(result, cls)


keeps_type: set = set()  # functions whose results are not given the subclass (metadata getters and the like)


def convert(result, cls: type):
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        output = [convert(r, cls) for r in result]
        return (
            type(result)(output)
            if type(result) in (tuple, list) or hasattr(result, "n_sequence_fields") or not hasattr(result, "_fields")
            else type(result)(*output)
        )
    return result


extend(Tensor, __name__, __torch_function__=classmethod(default_torch_function))


# ---- below autograd
def dispatch_args(op, args: tuple) -> list:
    found: list = []
    for t in op.tensors(args):
        cls = type(t)
        if (
            t._keys & DISPATCH_SUBCLASS
            and cls.__torch_dispatch__ is not disabled_torch_dispatch
            and all(type(f) is not cls for f in found)
        ):
            at = next((i for i, f in enumerate(found) if issubclass(cls, type(f))), len(found))
            found.insert(at, t)
    return found


def call_dispatch(op, args: tuple):
    """Offer an operator to dispatch modes and dispatching subclasses."""
    if ambient.dispatch_disabled:
        return above.run_as_plain(op, *call_form(op, args))
    if ambient.mode & modes.DISPATCH and ambient.dispatch_modes[-1].handle is not None:
        return _call_handle(op, args)
    overridden = dispatch_args(op, args)
    types = tuple(type(o) for o in overridden)
    positional, keywords = call_form(op, args)
    if ambient.mode & modes.DISPATCH:
        mode = ambient.dispatch_modes[-1]
        with without_dispatch_mode():
            result = _handler(op, mode, type(mode))(op, types, positional, keywords)
        if result is not NotImplemented:
            return _checked(op, result)
    return _offer(op, overridden, types, positional, keywords)


def _call_handle(op, args: tuple):
    """A mode of ours, which steps aside meanwhile (as `without_dispatch_mode` says): traces make thousands of these calls."""
    stack = ambient.dispatch_modes
    mode = stack.pop()
    before = ambient.change(0 if stack else modes.DISPATCH, modes.BELOW_AUTOGRAD)
    try:
        return mode.handle(op, args)
    finally:
        stack.append(mode)
        ambient.restore(before)


def call_subclasses(op, args: tuple):
    """Offer an operator to the classes of its arguments alone."""
    overridden = dispatch_args(op, args)
    return _offer(op, overridden, tuple(type(o) for o in overridden), *call_form(op, args))


def _offer(op, overridden: list, types: tuple, positional: tuple, keywords: dict):
    for o in overridden:
        with modes.masked(0, modes.BELOW_AUTOGRAD):
            result = _handler(op, o, type(o))(op, types, positional, keywords)
        if result is None and "own_answer" in op.__dict__:  # a fact that the class has no opinion on
            return op.own_answer(*positional, **keywords)
        if result is not NotImplemented:
            return _checked(op, result)
    if not overridden:
        return NotImplemented
    raise TypeError(
        f"Multiple dispatch failed for 'torch._ops.{op}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
        + "\n".join(f"  - tensor subclass {t}" for t in types)
    )


def _checked(op, result):
    """What a handler gave, if the operator can give it: a tensor where it gives one, or None, which stands for no gradient."""
    if isinstance(result, Tensor) or result is None:
        return result
    returns = op.schema.returns
    if len(returns) == 1 and returns[0][0].startswith("Tensor") and not returns[0][0].endswith("]"):
        raise RuntimeError(
            f"Unable to cast Python instance of type {type(result)} to C++ type 'Tensor': {op} was answered by "
            "__torch_dispatch__ with what is no tensor"
        )
    return result


def _handler(op, who, cls: type) -> Callable:
    """What handles an operator for a dispatch mode or a tensor: the rule registered for its class, or its own method, which need
    be none of the class."""
    rule = op.dispatch_rules.get(cls)
    if rule is None:
        return who.__torch_dispatch__
    return partial(rule, cls if isinstance(who, Tensor) else who)


def call_form(op, args: tuple, lists: bool = True, named: Container[str] = ()) -> tuple[tuple, dict]:
    """Schema-ordered arguments as the (args, kwargs) a user would have written: trailing defaults dropped; with `lists`,
    canonical tuples for list arguments as lists. Without, as handlers of functions get them: dimensions and other integers
    stay, because handlers ask for those that their users write (`unbind(x, 0)`). Those `named` are keywords as well."""
    arguments = op.schema.arguments
    values = [
        list(v) if lists and isinstance(v, tuple) and a.is_list else v for a, v in zip(arguments, args, strict=False)
    ]
    keywords = {a.name: v for a, v in zip(arguments, values, strict=False) if a.kwarg_only and not _is_default(v, a)}
    positional = tuple([v for a, v in zip(arguments, values, strict=False) if not a.kwarg_only])
    if named:
        rows = [(a, v) for a, v in zip(arguments, positional, strict=False) if not a.kwarg_only]
        keywords.update({a.name: v for a, v in rows if a.name in named and not _is_default(v, a)})
        positional = tuple([v for a, v in rows if a.name not in named])
    return without_defaults(op, positional, None if lists else int), keywords


def without_defaults(op, positional: tuple, stays: type | None = None) -> tuple:
    """Positional arguments without those at the end that are defaults, up to one of a type that stays."""
    arguments, count = op.schema.arguments, len(positional)
    while (
        count and _is_default(positional[count - 1], arguments[count - 1]) and type(positional[count - 1]) is not stays
    ):
        count -= 1
    return positional[:count]


def _is_default(value, argument) -> bool:
    if not argument.has_default or isinstance(value, Tensor):
        return False
    default = argument.default
    if isinstance(default, tuple) and isinstance(value, (tuple, list)):
        return tuple(value) == default
    return value is default or type(value) is type(default) and value == default


class without_dispatch_mode:
    """The innermost dispatch mode steps aside while it handles a call. Autograd is already done there."""

    def __enter__(self):
        self.mode = ambient.dispatch_modes.pop()
        self.before = ambient.change(0 if ambient.dispatch_modes else modes.DISPATCH, modes.BELOW_AUTOGRAD)
        return self.mode

    def __exit__(self, *exc):
        ambient.dispatch_modes.append(self.mode)
        ambient.restore(self.before)


class DisableTorchDispatch:
    """A block in which dispatch modes and dispatching subclasses are passed by: operators run on the data that is there."""

    def __enter__(self) -> None:
        self.before = ambient.dispatch_disabled, ambient.mode & modes.DISPATCH
        ambient.dispatch_disabled = True
        ambient.switch(modes.DISPATCH, False)

    def __exit__(self, *exc) -> None:
        ambient.dispatch_disabled = self.before[0]
        ambient.switch(modes.DISPATCH, self.before[1])


def current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost dispatch mode."""
    return ambient.dispatch_modes[-1] if ambient.dispatch_modes else None


def dispatch_mode_stack() -> list:
    return list(ambient.dispatch_modes)


def in_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a dispatch mode is active; those that say they are infrastructure may be left out."""
    return any(include_infra_modes or not type(mode).is_infra_mode() for mode in ambient.dispatch_modes)


def current_function_mode() -> TorchFunctionMode | None:
    """The innermost function mode."""
    return ambient.function_modes[-1] if ambient.function_modes else None


def function_mode_stack() -> list:
    return list(ambient.function_modes)


def _refuse_classmethod(mode: object, name: str) -> None:
    if getattr(getattr(type(mode), name), "__self__", None) is type(mode):
        raise RuntimeError(
            f"Defining your mode's `{name}` as a classmethod is not supported, please make it a plain method"
        )


class TorchFunctionMode:
    """Subclass it, define `__torch_function__(self, func, types, args=(), kwargs=None)`, and use it as a context."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{type(self).__name__} does not define __torch_function__")

    def __enter__(self):
        _refuse_classmethod(self, "__torch_function__")
        ambient.function_modes.append(self)
        ambient.switch(modes.FUNCTION, True)
        return self

    def __exit__(self, *exc):
        ambient.function_modes.pop()
        ambient.switch(modes.FUNCTION, ambient.function_modes)

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)


class TorchDispatchMode:
    """Subclass it, define `__torch_dispatch__(self, func, types, args=(), kwargs=None)`, and use it as a context."""

    handle: Callable | None = None  # what a mode of ours defines instead: (operator, canonical arguments) -> result

    def __init__(self, _dispatch_key=None):
        self._dispatch_key = _dispatch_key

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{type(self).__name__} does not define __torch_dispatch__")

    def __enter__(self):
        _refuse_classmethod(self, "__torch_dispatch__")
        ambient.dispatch_modes.append(self)
        ambient.switch(modes.DISPATCH, True)
        return self

    def __exit__(self, *exc):
        ambient.dispatch_modes.pop()
        ambient.switch(modes.DISPATCH, ambient.dispatch_modes)

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the mode is a part of a library that programs need not know of."""
        return False
