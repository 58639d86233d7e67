"""Operator schemas: one line of text says an operator's name, arguments, defaults and results.

    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"

`parse` reads it; `Argument.convert` brings a Python value into the canonical form that rules and kernels see (ints as
ints, int lists as tuples, dtypes as `dtype`), or raises a TypeError that names the argument and what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

import numpy as np

from ...core import device as devices
from ...core import dtype as dtypes
from ...core.device import device, layout, memory_format
from ...core.dtype import dtype
from ...core.random import Generator
from ...core.symbolic import sym_int
from ...core.tensor import Tensor
from . import compatibility
from .schema_types import RealTypeName, TypeName

_ARGUMENT = re.compile(
    r"^(?P<type>[A-Za-z]+(?:\([a-z0-9$!|>\-* ]*\))?(?:\[\d*\])?\??(?:\[\d*\])?\??)\s+(?P<name>\w+)(?:=(?P<default>.+))?$"
)


class AliasInfo:
    """What `Tensor(a!)` says: which memory a value shares, and whether it is written."""

    __slots__ = ("before_set", "after_set", "is_write")

    def __init__(self, text: str):
        before, arrow, after = (part.strip() for part in text.partition("->"))
        self.is_write = "!" in text
        self.before_set = {s.strip(" !") for s in before.split("|")}
        self.after_set = {s.strip(" !") for s in after.split("|") if s} if arrow else set(self.before_set)

    def __repr__(self) -> str:
        return f"AliasInfo(is_write={self.is_write}, before_set={self.before_set}, after_set={self.after_set})"


class Return(tuple):
    """One result: (type, name), and what memory it shares."""

    alias: str | None

    def __new__(cls, kind: str, name: str, alias: str | None = None):
        self = super().__new__(cls, (TypeName(kind), name))
        self.alias = alias
        return self

    type = property(lambda self: self[0])
    real_type = property(lambda self: RealTypeName(self[0]))
    name = property(lambda self: self[1])

    @property
    def alias_info(self) -> AliasInfo | None:
        return None if self.alias is None else AliasInfo(self.alias)


class Argument:
    """One parameter: its type, name, default, and whether it is keyword-only. `writes` marks `Tensor(a!)`."""

    __slots__ = ("type", "base", "name", "default", "has_default", "kwarg_only", "optional", "list_size", "is_list", "writes", "alias", "convert_value", "position", "is_tensor")  # fmt: skip

    def __init__(self, text: str, kwarg_only: bool, position: int):
        match = _ARGUMENT.match(text.strip())
        if match is None:
            raise ValueError(f"cannot read schema argument {text!r}")
        self.name, kind = match["name"], match["type"]
        kind, self.alias = _without_alias(kind)
        self.writes = self.alias is not None and "!" in self.alias
        self.type = TypeName(kind)
        self.optional = kind.endswith("?")
        kind = kind.removesuffix("?")
        self.is_list = kind.endswith("]")
        self.base, _, size = kind[:-1].rpartition("[") if self.is_list else (kind, "", "")
        self.list_size = int(size) if size else None
        self.is_tensor = self.base.startswith("Tensor")
        self.kwarg_only = kwarg_only
        self.position = position
        self.has_default = match["default"] is not None
        self.default = _default(match["default"], self) if self.has_default else None
        self.convert_value: Callable = _converter(self)

    # PyTorch's names of the same facts
    N = property(lambda self: self.list_size)
    real_type = property(lambda self: RealTypeName(self.type))
    is_out = property(lambda self: self.kwarg_only and self.writes)

    @property
    def default_value(self):
        """The default as PyTorch's schemas have it: lists as lists, dtypes as their numbers."""
        if isinstance(self.default, dtype):
            return self.default.number
        return list(self.default) if self.is_list and self.default else self.default

    def has_default_value(self) -> bool:
        return self.has_default

    @property
    def alias_info(self) -> AliasInfo | None:
        return None if self.alias is None else AliasInfo(self.alias)

    def __repr__(self) -> str:
        return f"{self.type} {self.name}" + (f"={self.default!r}" if self.has_default else "")


