"""`Operator`: everything known of one operator, in one object.

A declaration (`pointwise(...)`, `reduction(...)`, `view(...)`, `operator(...)`, `@composite(...)`) makes an Operator and
registers it under its schema's name; a second registration of one name raises. From it come the public function and
method (generated at first call, see `calls`), the in-place and `out=` forms, the `ops.aten` overload, the recorder and
the node class (see `record`). Parsing is done at first use, so that importing hundreds of declarations stays quick.

What a declaration may say is a type of its own, family by family: see `declaration`. It stays as it was made, in
`op.declared`; the rules that a library may replace at run time (`body`, `kernel`, ...) are attributes of the operator.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cached_property

import numpy as np

from ...core.calls import choose, plan_key
from ...core.dtype import by_numpy, dtype
from ...core.layers import above
from ...core.modes import LISTENING, ambient
from ...core.tensor import PLAIN, Tensor, wrap
from .declaration import ELEMENTWISE as ELEMENTWISE
from .declaration import LINEAR as LINEAR
from .declaration import NONDIFFERENTIABLE as NONDIFFERENTIABLE
from .declaration import NOT_IMPLEMENTED as NOT_IMPLEMENTED
from .declaration import Declaration, Missing, nearest
from .record import make_node_class, make_recorder
from .schema import Schema, Unfit, wrong_type


def missing(what: str) -> Missing:
    """The missing gradient of one argument, where PyTorch has a word for it: "igamma: input"."""
    return Missing(what)


def wrap_number(value: bool | int | float | complex) -> Tensor:
    """A tensor without dimensions, in the widest dtype of its kind."""
    array = np.array(value)
    return wrap(array, by_numpy[array.dtype])


registry: dict[str, Operator] = {}
packets: dict[str, dict[str, Operator]] = {}
exports: dict[str, dict[str, Callable]] = {}  # namespace ("torch", "Tensor", "nn.functional", ...) -> name -> function

_NAMESPACES = ("linalg_", "special_", "fft_")


class Spec:
    """What comes out of an operator: shape, dtype, strides (None: contiguous)."""

    __slots__ = ("shape", "dtype", "stride")

    def __init__(self, shape, dtype, stride=None):
        self.shape = tuple(shape)
        self.dtype = dtype
        self.stride = stride


class DataDependent(NotImplementedError):
    """What a shape rule raises where the shape of the result depends on data, which tensors without data have not."""

    def __init__(self, name: str, what: str = "the shape of the result"):
        super().__init__(f"{name}: {what} depends on the data, and tensors on device meta and fake ones have none")


class NoShapeRule(NotImplementedError):
    """What is raised where an operator without a shape rule is called on tensors without data."""


class OperatorName(str):
    """The name of an operator without namespace and overload; called, as programs for PyTorch do, the whole (`aten::add.Tensor`)."""

    __slots__ = ("whole",)
    whole: str

    def __call__(self) -> str:
        return self.whole


class Operator:
    """One overload. Calling it is calling `ops.aten.name.overload`."""

    # What a library registers at run time (see `library`); None until then.
    layer: Callable | None = None  # (args): stands in the place of recording
    backend: Callable | None = None  # (args, keys): stands in the place of the kernel; NotImplemented passes
    batching: Callable | None = None  # (values, dims, level): a vmap rule that is told its level
    dispatch_rules: dict = {}  # class of a dispatch mode or subclass -> (mode, op, types, args, kwargs)
    autocasts: dict = {}  # device type -> the dtype that floating arguments are cast to under autocast
    _defined_in_python = False
    awaits = False  # whether a call waits for what another began
    # Whether a result is under way when the call returns, so that what does not need it may run meanwhile; "gather" where it
    # is larger than what it is made of.
    begins: bool | str = False

    def __init__(self, text: str, family, **declared):
        head = text.partition("(")[0].strip()
        self.text = text
        name, _, self.overload = head.partition(".")
        self.name = OperatorName(name)
        self.overload = self.overload or "default"
        self.family = family
        self.declared: Declaration = family.declares(head, declared)
        self.kernel = self.declared.kernel
        self.body = self.declared.body
        self.meta_rule = self.declared.meta
        self.vjp = self.declared.vjp
        self.jvp = self.declared.jvp
        self.vmap = self.declared.vmap
        self.lower = self.declared.lower
        self.tags = list(self.declared.tags)
        if self.declared.library == "aten":  # shapes, gradients and traces of all that is built in are known
            self.tags.append("pt2_compliant_tag")
        self.inplace_of: Operator | None = None  # the functional operator that an in-place form stands for
        self.namespace = self.declared.library
        self.name.whole = self.qualified_name
        self.record: Callable = self._first_record
        self.native = family.native_of(self)  # small plain calls in C: the result, or None where it is the kernel's
        register(self)

    # ---- facts
    @cached_property
    def schema(self) -> Schema:
        return Schema(self.text, self.namespace)

    @property
    def _schema(self) -> Schema:
        return self.schema

    @property
    def qualified_name(self) -> str:
        return f"{self.namespace}::{self.name}" + (f".{self.overload}" if self.overload != "default" else "")

    @property
    def full_name(self) -> str:
        """The name without the overload, as messages about arguments use it."""
        return f"{self.namespace}::{self.name}"

    @property
    def _name(self) -> str:
        return self.qualified_name

    @property
    def _opname(self) -> str:
        return self.name

    @property
    def _overloadname(self) -> str:
        return self.overload

    @property
    def __name__(self) -> str:
        return f"{self.name}.{self.overload}"

    @cached_property
    def overloadpacket(self):
        return above.packet(self.namespace, self.name)

    @property
    def _overloadpacket(self):
        return self.overloadpacket

    @cached_property
    def display(self) -> str:
        """The name that error messages use."""
        return self.name.replace("linalg_", "linalg.", 1) if self.name.startswith("linalg_") else self.name

    @cached_property
    def tensor_positions(self) -> tuple[tuple[int, bool], ...]:
        """(index, is a list) of each tensor argument."""
        return tuple((i, a.is_list) for i, a in enumerate(self.schema.arguments) if a.is_tensor)

    @cached_property
    def lone_positions(self) -> tuple[int, ...] | None:
        """Indices of tensor arguments where none is a list."""
        return None if any(many for _, many in self.tensor_positions) else tuple(i for i, _ in self.tensor_positions)

    @cached_property
    def differentiable(self) -> bool:
        return bool(self.vjp) and self.vjp is not NONDIFFERENTIABLE

    @cached_property
    def space(self) -> str:
        """The namespace of the public function by the operator's name: "torch", "linalg", "fft", "special"."""
        return public_names(self)[0]

    @property
    def is_view(self) -> bool:
        return self.family.is_view

    @cached_property
    def inplace(self) -> Operator | None:
        """The in-place form (`add_`), made on demand where the declaration allows one."""
        return make_inplace(self) if self.declared.inplace else None

    # ---- calls
    def convert(self, args: tuple) -> tuple:
        """Canonical arguments from Python values; raises TypeErrors that name the argument."""
        arguments = self.schema.arguments
        out = []
        strict, wraps = self.declared.strict, self.declared.wraps_numbers
        for argument, value in zip(arguments, args, strict=False):
            try:
                if (
                    (strict or wraps)
                    and argument.base == "Tensor"
                    and not argument.is_list
                    and not isinstance(value, (Tensor, type(None)))
                ):
                    if strict or not isinstance(value, (bool, int, float, complex)):
                        raise Unfit  # Tensor means Tensor
                    value = wrap_number(value)
                out.append(argument.convert_value(value))
            except Unfit:
                raise wrong_type(self.display, argument, value) from None
        return tuple(out)

    def bind(self, args: tuple, kwargs: dict) -> tuple:
        """Positional and keyword arguments as one tuple in schema order, defaults filled in."""
        arguments = self.schema.arguments
        out = list(args)
        for argument in arguments[len(args) :]:
            if argument.name in kwargs:
                out.append(kwargs[argument.name])
            elif argument.has_default or argument.optional:
                out.append(argument.default)
            else:
                raise RuntimeError(
                    f"{self.full_name}() is missing value for argument '{argument.name}'. Declaration: {self.schema}"
                )
        if kwargs or len(args) > len(arguments):
            self._check_given(args, kwargs)
        return tuple(out)

    def _check_given(self, args: tuple, kwargs: dict) -> None:
        arguments = self.schema.arguments
        given = len(args) + len(kwargs)
        if given > len(arguments):
            raise RuntimeError(
                f"{self.full_name}() expected at most {len(arguments)} argument(s) but received {given} argument(s). "
                f"Declaration: {self.schema}"
            )
        names = [a.name for a in arguments]
        for name in kwargs:
            if name not in names:
                raise RuntimeError(
                    f"Unknown keyword argument '{name}' for operator '{self.full_name}'. Schema: {self.schema}"
                )
            if name in names[: len(args)]:
                raise RuntimeError(
                    f"Argument '{name}' specified both as positional and keyword argument. Schema: {self.schema}"
                )

    def quick(self, args: tuple, kwargs: dict):
        """The result where nothing listens and the arguments are plain; NotImplemented where it takes more than that."""
        return NotImplemented

    def __call__(self, *args, **kwargs):
        if not kwargs and ambient.mode < LISTENING and self.least <= len(args) <= self.most:
            return self.function(*args)
        if ambient.mode < LISTENING:
            chosen = choose(_plans, self, args, kwargs)
            if chosen is not None:
                return above.dispatch(*chosen)
        bound = self.bind(args, kwargs)
        converted = self.convert(bound)
        if len(_plans) < _KEPT:
            _keep_plan(self, args, kwargs, bound, converted)
        return above.dispatch(self, converted)

    def decompose(self, *args, **kwargs):
        """The result by the operators that this one is written in; NotImplemented where it has a kernel of its own."""
        return NotImplemented if self.body is None else self.body(*self.convert(self.bind(args, kwargs)))

    @cached_property
    def least(self) -> int:
        """The fewest positional arguments with which the public function (which may have a fast path) stands for a call."""
        arguments = self.schema.arguments
        if not hasattr(self, "function") or any(a.kwarg_only and not a.has_default for a in arguments):
            return 1 << 30  # never
        return sum(not (a.kwarg_only or a.has_default or a.optional) for a in arguments)

    @cached_property
    def most(self) -> int:
        return sum(not a.kwarg_only for a in self.schema.arguments)

    def tensors(self, args: tuple) -> list[Tensor]:
        """The tensors among canonical arguments, lists flattened."""
        out: list[Tensor] = []
        lone = self.lone_positions
        if lone is not None:
            for i in lone:
                if isinstance(value := args[i], Tensor):
                    out.append(value)
            return out
        for i, is_list in self.tensor_positions:
            value = args[i]
            if is_list:
                if value is not None:
                    out.extend(v for v in value if isinstance(v, Tensor))
            elif isinstance(value, Tensor):
                out.append(value)
        return out

    def _first_record(self, out, *args):
        """Generates the recorder at the first recorded call and replaces itself by it."""
        self.record = make_recorder(self)
        return self.record(out, *args)

    @cached_property
    def node_class(self) -> type:
        return make_node_class(self)

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self.name}', overload='{self.overload}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}.{self.overload}"

    __hash__ = object.__hash__

    def __reduce__(self):
        return (find, (key_of(self),))


