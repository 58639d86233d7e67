"""`custom_op`: an operator from a Python function, in one step.

In: a name, a function, and which arguments it writes. Out: a `CustomOpDef`, which is called like the function and goes
the way of every operator; kernels for other devices, the fake rule, the backward, the vmap rule and the autocast dtype
are registered on it. Defining a name again replaces the operator.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..ops.system.operator import Operator, registry
from .aliasing import check_results
from .autograd import Formula
from .inference import infer_schema
from .kernels import FakeKernel, Kernel
from .keys import COMPOSITE_EXPLICIT, for_device
from .operator import LibraryOperator
from .registration import Library, source_of

_log = logging.getLogger("torch._library.custom_ops")  # by which users know it
_definitions: dict[str, CustomOpDef] = {}

Devices = str | Sequence[str] | None


def custom_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Devices = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an operator of a function; without `fn`, a decorator."""
    if not isinstance(mutates_args, str):
        mutates_args = tuple(mutates_args) if not isinstance(mutates_args, (tuple, list, set, dict)) else mutates_args
    all_tags = () if tags is None else (tags,) if isinstance(tags, str) else tuple(dict.fromkeys(tags))

    def define(function: Callable) -> CustomOpDef:
        text = schema if schema is not None else infer_schema(function, mutates_args=mutates_args, tags=all_tags)
        namespace, short = name.split("::")
        result = CustomOpDef(namespace, short, text, function, all_tags)
        if schema is not None:
            _check_mutated(result._opoverload, mutates_args, schema)
        result.register_kernel(device_types)(function)
        return result

    return define if fn is None else define(fn)


def _check_mutated(op: Operator, mutates_args: str | Iterable[str], schema: str) -> None:
    written = {a.name for a in op.schema.arguments if a.writes}
    if written != set(mutates_args):
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}. The schema suggests that the op mutates {written}"
            "which is different from what was provided to us in `mutates_args`. Please make these consistent."
        )


def find_definition(op: str | Operator | CustomOpDef) -> CustomOpDef | None:
    """The `CustomOpDef` behind an operator or a name, if `custom_op` made it."""
    if isinstance(op, CustomOpDef):
        return op
    name = op if isinstance(op, str) else op.qualified_name
    return _definitions.get(name.removesuffix(".default"))


class NoFakeRule(RuntimeError):
    """A custom operator was called on fakes, and nobody said what it gives."""