class Schema:
    """A parsed schema. `arguments` are in call order; `returns` are (type, name) pairs."""

    def __init__(self, text: str, namespace: str = "aten"):
        self.text = text
        self.namespace = namespace
        head, _, tail = text.partition("(")
        name, _, self.overload_name = head.strip().partition(".")
        self.name = f"{namespace}::{name}" if namespace else name
        end = _closing(tail)
        inside, result = tail[:end], tail[end + 1 :]
        self.arguments = _parse_arguments(inside)
        self.returns = _parse_returns(result.partition("->")[2].strip())

    @cached_property
    def index(self) -> dict[str, int]:
        return {a.name: i for i, a in enumerate(self.arguments)}

    @cached_property
    def positional(self) -> int:
        """How many arguments may be given by position."""
        return sum(not a.kwarg_only for a in self.arguments)

    @cached_property
    def defaults(self) -> tuple:
        return tuple(a.default for a in self.arguments)

    @property
    def is_mutable(self) -> bool:
        return any(a.writes for a in self.arguments)

    @cached_property
    def returns_views(self) -> bool:
        """Whether a result shares the memory of an argument that is not written."""
        return any(r.alias is not None and "!" not in r.alias for r in self.returns)

    def _is_view_op(self) -> bool:
        return self.returns_views

    def is_backward_compatible_with(self, old: Schema) -> bool:
        """Whether calls that were written for an older schema mean the same with this one."""
        return compatibility.backward(self, old)

    def check_forward_compatible_with(self, old: Schema) -> tuple[bool, str]:
        """Whether calls that are written for this schema, with defaults left out, run with an older one; if not, why."""
        reason = compatibility.why_not_forward(self, old)
        return not reason, reason

    def __str__(self) -> str:
        return f"{self.namespace}::{self.text}" if self.namespace else self.text

    __repr__ = __str__

    @cached_property
    def _said(self) -> tuple:
        """All that a schema says, however it is spaced."""
        arguments = [(a.type, a.name, repr(a.default), a.has_default, a.kwarg_only, a.alias) for a in self.arguments]
        return self.name, self.overload_name, tuple(arguments), tuple((*r, r.alias) for r in self.returns)

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, Schema) and self._said == other._said

    def __hash__(self) -> int:
        return hash(self._said)


def argument_texts(text: str) -> list[str]:
    """The arguments of a schema as they are written, without the mark of those that are keywords."""
    inside = text.partition("(")[2]
    return [part.strip() for part in _split(inside[: _closing(inside)]) if part.strip() != "*"]


def _closing(text: str) -> int:
    """Where the bracket that was opened before `text` closes."""
    depth = 1
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return i
    raise ValueError(f"unbalanced brackets in schema: ({text}")