# ---- calls of operators with arguments of types that were seen before
_plans: dict[tuple, tuple] = {}  # see `core.calls.choose`
_KEPT = 4096
# Classes whose values are arguments of a type or not whatever they are.
_TELLING = frozenset((*PLAIN, int, float, bool, str, type(None), dtype))


def _keep_plan(op: Operator, args: tuple, kwargs: dict, bound: tuple, converted: tuple) -> None:
    """Remember where the arguments of such calls stand, where values of these classes are canonical as they are."""
    arguments, places = op.schema.arguments, []
    for i, (a, value, canonical) in enumerate(zip(arguments, bound, converted, strict=True)):
        position, keyword = (i, None) if i < len(args) else (None, a.name if a.name in kwargs else None)
        if position is None and keyword is None:
            places.append((None, None, canonical, None, None))
            continue
        if a.is_list and a.base in ("int", "SymInt") and (value.__class__ is int or is_list_of_ints(value)):
            places.append((position, keyword, None, a.convert_value, a.list_size or 0))
            continue
        if value is not canonical or value.__class__ not in _TELLING or value.__class__ in PLAIN and a.base != "Tensor":
            return
        places.append((position, keyword, None, None, None))
    if len(bound) == len(arguments):
        _plans[plan_key(op, args, kwargs)] = op, tuple(places)


