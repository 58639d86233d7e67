"""`torch.library`'s functions: define operators and register kernels and rules for them, by qualified name.

Each takes a name ("mylib::f"), an operator, or what `custom_op` made, and a library that owns the registration; without
one it stays for good.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..ops.system.operator import Operator
from .autograd import Formula
from .custom import CustomOpDef, Devices, check_differentiable, find_definition
from .kernels import FakeKernel, Kernel, Table, table_of
from .keys import COMPOSITE_EXPLICIT, COMPOSITE_IMPLICIT, KNOWN, DispatchKey, for_device, for_type
from .operator import LibraryOperator
from .overriding import builtin_kernel
from .registration import Library, add_dispatch_rule, library_for, lookup, source_of, split_name, types_of

Identifier = str | Operator | CustomOpDef
_NAMELESS = re.compile(r"\(.*\) -> .*")


def define(qualname: Any, schema: str, *args, lib: Library | None = None, tags=(), **kwargs):
    """`define("mylib::f", "(Tensor x) -> Tensor")`; or `define(lib, "f(Tensor x) -> Tensor")` over the kernel."""
    if isinstance(qualname, Library):
        return _define_in(qualname, schema, *args, **kwargs)
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    namespace, name = split_name(qualname)
    owner = library_for(namespace, lib)
    if not _NAMELESS.fullmatch(schema):
        raise ValueError(
            f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got "{schema}"'
        )
    owner.define(name + schema, alias_analysis="", tags=tags)


def _define_in(lib: Library, schema: str, alias_analysis: str = "") -> Callable:
    def decorate(function: Callable) -> Callable:
        lib.impl(lib.define(schema, alias_analysis), function)
        return function

    return decorate


def impl(qualname: Any, types: str | Sequence[str], func: Any = None, *, lib: Library | None = None, **kwargs) -> Any:
    """`impl("mylib::f", "cpu")` over a kernel; or `impl(lib, "f", "CPU")`."""
    if isinstance(qualname, Library):
        return _impl_in(qualname, types, kwargs.get("dispatch_key", func or ""))  # type: ignore[arg-type]
    keys = dict.fromkeys(for_type(t) for t in types_of(types))
    split_name(qualname)

    def register(function: Callable) -> None:
        owner = library_for(split_name(qualname)[0], lib)
        for key in keys:
            owner.impl(qualname, function, key)

    return register if func is None else register(func)


def _impl_in(lib: Library, name: str, dispatch_key: str = "") -> Callable:
    def decorate(function: Callable) -> Callable:
        lib.impl(name, function, dispatch_key)
        return function

    return decorate


def _resolve(op: Identifier, function: str) -> str | CustomOpDef:
    """What `custom_op` made, or a qualified name."""
    if not isinstance(op, (str, Operator, CustomOpDef)):
        raise ValueError(f"{function}({op}): got unexpected type for op: {type(op)}")
    return find_definition(op) or (op if isinstance(op, str) else op.qualified_name)  # type: ignore[union-attr]


def _library_operator(qualname: str, function: str) -> LibraryOperator:
    op = lookup(qualname)
    if not isinstance(op, LibraryOperator):
        raise NotImplementedError(f"{function}: {op} is built in; its rule cannot be replaced")
    return op


def register_kernel(
    op: Identifier, device_types: Devices, func: Callable | None = None, /, *, lib: Library | None = None
):
    """Register a kernel for device types (None: for all)."""
    found = _resolve(op, "register_kernel")
    if isinstance(found, CustomOpDef):
        return found.register_kernel(device_types, func)
    return impl(found, COMPOSITE_EXPLICIT if device_types is None else device_types, func, lib=lib)


def register_fake(
    op: Identifier,
    func: Callable | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
):
    """Register what an operator gives for tensors without data."""
    found = _resolve(op, "register_fake")
    if isinstance(found, CustomOpDef):
        return found.register_fake if func is None else found.register_fake(func)

    source = source_of(_stacklevel + 1)

    def register(function: Callable) -> Callable:
        namespace, _ = split_name(found)
        try:
            lookup(found)
        except AttributeError:
            raise RuntimeError(f"operator {found} does not exist") from None
        if not allow_override:
            _check_no_fake(found)
        kernel = FakeKernel(function, source)
        library_for(namespace, lib).register(found, "Meta", kernel, shown=found)
        return function

    return register if func is None else register(func)


def _check_no_fake(qualname: str) -> None:
    table = table_of(qualname)
    known = table.find("Meta")
    lead = f"register_fake(...): the operator {qualname} already has "
    if isinstance(known, FakeKernel):
        raise RuntimeError(f"{lead}a fake impl registered at {known.source}.")
    if known is not None:
        raise RuntimeError(
            f"{lead}a DispatchKey::Meta implementation via a pre-existing torch.library or TORCH_LIBRARY registration. Please either remove that "
            "registration or don't call register_fake."
        )
    if table.find(COMPOSITE_IMPLICIT) is not None:
        raise RuntimeError(
            f"{lead}an implementation for this device type via a pre-existing registration to DispatchKey::CompositeImplicitAutograd."
            "CompositeImplicitAutograd operators do not need a fake impl; instead, the operator will decompose into its constituents and those can have "
            "fake impls defined on them."
        )


def impl_abstract(qualname: str, func: Callable | None = None, *, lib: Library | None = None, _stacklevel: int = 1):
    """The old name of `register_fake`."""
    warnings.warn(
        "`torch.library.impl_abstract` was renamed to `torch.library.register_fake`. Please use that instead; we will remove "
        "`torch.library.impl_abstract` in a future version of PyTorch.",
        FutureWarning,
        stacklevel=2,
    )
    return register_fake(qualname, func, lib=lib, _stacklevel=_stacklevel + 1)


def register_autograd(
    op: Identifier, backward: Callable, /, *, setup_context: Callable | None = None, lib: Library | None = None
) -> None:
    """Register the backward of an operator, and what saves for it."""
    found = _resolve(op, "register_autograd")
    if isinstance(found, CustomOpDef):
        found.register_autograd(backward, setup_context=setup_context)
        return
    target = _library_operator(found, "register_autograd")
    check_differentiable(target, target)
    _refuse_keyword_tensors(target, "register_autograd")
    namespace, _ = split_name(found)
    kernel = Kernel(Formula(target, backward, setup_context), source_of(2))
    library_for(namespace, lib).register(found, "Autograd", kernel)


def _refuse_keyword_tensors(op: Operator, function: str) -> None:
    if any(a.is_tensor and a.kwarg_only for a in op.schema.arguments):
        raise NotImplementedError(
            f"{function} with kwarg-only Tensor args. In the original definition of the op, please make your tensors not kwarg-only. Got: {op.schema}"
        )


def register_vmap(op: Identifier, func: Callable | None = None, /, *, lib: Library | None = None):
    """Register `func(info, in_dims, *args)`, which runs whole batches."""
    found = _resolve(op, "register_vmap")
    if isinstance(found, CustomOpDef):
        return found.register_vmap(func)
    target = _library_operator(found, "register_vmap")
    _refuse_keyword_tensors(target, "register_vmap")

    def register(function: Callable) -> None:
        before, target.vmap_rule = target.vmap_rule, function
        if lib is not None:
            lib._undo.append(lambda: setattr(target, "vmap_rule", before))

    return register if func is None else register(func)


def register_autocast(op: Identifier, device_type: str, cast_inputs, /, *, lib: Library | None = None) -> None:
    """Under autocast of a device type, cast an operator's floating inputs to a dtype."""
    found = _resolve(op, "register_autocast")
    for_device(device_type)
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"Device type '{device_type}' does not support autocast.")
    if isinstance(found, CustomOpDef):
        found.register_autocast(device_type, cast_inputs)
        return
    target = _library_operator(found, "register_autocast")
    target.autocasts[device_type] = cast_inputs
    if lib is not None:
        lib._undo.append(lambda: target.autocasts.pop(device_type, None))