def _split(text: str) -> list[str]:
    """Split at commas outside brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [p.strip() for p in parts if p.strip()]


def _parse_arguments(text: str) -> list[Argument]:
    out: list[Argument] = []
    kwarg_only = False
    for part in _split(text):
        if part == "*":
            kwarg_only = True
        else:
            out.append(Argument(part, kwarg_only, len(out) + 1))
    return out


def _parse_returns(text: str) -> list[Return]:
    if text in ("()", ""):
        return []
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    out = []
    for part in _split(text):
        kind, _, name = part.rpartition(" ")
        if not kind or not name.isidentifier():
            kind, name = part, ""
        kind, alias = _without_alias(kind)
        out.append(Return(kind, name, alias))
    return out


def _without_alias(kind: str) -> tuple[str, str | None]:
    """`Tensor(a!)[]` as `Tensor[]` and `a!`; brackets at the beginning are those of a tuple of one."""
    begin = kind.find("(", 1)
    if begin < 0:
        return kind, None
    end = kind.index(")", begin)
    return kind[:begin] + kind[end + 1 :], kind[begin + 1 : end]


def _default(text: str, argument: Argument):
    if text == "None":
        return None
    if text in ("True", "False"):
        return text == "True"
    if text.startswith("["):
        return tuple(_number(p) for p in _split(text[1:-1]))
    if text[0] in "'\"":
        return device(text[1:-1]) if argument.base == "Device" else text[1:-1]
    if text == "Mean":
        return 1
    if argument.base in ("ScalarType", "Layout", "MemoryFormat") and text.isidentifier():
        return getattr(dtypes if argument.base == "ScalarType" else devices, text)
    value = _number(text)
    if argument.is_list and argument.list_size:
        return (value,) * argument.list_size
    return value


def _number(text: str):
    if text in ("True", "False"):
        return text == "True"
    try:
        return int(text)
    except ValueError:
        return float(text)


def type_name(value: object) -> str:
    """The name that PyTorch's messages give a value's type."""
    if isinstance(value, Tensor):
        return type(value).__name__
    if isinstance(value, (tuple, list)) and value and not isinstance(value, str):
        return f"{type(value).__name__} of {type(value[0]).__name__}" if type(value) is tuple else "list"
    return type(value).__name__


_EXPECTED = {
    "Tensor": "Tensor", "Tensor[]": "tuple of Tensors", "int": "int", "SymInt": "int", "int[]": "tuple of ints", "SymInt[]": "tuple of ints",
    "float": "float", "bool": "bool", "Scalar": "Number", "ScalarType": "torch.dtype", "Device": "torch.device", "str": "str", "Layout": "torch.layout",
    "MemoryFormat": "torch.memory_format", "Generator": "torch.Generator", "float[]": "tuple of floats",
}  # fmt: skip


def wrong_type(function: str, argument: Argument, value: object, method: bool = False) -> TypeError:
    """PyTorch's words for a value that is not of an argument's type; a method's positions are counted without the tensor itself."""
    kind = argument.base + ("[]" if argument.is_list else "")
    expected = _EXPECTED.get(kind, kind)
    where = f" (position {argument.position - method})" if not argument.kwarg_only else ""
    name = "input" if argument.name == "self" else argument.name
    error = wrong_element(function, name, where, value) if expected == "tuple of ints" else None
    error = error or TypeError(f"{function}(): argument '{name}'{where} must be {expected}, not {type_name(value)}")
    error.wrong = (function, argument, value)  # type: ignore[attr-defined]  # for who knows that a method was called
    return error


def wrong_element(function: str, name: str, where: str, value: object) -> TypeError | None:
    """PyTorch's words for the first element of a list of integers that is none: its parser looks at one element, and unpacks the others."""
    for i, element in enumerate(value if isinstance(value, (tuple, list)) else ()):
        whole = hasattr(element, "__index__") and not isinstance(element, bool)
        if whole or getattr(element, "is_symbolic", False):
            continue
        kind = type_name(element).partition(" ")[0]
        if i:
            return TypeError(
                f"{function}(): argument '{name}' failed to unpack the object at pos {i + 1} with error \"type must be tuple of ints,but "
                f'got {kind}"'
            )
        return TypeError(
            f"{function}(): argument '{name}'{where} must be tuple of ints, but found element of type {kind} at pos 0"
        )
    return None


class Unfit(Exception):
    """A converter's way to say that a value is not of its type; callers turn it into a TypeError with names."""