class CustomOpDef:
    """An operator made of a Python function, and the handle to register more for it."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable, tags: tuple = ()):
        self._namespace, self._name, self._schema, self._tags, self._init_fn = namespace, name, schema, tags, fn
        self._qualname = f"{namespace}::{name}"
        self._backend_fns: dict[str | None, Callable] = {}
        self._abstract_fn: Callable | None = None
        self._disabled_kernel: set[str | None] = set()
        before = _definitions.pop(self._qualname, None)
        if before is not None:
            before._lib._destroy()
        self._lib = Library(namespace, "FRAGMENT")
        others = [t for t in tags if t != "pt2_compliant_tag"]
        self._lib.define(name + schema, tags=("pt2_compliant_tag", *others))
        self._opoverload: LibraryOperator = _looked_up(namespace, name)
        try:
            self._check_schema()
        except Exception:
            self._lib._destroy()
            raise
        self._prepare()
        _definitions[self._qualname] = self

    def _check_schema(self) -> None:
        if "out" not in self._tags and any(a.is_tensor and a.kwarg_only for a in self._opoverload.schema.arguments):
            raise NotImplementedError(
                f"custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {self._name}{self._schema}"
            )

    def _prepare(self) -> None:
        op = self._opoverload
        op.counts_writes = op.schema.is_mutable
        self._formula = Formula(op)
        self._is_inplace, self._is_out = "inplace" in self._tags, "out" in self._tags
        self._outs = tuple(a.name for a in op.schema.arguments if a.writes and a.kwarg_only)
        self._lib.register(self._qualname, "Autograd", Kernel(self._formula, source_of(4)))
        self._lib.register(self._qualname, "Meta", FakeKernel(self._fake, source_of(4)))

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    # ---- kernels
    def register_kernel(self, device_types: Devices, fn: Callable | None = None, /) -> Callable:
        """Register the function for some device types (None: for all); without `fn`, a decorator."""
        op = self._opoverload
        if device_types is not None and not op.tensor_positions:
            if op.device_position is None:
                raise ValueError(
                    "Functions without tensor inputs are required to have a `device: torch.device` argument"
                )
            op.by_device = self._backend_fns

        def register(function: Callable) -> Callable:
            for device in (device_types,) if device_types is None or isinstance(device_types, str) else device_types:
                new = device not in self._backend_fns
                self._backend_fns[device] = function
                if new:
                    key = COMPOSITE_EXPLICIT if device is None else for_device(device)
                    self._lib.register(self._qualname, key, Kernel(self._kernel(device), source_of(2)))
            return function

        return register if fn is None else register(fn)

    def _kernel(self, device: str | None) -> Callable:
        """What is registered for a device type: the function registered last, with its results checked."""
        functions, disabled, is_view = self._backend_fns, self._disabled_kernel, self._opoverload.schema.returns_views
        name, tagged = self._name, self._is_inplace or self._is_out

        def kernel(*args, **kwargs):
            function = self._init_fn if device in disabled else functions[device]
            out = function(*args, **kwargs)
            if tagged:
                self._check_tagged(function, args, kwargs, out)
            elif not is_view:
                check_results(name, args, kwargs, out, lambda: inspect.getmodule(function))
            return out

        return kernel

    def _check_tagged(self, function: Callable, args: tuple, kwargs: dict, out) -> None:
        lead = f"{self._name} (with implementation in {inspect.getmodule(function)}): An operator tagged with "
        if self._is_inplace:
            if out is not args[0]:
                raise RuntimeError(f"{lead}torch.Tag.inplace must return its first argument.")
            return
        results = out if len(self._outs) > 1 and isinstance(out, tuple) else (out,)
        if len(results) != len(self._outs) or any(r is not kwargs[n] for r, n in zip(results, self._outs, strict=True)):
            raise RuntimeError(f"{lead}torch.Tag.out must return its mutable keyword-only arguments.")

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Switch the kernel of a device type on or off inside a block; off, the function of the definition runs."""
        before = device_type in self._disabled_kernel
        action = "enable" if enabled else "disable"
        if device_type not in self._backend_fns:
            _log.warning(
                "Attempted to %s kernel for %s but no kernel was registered for this device type.", action, device_type
            )
        if before is not enabled:
            _log.warning("Attempted to %s kernel for %s but it was already %sd.", action, device_type, action)
        (self._disabled_kernel.discard if enabled else self._disabled_kernel.add)(device_type)
        try:
            yield
        finally:
            (self._disabled_kernel.add if before else self._disabled_kernel.discard)(device_type)

    # ---- rules
    def register_fake(self, fn: Callable, /) -> Callable:
        """Register what the operator gives for tensors without data."""
        if self._is_inplace or self._is_out:
            tag = "torch.Tag.inplace" if self._is_inplace else "torch.Tag.out"
            warnings.warn(
                f"The fake registration for {self} is unnecessary. Custom ops tagged with {tag} already get an autogenerated fake kernel. The provided "
                "fake impl will be used instead.",
                stacklevel=2,
            )
        self._abstract_fn = fn
        return fn

    def _fake(self, *args, **kwargs):
        if self._abstract_fn is not None:
            return self._abstract_fn(*args, **kwargs)
        op = self._opoverload
        if self._is_inplace:
            return args[0]
        if self._is_out:
            return tuple(kwargs[n] for n in self._outs) if len(self._outs) > 1 else kwargs[self._outs[0]]
        if op.schema.is_mutable and not op.schema.returns:
            return None
        raise NoFakeRule(
            f"There was no fake impl registered for {self}. This is necessary for torch.compile/export/fx tracing to work. Please use "
            f"`{self._init_fn.__name__}.register_fake` to add an fake impl."
        )

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Register `backward(ctx, *grads)`, and what saves for it: `setup_context(ctx, inputs, output)`."""
        check_differentiable(self._opoverload, self, allow_view=True)
        self._formula.backward, self._formula.setup_context = backward, setup_context

    def register_vmap(self, func: Callable | None = None) -> Any:
        """Register `func(info, in_dims, *args)`, which runs whole batches; without `func`, a decorator."""

        def register(function: Callable) -> None:
            self._opoverload.vmap_rule = function

        return register if func is None else register(func)

    def register_autocast(self, device_type: str, cast_inputs) -> None:
        """Under autocast of a device type, cast floating inputs to a dtype."""
        for_device(device_type)
        if device_type not in ("cpu", "cuda"):
            raise ValueError(f"Unknown device type: {device_type}")
        self._opoverload.autocasts[device_type] = cast_inputs

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable | None = None, /) -> Callable:
        """Register `fn(mode_or_class, func, types, args, kwargs)` for a dispatch mode or tensor subclass."""

        def register(function: Callable) -> Callable:
            self._opoverload.dispatch_rules[torch_dispatch_class] = function
            return function

        return register if fn is None else register(fn)


def _looked_up(namespace: str, name: str) -> LibraryOperator:
    short, _, overload = name.partition(".")
    return registry[f"{namespace}::{short}.{overload or 'default'}"]  # type: ignore[return-value]


def check_differentiable(op: Operator, shown: object, allow_view: bool = False) -> None:
    """Refuse a backward for an operator that writes its arguments or returns them."""
    if "out" in op.tags:
        raise RuntimeError(
            f"Cannot register autograd formula for operator tagged with torch.Tag.out: {shown}. Out variants do not support autograd."
        )
    views = any(a.alias is not None for a in (*op.schema.arguments, *op.schema.returns))
    nothing = not op.schema.returns
    if op.schema.is_mutable or views and not allow_view or nothing:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {shown} with schema {op.schema}. Please create a functional operator and "
            "register an autograd formula for that."
        )


__all__ = ["CustomOpDef", "check_differentiable", "custom_op", "find_definition"]