def register_torch_dispatch(
    op: Identifier, torch_dispatch_class: Any, func: Callable | None = None, /, *, lib: Library | None = None
):
    """Register `func(mode_or_class, func, types, args, kwargs)` for a dispatch mode or a tensor subclass."""
    found = _resolve(op, "register_torch_dispatch")
    if isinstance(found, CustomOpDef):
        return found.register_torch_dispatch(torch_dispatch_class, func)
    target = lookup(found)

    def register(function: Callable) -> Callable:
        undo = add_dispatch_rule(target, torch_dispatch_class, function)
        if lib is not None:
            lib._undo.append(undo)
        return function

    return register if func is None else register(func)


class SafeKernelFunction:
    """A registered kernel that can be called on its own."""

    def __init__(self, op: Operator, key: str, table: Table):
        self.op, self.key, self.table = op, key, table
        self.kernel = table.find(key) or table.backend(key)

    def call_boxed(self, keyset, *args, **kwargs):
        kernel, op = self.kernel, self.op
        if kernel is not None and not self.table.has(kernel):
            raise RuntimeError(
                f"{self!r} has been invalidated: the library that registered this kernel of {op} is gone"
            )
        bound = op.convert(op.bind(args, kwargs))
        if isinstance(op, LibraryOperator):
            return op.invoke(kernel, bound, self.key)
        return builtin_kernel(op, kernel, bound, self.key)

    def __repr__(self) -> str:
        source = self.kernel.source if self.kernel is not None else "pullback"
        return f"SafeKernelFunction(debug='registered at {source}')"


def get_kernel(op: Identifier, dispatch_key: str | DispatchKey) -> SafeKernelFunction:
    """The kernel of an operator at a dispatch key."""
    if not isinstance(op, (str, Operator, CustomOpDef)):
        raise ValueError(f"get_kernel({op}): got unexpected type for op: {type(op)}")
    name = op._qualname if isinstance(op, CustomOpDef) else op if isinstance(op, str) else op.qualified_name
    key = dispatch_key.name if isinstance(dispatch_key, DispatchKey) else dispatch_key
    if key not in KNOWN:
        raise ValueError(f"Invalid dispatch key: {key}")
    try:
        target = lookup(name)
    except AttributeError:
        raise RuntimeError(f"Could not find schema for {name}.") from None
    result = SafeKernelFunction(target, key, table_of(name))
    if result.kernel is None and (isinstance(target, LibraryOperator) or key not in ("CPU", "Meta")):
        raise RuntimeError(f"no kernel for {key} for {name}")
    return result
