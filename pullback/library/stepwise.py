"""The older way to a custom operator, in steps: define it, then register kernels, what to save, and its backward, by name.

In: a qualified name and a schema (or a function whose annotations say it). Out: an ordinary library operator, and a
`CustomOp` in `definitions` that remembers what was registered, so that nothing is registered twice. Without a backward, a
call that wants gradients raises. New programs use `custom_op` of `library.custom`.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..ops.system.operator import Operator
from ..ops.system.packet import ops, packet
from ..ops.system.schema import Schema
from .functions import register_fake
from .inference import infer_schema
from .kernels import Kernel, table_of, written_at
from .keys import COMPOSITE_EXPLICIT, COMPOSITE_IMPLICIT
from .operator import LibraryOperator
from .registration import Library
from .stepwise_backward import Backward

DEVICE_KEYS = {"cpu": "CPU", "cuda": "CUDA"}
RESERVED = {"prim", "prims", "aten", "at", "torch", "pytorch"}
definitions: dict[str, CustomOp] = {}
_SCHEMA = re.compile(r"\w+\(.*\)\s*->\s*\S.*", re.DOTALL)
_RETURNS = ("int", "SymInt", "bool", "float", "Tensor", "Tensor[]")


class Registered(NamedTuple):
    """A function, and where it was registered."""

    func: Callable
    location: str


class CustomOp:
    """What was registered for one operator."""

    def __init__(self, lib, cpp_ns, schema, operator_name, ophandle, *, _private_access: bool = False):
        warn_deprecated()
        if not _private_access:
            raise RuntimeError("The CustomOp constructor is private: please use custom_op(...) to create a CustomOp")
        self._lib: Library | None = lib
        self._cpp_ns, self._schema, self._opname, self._ophandle = cpp_ns, schema, operator_name, ophandle
        self._qualname = f"{cpp_ns}::{operator_name}"
        self._impls: dict[str, Registered] = {}
        self._backward = Backward(self)
        self.__name__ = operator_name
        definitions[self._qualname] = self

    def __repr__(self) -> str:
        return f'<CustomOp(op="{self._qualname}")>'

    def __call__(self, *args, **kwargs):
        return self._ophandle(*args, **kwargs)

    def _destroy(self) -> None:
        if self._lib is not None:
            self._lib._destroy()
        self._lib = None
        definitions.pop(self._qualname, None)

    def _has_impl(self, kind: str) -> bool:
        return kind in self._impls

    def _get_impl(self, kind: str) -> Registered:
        return self._impls[kind]

    def _register_impl(self, kind: str, func: Callable) -> None:
        if kind in self._impls:
            raise RuntimeError(
                f"Attempting to register a {kind} impl for operator {self._qualname} that already has a {kind} impl registered from Python at "
                f"{self._impls[kind].location}. This is not supported."
            )
        self._impls[kind] = Registered(func, written_at(func))

    def _add(self, key: str, func: Callable) -> None:
        assert self._lib is not None
        self._lib.register(self._qualname, key, Kernel(func, written_at(func)))

    # ---- kernels
    def impl(self, device_types: str | Iterable[str]) -> Callable:
        """A decorator that registers a kernel for device types."""
        kinds = [device_types] if isinstance(device_types, str) else list(device_types)
        for kind in kinds:
            if kind not in DEVICE_KEYS:
                raise ValueError(
                    f"CustomOp.impl(device_types=[{kind}, ...]): we only support device_type in {DEVICE_KEYS.keys()}."
                )

        def register(function: Callable) -> Callable:
            for kind in dict.fromkeys(kinds):
                if kind not in self._impls and table_of(self._qualname).backend(DEVICE_KEYS[kind]) is not None:
                    raise RuntimeError(
                        f"impl(..., device_types={kind}): the operator {self._qualname} already has an implementation for this device type via a "
                        "pre-existing torch.library or TORCH_LIBRARY registration."
                    )
                self._register_impl(kind, function)
                self._add(DEVICE_KEYS[kind], function)
            return function

        return register

    def impl_factory(self) -> Callable:
        """A decorator that registers the kernel for calls without tensors."""

        def register(function: Callable) -> Callable:
            self._register_impl("factory", function)
            self._add(COMPOSITE_EXPLICIT, function)
            return function

        return register

    def impl_abstract(self) -> Callable:
        """A decorator that registers the rule for tensors without data."""

        def register(function: Callable) -> Callable:
            self._check_no_fake_rule()
            self._register_impl("abstract", function)
            return register_fake(self._qualname, function, lib=self._lib)

        return register

    def _check_no_fake_rule(self) -> None:
        table = table_of(self._qualname)
        if "abstract" in self._impls:
            return
        lead = f"impl_abstract(...): the operator {self._qualname} already has "
        if table.find(COMPOSITE_IMPLICIT) is not None:
            raise RuntimeError(
                f"{lead}an implementation for this device type via a pre-existing registration to DispatchKey::{COMPOSITE_IMPLICIT}. "
                f"{COMPOSITE_IMPLICIT} operators do not need an abstract impl: what they are written in has them."
            )
        if table.find("Meta") is not None:
            raise RuntimeError(
                f"{lead}a DispatchKey::Meta implementation via a pre-existing torch.library or TORCH_LIBRARY registration. Please either remove it "
                "or don't call impl_abstract."
            )

    # ---- gradients
    def impl_save_for_backward(self) -> Callable:
        """A decorator over `save(inputs, output)`, which gives what backward needs."""

        def register(function: Callable) -> None:
            self._register_gradient("save_for_backward", function)

        return register

    def impl_backward(self, output_differentiability: list[bool] | None = None) -> Callable:
        """A decorator over `backward(ctx, saved, *grads)`, which gives gradients by the names of arguments."""
        wanted = output_differentiability
        fits = isinstance(wanted, list) and all(isinstance(w, bool) for w in wanted)
        if wanted is not None and not (fits and len(wanted) == len(self._schema.returns)):
            raise RuntimeError(
                "impl_backward(output_differentiability): expected output_differentiability to be a list of bools with length equal to the number "
                f"of outputs of this CustomOp got: {wanted}"
            )

        def register(function: Callable) -> None:
            self._register_gradient("backward", function)
            self._backward.differentiable = wanted

        return register

    def _register_gradient(self, kind: str, function: Callable) -> None:
        self._check_functional()
        if not self._backward.registered:
            self._check_no_autograd_kernel()
            self._wait_for_gradient()
        self._register_impl(kind, function)

    def _wait_for_gradient(self) -> None:
        self._add("Autograd", self._backward)
        self._backward.registered = True

    def _check_functional(self) -> None:
        why, schema = None, self._schema
        if schema.is_mutable:
            why = "non-functional operator"
        elif not schema.returns:
            why = "operator with no returns"
        elif schema.returns_views:
            why = "operator that returns views"
        else:
            other = next((r.type for r in schema.returns if r.type not in _RETURNS), None)
            why = other and f"operator with return not in {list(_RETURNS)} (got {other})"
        if why:
            raise RuntimeError(
                f"Cannot use torch._custom_ops APIs to register backward formula for {why}. Got operator {self._qualname} with schema: {schema}"
            )

    def _check_no_autograd_kernel(self) -> None:
        table = table_of(self._qualname)
        lead = f"impl_backward/impl_save_for_backward: the operator {self._qualname} already has "
        if table.find(COMPOSITE_IMPLICIT) is not None:
            raise RuntimeError(
                f"{lead}an implementation for this device type via a pre-existing registration to DispatchKey::{COMPOSITE_IMPLICIT}. "
                f"{COMPOSITE_IMPLICIT} operators do not need an autograd formula: what they are written in has them."
            )
        for key in ("Autograd", "AutogradCPU", "AutogradCUDA"):
            if table.find(key) is not None:
                raise RuntimeError(
                    f"{lead}an Autograd kernel registered to DispatchKey::{key} vi a pre-existing torch.library or TORCH_LIBRARY registration. "
                    "Please either remove those registrations or don't use the torch._custom_ops APIs"
                )

    def _missing(self, backend: str) -> Kernel:
        """The error for a call that has no kernel."""
        if backend == "Undefined":
            raise NotImplementedError(
                f"{self}: There were no Tensor inputs to this operator (e.g. you passed an empty list of Tensors). If it constructs a tensor, please "
                "use CustomOp.impl_factory to register an implementation for it"
            )
        if backend in ("CPU", "CUDA"):
            kind = backend.lower()
            raise NotImplementedError(
                f"{self}: when running with device='{kind}' tensors: there is no {kind} impl registered for this CustomOp. Please register one via "
                f"CustomOp.impl(device_type='{kind}')"
            )
        return LibraryOperator.missing(self._ophandle, backend)


def warn_deprecated() -> None:
    warnings.warn(
        "torch._custom_op is deprecated, please use the equivalent torch.library API instead.",
        DeprecationWarning,
        stacklevel=3,
    )


# ---- names and schemas
def split_name(qualname: str) -> tuple[str, str]:
    """("mylib", "f") of "mylib::f"; overloads are not for this interface."""
    namespace, colons, name = qualname.partition("::")
    if not colons:
        raise ValueError(f"Expected there to be a namespace in {qualname}, such as ns::foo")
    if "." in name:
        raise ValueError(
            f"The torch.custom_ops APIs do not handle overloads, names with '.' in them; expected a name such as ns::foo. Got: {qualname}"
        )
    return namespace, name


def check_namespace(ns: str) -> None:
    if "." in ns:
        raise ValueError(f'custom_op(..., ns="{ns}"): expected ns to not contain any . (and be a valid variable name)')
    if ns in RESERVED:
        raise ValueError(f"custom_op(..., ns='{ns}'): '{ns}' is a reserved namespace, please choose something else. ")


def is_functional(schema: Schema | str) -> bool:
    """Whether an operator writes nothing, returns something, and nothing that shares memory with its arguments."""
    if isinstance(schema, str):
        from .dispatcher import parse_schema

        schema = parse_schema(schema)
    return bool(schema.returns) and not schema.is_mutable and not schema.returns_views


def _check_schema(text: str) -> Schema:
    if not _SCHEMA.fullmatch(text):
        raise AssertionError(f"Invalid function schema: {text}")
    schema = Schema(text, "")
    if any(a.name == "self" for a in schema.arguments):
        raise ValueError(
            f"custom_op does not support arguments named 'self'. Please rename your argument. Got: {schema}"
        )
    if not is_functional(schema):
        raise ValueError(
            "custom_op only supports functional operators (ops that do not mutate any inputs, do not return views of the inputs, and has at least "
            f"one return). Got the following non-functional schema: {schema}"
        )
    return schema


def _check_name(function: Any, qualname: str, name: str) -> None:
    if not inspect.isfunction(function):
        raise ValueError(f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(function)}")
    if function.__name__ != name:
        raise ValueError(
            f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but got '{function.__name__}'. Please either "
            "change the name of `func` or the qualname that is passed to `custom_op`"
        )


def _check_signature(schema: Schema, function: Callable) -> None:
    """A function beside a schema that was written by hand: the same names, and nothing said twice."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    lead, shown = "custom_op(..., manual_schema)(func): ", f"func's signature: {signature}, manual_schema: {schema}"
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(p.kind not in kinds for p in parameters):
        raise ValueError(f"{lead}positional-only args, varargs, and kwargs are not supported. {shown}")
    if any(a is not signature.empty for a in (signature.return_annotation, *(p.annotation for p in parameters))):
        raise ValueError(f"{lead}expected `func` to have no type annotations beside a manual schema. {shown}")
    names = [(p.name, p.kind is inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    if names != [(a.name, a.kwarg_only) for a in schema.arguments]:
        raise ValueError(f"{lead}expected `func`'s signature to match `manual_schema` (aside from types). {shown}")
    if any(p.default is not p.empty for p in parameters) or any(a.has_default for a in schema.arguments):
        raise ValueError(f"{lead}neither func nor manual_schema should have default arguments. {shown}")


# ---- the functions
def define(qualname: str, schema: str) -> CustomOp:
    """Define an operator by its schema, "(Tensor x) -> Tensor"."""
    namespace, name = split_name(qualname)
    _check_schema(f"{name}{schema}")
    lib = Library(namespace, "FRAGMENT")
    lib.define(f"{name}{schema}", tags=("needs_fixed_stride_order",))
    op: Any = packet(namespace, name).default  # type: ignore[attr-defined]
    result = CustomOp(lib, namespace, op.schema, name, op, _private_access=True)
    op.missing = result._missing
    result._wait_for_gradient()
    return result


def custom_op(qualname: str, func_or_schema: Callable | str | None = None) -> Any:
    """Define an operator by its schema, or by a function whose annotations say it; without either, a decorator."""
    namespace, name = split_name(qualname)
    check_namespace(namespace)

    def by_function(function: Callable) -> Callable:
        _check_name(function, qualname, name)
        define(qualname, infer_schema(function, mutates_args=()))
        return function

    if isinstance(func_or_schema, str):
        define(qualname, func_or_schema)
        return None
    return by_function if func_or_schema is None else by_function(func_or_schema)


def custom_op_handle(qualname: str, manual_schema: str | None = None) -> Callable[[Callable], CustomOp]:
    """A decorator that defines an operator and gives its `CustomOp`."""
    warn_deprecated()

    def by_function(function: Callable) -> CustomOp:
        namespace, name = split_name(qualname)
        check_namespace(namespace)
        _check_name(function, qualname, name)
        schema = infer_schema(function, mutates_args=()) if manual_schema is None else manual_schema
        if manual_schema is not None:
            _check_signature(_check_schema(f"{name}{schema}"), function)
        result = define(qualname, schema)
        result.__module__, result.__doc__ = function.__module__, function.__doc__
        return result

    return by_function


def get_op(qualname: str) -> Operator:
    """The operator of a name, however it was defined."""
    namespace, name = split_name(qualname)
    try:
        return getattr(getattr(ops, namespace), name).default
    except AttributeError:
        raise ValueError(
            f"Could not find the operator {qualname}. Please make sure you have already registered the operator and (if registered from C++) "
            "loaded it via torch.ops.load_library."
        ) from None


def find(qualname: str, also_check_torch_library: bool = False) -> CustomOp:
    """The `CustomOp` of a name; made for an operator that a library defined, where these count."""
    if qualname in definitions:
        return definitions[qualname]
    if not also_check_torch_library:
        raise RuntimeError(f'Could not find custom op "{qualname}". Did you register it via the torch._custom_ops API?')
    op = get_op(qualname)
    namespace, name = split_name(qualname)
    return CustomOp(Library(namespace, "FRAGMENT"), namespace, op.schema, name, op, _private_access=True)


def impl(qualname: str, *, device_types: str | Iterable[str] = ("cpu", "cuda"), func: Callable | None = None):
    """Register a kernel for device types; without `func`, a decorator."""
    return _applied(lambda f: find(qualname, True).impl(device_types)(f), func)


def impl_abstract(qualname: str, *, func: Callable | None = None):
    """Register the rule for tensors without data; without `func`, a decorator."""
    return register_fake(qualname, func, _stacklevel=2)


def impl_save_for_backward(qualname: str, *, func: Callable | None = None):
    """Register `save(inputs, output)`, which gives what backward needs; without `func`, a decorator."""
    return _applied(lambda f: find(qualname, True).impl_save_for_backward()(f), func)


def impl_backward(qualname: str, output_differentiability=None, *, func: Callable | None = None):
    """Register `backward(ctx, saved, *grads)`, which gives gradients by name; without `func`, a decorator."""
    return _applied(lambda f: find(qualname, True).impl_backward(output_differentiability)(f), func)


def _applied(register: Callable, func: Callable | None):
    def decorate(function: Callable) -> Callable:
        register(function)
        return function

    return decorate if func is None else decorate(func)


def destroy(qualname: str) -> None:
    """Take back all that was registered here for a name."""
    find(qualname)._destroy()