def is_list_of_ints(value) -> bool:
    return value.__class__ in (tuple, list) and bool(value) and all(v.__class__ is int for v in value)


def find(key: str) -> Operator:
    return registry[key]


def key_of(op: Operator) -> str:
    """The name of an operator in the registry."""
    return f"{op.name}.{op.overload}" if op.namespace == "aten" else f"{op.namespace}::{op.name}.{op.overload}"


def inplace_key(op: Operator) -> str:
    """The name that the in-place form of an operator has in the registry, or would have."""
    return f"{op.name}_.{op.overload}" if op.namespace == "aten" else f"{op.namespace}::{op.name}_.{op.overload}"


def packet_key(namespace: str, name: str) -> str:
    return name if namespace == "aten" else f"{namespace}::{name}"


def register(op: Operator) -> None:
    key = key_of(op)
    if key in registry:
        raise ValueError(f"operator {key} is declared twice")
    registry[key] = op
    packets.setdefault(packet_key(op.namespace, op.name), {})[op.overload] = op


def unregister(op: Operator) -> None:
    """Take an operator that a library defined at run time out again."""
    registry.pop(key_of(op), None)
    overloads = packets.get(packet_key(op.namespace, op.name), {})
    if overloads.get(op.overload) is op:
        del overloads[op.overload]
        if not overloads:
            del packets[packet_key(op.namespace, op.name)]


