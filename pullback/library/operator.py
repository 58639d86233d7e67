"""Operators that a library defines at run time.

A `LibraryOperator` is an ordinary operator: in the registry, under `ops.NAMESPACE.NAME`, seen by dispatch modes,
subclasses, transforms and the profiler. Its rules come from its table of kernels (see `kernels`), which may change at
any time; what follows from the table is kept until it changes. The order in which a call meets them:

    __call__            overrides (`__torch_function__`), conversion of arguments
    dispatch            autocast, a composite body, transforms
    enter               the Autograd kernel, the registered backward, or the warning that there is none
    below               dispatch modes and subclasses
    compute             the kernel of the backend, the fake rule where there is no data
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

from ..core import modes
from ..core.device import cpu
from ..core.layers import above
from ..core.modes import ambient
from ..core.tensor import CONJ, DISPATCH_SUBCLASS, FAKE, META, NEG, PLAIN, TRANSFORMED, Tensor, stride_of
from ..ops.family.base import Family
from ..ops.system import dispatch as dispatching
from ..ops.system.declaration import Declaration
from ..ops.system.inplace import bump
from ..ops.system.operator import NoShapeRule, Operator, Spec
from ..ops.system.overrides import _is_default, any_overridden, call_dispatch, call_form, call_overridden
from ..ops.system.schema import Unfit
from . import fake
from .arguments import bad_tensor, converter, mismatch, result_check
from .autograd import Formula, unregistered
from .batching import process
from .kernels import Kernel, Table, fallbacks, fallthrough_kernel, table_of, written_at
from .keys import UNDEFINED, chosen_backend, for_device, included, key_set

_NO_DATA = (
    "{}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel registered. You may have run into "
    "this message while using an operator with PT2 compilation APIs (torch.compile/torch.export); in order to use this operator with "
    "those APIs you'll need to add a fake impl. Please see the following for next steps:  "
    "https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html"
)


# What values a plain call may have for each type, without conversion.
_CLASSES = {"Tensor": PLAIN, "int": frozenset((int,)), "SymInt": frozenset((int,)), "float": frozenset((float,)), "bool": frozenset((bool,)), "str": frozenset((str,))}  # fmt: skip


class LibraryDeclaration(Declaration):
    """What the declaration of an operator whose rules are in a table says: nobody knows what it costs."""

    kind = "a library operator"

    cost: str = "compute"
    named: bool = False


class LibraryFamily(Family):
    """The family of operators whose rules are in a table."""

    declares = LibraryDeclaration

    makes_fakes = True

    def execute(self, op: Operator, args: tuple):
        return op.compute(args, *op.place(args))  # type: ignore[attr-defined]

    def run_meta(self, op: Operator, args: tuple):
        return op.run_fake(args)  # type: ignore[attr-defined]

    def meta(self, op: Operator, args: tuple):
        result = self.run_meta(op, args)
        several = isinstance(result, (tuple, list))
        specs = [_spec(t) for t in (result if several else (result,))]
        return tuple(specs) if several else specs[0]


def _spec(t) -> Spec | None:
    return Spec(t._array.shape, t.dtype, stride_of(t)) if isinstance(t, Tensor) else None


FAMILY = LibraryFamily()


class LibraryOperator(Operator):
    """An operator whose kernels are registered at run time."""

    _defined_in_python = True
    by_device: dict | None = None  # device types with kernels, where the `device` argument alone chooses
    has_effects = False  # whether calls do more than give results, though no argument is written
    counts_writes = False  # whether a call counts as one more write than its kernel makes, as PyTorch's custom_op does

    def __init__(self, namespace: str, text: str, tags: tuple, source: str):
        super().__init__(text, FAMILY, tags=tags, library=namespace)
        self.source = source
        self.layer = self.enter
        self.batching = lambda values, dims, level: process(self, values, dims, level)
        self.vmap_rule: Callable | None = None
        self.dispatch_rules = {}
        self.autocasts = {}
        arguments = self.schema.arguments
        self.converters = [converter(a) for a in arguments]
        self.check_result = result_check(self.qualified_name, self.schema)
        self.written = tuple((i, a.is_list) for i, a in enumerate(arguments) if a.writes)
        self.device_position = next((i for i, a in enumerate(arguments) if a.base == "Device"), None)
        self.positional = not any(a.is_list or a.kwarg_only for a in arguments)
        self.classes = [_CLASSES.get(a.type) for a in arguments]
        if not self.positional or None in self.classes:
            self.classes = []
        self.required = sum(not a.has_default for a in arguments)
        self.table.changed, self.table.shown = self.reset, str(self.schema)
        self.reset()

    @cached_property
    def table(self) -> Table:
        return table_of(self.qualified_name)

    def reset(self) -> None:
        """Forget what followed from the table."""
        self.kernels: dict[str, Kernel | None] = {}
        self.entries: dict[str, Callable] = {}
        self.__dict__.pop("straight", None)
        composite = self.table.composite
        self.body = None if composite is None else self.run_composite

    @cached_property
    def straight(self) -> Callable | None:
        """The CPU kernel, where plain arguments may go straight to it."""
        if self.body is not None or not self.classes or not any(c is PLAIN for c in self.classes):
            return None
        kernel, entry = self.table.own("CPU"), self.make_entry("CPU")
        passes = entry in (unregistered, _pass_by) or isinstance(entry, Formula)
        if kernel is None or kernel.function is fallthrough_kernel:
            return None
        return kernel.function if passes and not kernel.with_keyset else None

    # ---- a call
    def quick(self, args: tuple, kwargs: dict):
        """Plain CPU tensors and numbers, no gradient wanted: straight to the kernel."""
        kernel = self.straight
        if kernel is None or kwargs or included.keys.keys or not self.required <= len(args) <= len(self.classes):
            return NotImplemented
        for value, allowed in zip(args, self.classes, strict=False):
            if value.__class__ not in allowed:
                return NotImplemented
            if allowed is PLAIN and (value._keys or value._autograd is not None or value.device is not cpu):
                return NotImplemented
        if not self.written:
            return self.checked(kernel(*args))
        targets = [args[i] for i, _ in self.written]
        before = [t._counter[0] for t in targets]
        out = self.checked(kernel(*args))
        for t, version in zip(targets, before, strict=True):
            if t._counter[0] == version or self.counts_writes:
                t._counter[0] += 1
        return out

    def __call__(self, *args, **kwargs):
        if ambient.mode < modes.LISTENING:
            result = self.quick(args, kwargs)
            if result is not NotImplemented:
                return result
        if ambient.mode & modes.FUNCTION or any_overridden(args) or kwargs and any_overridden(kwargs.values()):
            return call_overridden(self, args, kwargs)
        if kwargs or len(args) != len(self.converters):
            args = self.bind(args, kwargs)
        return dispatching.dispatch(self, self.convert(args))

    def convert(self, args: tuple) -> tuple:
        out = []
        try:
            for convert, value in zip(self.converters, args, strict=True):
                out.append(convert(value))
        except Unfit:
            raise mismatch(self.full_name, self.schema, len(out), args[len(out)]) from None
        return tuple(out)

    def form(self, args: tuple) -> tuple[tuple, dict]:
        """Canonical arguments as kernels take them: defaults at the end left out, lists as lists."""
        if not self.positional:
            return call_form(self, args)
        n, arguments = len(args), self.schema.arguments
        while n > self.required and _is_default(args[n - 1], arguments[n - 1]):
            n -= 1
        return args[:n], {}

    def place(self, args: tuple) -> tuple[int, str]:
        """(keys, backend) of a call."""
        tensors = self.tensors(args)
        keys = 0
        for t in tensors:
            keys |= t._keys
        return keys, self.backend_for(tensors, keys, args)

    def backend_for(self, tensors: list[Tensor], keys: int, args: tuple) -> str:
        if not tensors and self.device_position is not None and args[self.device_position] is not None:
            kind = args[self.device_position].type
            if self.by_device is not None and kind not in self.by_device:
                raise RuntimeError(
                    f"{self.name} does not have a kernel registered for {kind}. Please use register_kernel to do so."
                )
            return for_device(kind)
        return chosen_backend(tensors, keys)

    def enter(self, args: tuple):
        """The call where PyTorch has its autograd keys."""
        tensors = self.tensors(args)
        keys = 0
        for t in tensors:
            keys |= t._keys
        backend = self.backend_for(tensors, keys, args)
        if ambient.mode & modes.AUTOCAST:
            kernel = self.autocast_kernel(backend)
            if kernel is not None:
                return self.invoke(kernel, args, backend)
        if ambient.mode & modes.BELOW_AUTOGRAD or not tensors:
            return self.below(args, keys, backend)
        entry = self.entries.get(backend)
        if entry is None:
            entry = self.entries[backend] = self.make_entry(backend)
        return entry(self, args, tensors, keys, backend)

    def autocast_kernel(self, backend: str) -> Kernel | None:
        """What is registered for calls under autocast on a backend, where autocast is on there."""
        state = ambient.autocast.get(backend.lower())
        return self.table.find(f"Autocast{backend}") if state is not None and state.enabled else None

    def make_entry(self, backend: str) -> Callable:
        kernel = self.table.autograd(backend)
        if kernel is None:
            only_composite = self.table.own(backend) is None and self.table.backend(backend) is not None
            return _composite if only_composite else unregistered
        if kernel.function is fallthrough_kernel:
            return _pass_by
        if isinstance(kernel.function, Formula):
            return kernel.function
        return lambda op, args, tensors, keys, backend: op.invoke(kernel, args, backend)

    def below(self, args: tuple, keys: int, backend: str):
        """Under autograd: dispatch modes and subclasses, else the kernel."""
        if keys & DISPATCH_SUBCLASS or ambient.mode & modes.DISPATCH:
            handled = call_dispatch(self, args)
            if handled is not NotImplemented:
                return handled
        return self.compute(args, keys, backend)

    def compute(self, args: tuple, keys: int, backend: str):
        """Run the kernel of a backend."""
        if keys:
            if keys & FAKE:
                return above.execute_fake(self, args)
            if keys & META:
                return self.run_fake(args)
            if keys & TRANSFORMED:
                return above.execute_layout(self, args, keys)
            if keys & (CONJ | NEG) and not self.written:
                args = tuple([dispatching._resolve(a) for a in args])
        kernel = self.kernel_for(backend)
        if ambient.mode & modes.AUTOCAST and self.autocasts:
            with modes.masked(modes.AUTOCAST):
                return self.invoke(kernel, args, backend)
        return self.invoke(kernel, args, backend)

    def invoke(self, kernel: Kernel, args: tuple, backend: str):
        """Call a registered function, see to the versions of what it writes, and check what it returns."""
        positional, keywords = self.form(args)
        before = self.versions(args) if self.written else None
        if kernel.with_keyset:
            out = kernel.function(key_set(backend), *positional, **keywords)
        else:
            out = kernel.function(*positional, **keywords)
        if before:
            self.see_written(before)
        return self.checked(out)

    def see_written(self, before: list[tuple[Tensor, int]]) -> None:
        """Count the writes of a kernel that wrote by other means than operators."""
        for t, version in before:
            if t._counter[0] == version:
                bump(t)

    def checked(self, out):
        """What a kernel returned, in the form that the schema says."""
        if self.check_result is not None:
            return self.check_result(out)
        if out is not None and not isinstance(out, Tensor):
            raise bad_tensor(out)
        return out

    def run_composite(self, *args):
        return self.invoke(self.table.composite, args, self.place(args)[1])

    def run_fake(self, args: tuple):
        """The results on tensors without data: the Meta kernel or fake rule, else a kernel that fits all backends."""
        kernel = self.kernel_for("Meta")
        with fake.inside(self, kernel.source, self.tensors(args)):
            return self.invoke(kernel, args, "Meta")

    # ---- the table
    def kernel_for(self, backend: str) -> Kernel:
        kernel = self.kernels.get(backend)
        if kernel is None:
            kernel = self.table.backend(backend)
            if kernel is None:
                return self.fallback(backend) or self.missing(backend)
            self.kernels[backend] = kernel
        return kernel

    def fallback(self, backend: str) -> Kernel | None:
        """The kernel for operators that have none on a backend, told that it is called for this one."""
        stack = fallbacks.get(backend)
        if not stack:
            return None
        function, keyset = stack[-1].function, stack[-1].with_keyset
        told = (lambda ks, *a, **k: function(ks, self, *a, **k)) if keyset else partial(function, self)
        return Kernel(told, stack[-1].source, keyset)

    def missing(self, backend: str) -> Kernel:
        name = self.qualified_name
        if backend == "Meta":
            raise NoShapeRule(_NO_DATA.format(name))
        available = ", ".join(key for key, stack in self.table.kernels.items() if stack)
        if backend == UNDEFINED:
            raise NotImplementedError(
                "There were no tensor arguments to this function (e.g., you passed an empty list of Tensors), but no fallback function is "
                f"registered for schema {name}.  This usually means that this function requires a non-empty list of Tensors, or that you (the "
                f"operator writer) forgot to register a fallback function.  Available functions are [{available}]."
            )
        raise NotImplementedError(
            f"Could not run '{name}' with arguments from the '{backend}' backend. This could be because the operator doesn't exist for this "
            "backend, or was omitted during the selective/custom build process (if using custom build). "
            f"'{name}' is only available for these backends: [{available}]."
        )

    def versions(self, args: tuple) -> list[tuple[Tensor, int]]:
        return [(t, t._counter[0]) for t in self.targets(args)]

    def targets(self, args: tuple) -> list[Tensor]:
        """The tensors that a call writes."""
        out: list[Tensor] = []
        for i, is_list in self.written:
            out.extend(t for t in (args[i] or () if is_list else (args[i],)) if isinstance(t, Tensor))
        return out

    def count_writes(self, args: tuple) -> None:
        if self.counts_writes:
            for t in self.targets(args):
                bump(t)

    def has_kernel_for_dispatch_key(self, key) -> bool:
        return self.table.find(getattr(key, "name", key)) is not None

    def py_impl(self, key) -> Callable:
        """A decorator that registers a kernel at a dispatch key, for as long as the operator is there."""

        def decorate(function: Callable) -> Callable:
            self.table.add(getattr(key, "name", key), Kernel(function, written_at(function)))
            return function

        return decorate

    def redispatch(self, keyset, *args, **kwargs):
        """Call the operator again from its Autograd kernel: whatever stands above the backend is done."""
        with modes.masked(0, modes.BELOW_AUTOGRAD):
            return self(*args, **kwargs)


def _composite(op: LibraryOperator, args: tuple, tensors: list, keys: int, backend: str):
    return op.invoke(op.kernel_for(backend), args, backend)


def _pass_by(op: LibraryOperator, args: tuple, tensors: list, keys: int, backend: str):
    return op.below(args, keys, backend)