def _tensor(value):
    if isinstance(value, Tensor) or isinstance(value, (int, float, complex, bool)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if getattr(value, "is_symbolic", False):
        return value
    raise Unfit


def _int(value):
    if type(value) is int:
        return value
    if isinstance(value, bool):  # True is no dimension: a flag in the wrong place must not be read as one
        raise Unfit
    if isinstance(value, Tensor):
        if value.dtype.category <= 1 and value._array.size == 1:
            return sym_int(value.item())  # what data decides is a symbol where a trace can have one
        raise Unfit
    if getattr(value, "is_symbolic", False):
        return value
    if hasattr(value, "__index__"):
        return value.__index__()
    raise Unfit


def _float(value):
    if isinstance(value, (int, float)) or getattr(value, "is_symbolic", False):
        return value
    if (
        isinstance(value, Tensor)
        and value._array.size == 1
        and not (value._autograd is not None and value.requires_grad)
    ):
        return float(value.item())
    if isinstance(value, (np.floating, np.integer)):
        return float(value)
    raise Unfit


def _bool(value):
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, int) and not isinstance(value, bool):
        raise Unfit
    if isinstance(value, Tensor) and value.dtype.name == "bool" and value._array.size == 1:
        return bool(value.item())
    if getattr(value, "is_symbolic", False):
        return value
    raise Unfit


def _scalar(value):
    if isinstance(value, (int, float, complex)) or getattr(value, "is_symbolic", False):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Tensor) and value._array.ndim == 0:
        if value._autograd is not None and value.requires_grad:
            raise Unfit  # a number has no gradient
        return value if value._autograd is not None or value._keys else value.item()
    raise Unfit


def _dtype(value):
    if isinstance(value, dtype):
        return value
    if value in (float, int, bool, complex):
        return dtypes.PYTHON_TYPES[value]
    raise Unfit


def _device(value):
    if isinstance(value, device):
        return value
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return device(value)
    raise Unfit


def _instance(kind):
    def convert(value):
        if isinstance(value, kind):
            return value
        raise Unfit

    return convert


def _anything(value):
    return value


_SCALAR_CONVERTERS: dict[str, Callable] = {
    "Tensor": _tensor, "int": _int, "SymInt": _int, "float": _float, "bool": _bool, "Scalar": _scalar, "ScalarType": _dtype,
    "Device": _device, "str": _instance(str), "Layout": _instance(layout), "MemoryFormat": _instance(memory_format),
    "Generator": _instance(Generator), "Any": _anything, "Storage": _anything, "Dimname": _instance(str),
    "number": _scalar, "complex": _scalar, "SymFloat": _float, "SymBool": _bool, "Stream": _anything, "QScheme": _anything, "DeviceIndex": _int,
    "GraphModule": _anything,
}  # fmt: skip


def _converter(argument: Argument) -> Callable:
    try:
        one = _SCALAR_CONVERTERS[argument.base.removesuffix("?")]
    except KeyError:
        raise ValueError(f"schema type {argument.type!r} is not known") from None
    inner_optional = argument.base.endswith("?")
    size = argument.list_size
    is_tensor = argument.base.removesuffix("?") == "Tensor"

    def convert_tensors(value):
        if not isinstance(value, (tuple, list)):
            raise Unfit
        for i, v in enumerate(value):
            if not isinstance(v, Tensor) and not (v is None and inner_optional):
                raise TypeError(
                    f"expected Tensor as element {i} in argument {argument.position - 1}, but got {type(v).__name__}"
                )
        return tuple(value)

    def convert_list(value):
        if not isinstance(value, (tuple, list)):
            if isinstance(value, Tensor) and value._array.ndim:
                return tuple(one(v) for v in value.tolist())
            if size is not None:
                return (one(value),) * size
            if isinstance(value, Tensor):  # of no dimension: one number
                value = (value,)
            elif hasattr(value, "__iter__") and not isinstance(value, (str, dict)):
                value = tuple(value)
            else:
                raise Unfit
        return tuple(None if v is None and inner_optional else one(v) for v in value)

    convert = (convert_tensors if is_tensor else convert_list) if argument.is_list else one
    if argument.optional or argument.has_default and argument.default is None:
        return lambda value: None if value is None else convert(value)
    if argument.is_list and argument.default == ():  # stride=None is stride=[]
        return lambda value: () if value is None else convert(value)
    return convert