def rule_of(field: str, *names: str) -> Callable:
    """A decorator of the rule that a layout has for operators (all overloads): it goes into a field of their declarations."""

    def decorate(function: Callable) -> Callable:
        for name in names:
            if name not in packets:
                raise ValueError(f"a {field} rule for {name!r}, which is no operator{nearest(name, packets)}")
            for op in packets[name].values():
                if getattr(op.declared, field) is not None:
                    raise ValueError(f"the {field} rule of {key_of(op)} is declared twice")
                setattr(op.declared, field, function)
        return function

    return decorate


def make_inplace(op: Operator) -> Operator:
    """The in-place form of a functional operator: same rules, first argument written."""
    schema = op.schema
    first = schema.arguments[0].name
    text = op.text.replace(f"Tensor {first}", f"Tensor(a!) {first}", 1)
    head, _, tail = text.partition("(")
    name, dot, overload = head.partition(".")
    arguments = tail.rpartition("->")[0]
    inplace = Operator(
        f"{name}_{dot}{overload}({arguments}-> Tensor(a!)",
        op.family,
        vjp=op.vjp,
        wraps_numbers=op.declared.wraps_numbers,
    )
    inplace.inplace_of = op
    return inplace


def public_names(op: Operator) -> tuple[str, str]:
    """(namespace, name) under which an operator is exported by default."""
    for prefix in _NAMESPACES:
        if op.name.startswith(prefix):
            return prefix[:-1], op.name[len(prefix) :]
    return "torch", op.name


def export(namespace: str, name: str, function: Callable) -> Callable:
    """Put a public function in its namespace."""
    table = exports.setdefault(namespace, {})
    if name in table:
        raise ValueError(f"{namespace}.{name} is exported twice")
    table[name] = function
    if isinstance(function, types.FunctionType) and function.__qualname__ != f"Tensor.{function.__name__}":
        _name_publicly(namespace, name, function)
    return function


def public(namespace: str, name: str) -> Callable:
    """A public function by its namespace ("torch", "linalg", "nn.functional") and name."""
    return exports[namespace][name]


def _name_publicly(namespace: str, name: str, function: types.FunctionType) -> None:
    """Let a function be found by its module and name, as pickles do: where it was exported first."""
    if "public_name" in function.__dict__:
        return
    function.public_name = f"{namespace}.{name}"  # type: ignore[attr-defined]
    if namespace == "Tensor":
        function.__module__, function.__qualname__ = "pullback", f"Tensor.{name}"
    else:
        function.__module__ = "pullback" if namespace == "torch" else f"pullback.{namespace}"
        function.__qualname__ = name
