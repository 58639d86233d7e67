"""Fake tensors: everything of a tensor but its data.

A fake tensor is an ordinary tensor (or parameter) with the key `FAKE`: its `array` is a `Geometry`, its `device` is the
one the real tensor would be on, and `fake_mode` is the `FakeTensorMode` that made it. Every operator runs on fakes
through the one shape rule it has (`Family.meta`), so what fakes say is what kernels produce. Inside the mode, factories
make fakes too. Sizes may be symbolic where the mode has a `shape_env`. What depends on data (`item`, `nonzero`) makes
an unbacked symbol there, and raises an error that names the operator otherwise (`fake_rules`). Fakes of a single number
that the program wrote down (`torch.tensor(3)`) keep it, and so does what is computed of such numbers alone.
"""

from __future__ import annotations

from ...core import device as devices
from ...core import modes
from ...core.geometry import Geometry, contiguous_strides
from ...core.layers import above, extend
from ...core.modes import ambient
from ...core.tensor import (
    DISPATCH_SUBCLASS,
    FAKE,
    INFERENCE_TENSOR,
    META,
    NO_DATA_POINTER,
    SPARSE,
    PartialProperty,
    Tensor,
    assemble,
    stride_of,
)
from ...core.tree import tree_leaves
from ...ops.family.factory import Factory
from ...ops.family.view import alias
from ...ops.layout.sparse.table import without_data
from ...ops.layout.sparse.without_data import parts_of
from ...ops.make.lifting import lift_fresh, lift_fresh_copy
from ...ops.shape.view_geometry import NEEDS_A_COPY
from ...ops.system import dispatch as dispatching
from ...ops.system import inplace
from ...ops.system.execute import mark_inference
from ...ops.system.operator import DataDependent, NoShapeRule, Operator, Spec
from ...ops.system.overrides import TorchDispatchMode, call_subclasses
from ...ops.system.return_types import pack_results
from ..front.config import ahead as config
from .cache import Bypass, CacheKey, CacheKeyState, DispatchCache, DispatchCacheInfo, key_of
from .conversion import FakeTensorConverter, is_fake, maybe_get_fake_mode, unset_fake_temporarily
from .errors import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorDeviceMismatchError,
    MetadataMismatchError,
    UnsupportedFakeTensorException,
    UnsupportedMutationAliasingException,
    UnsupportedOperatorException,
    ViewMismatch,
    mixed_modes,
    real_among_fakes,
    refuse_meta,
)
from .facts import Facts, facts_of, has_accelerator, result_device

_cache = DispatchCache()


class _FakeTensorMeta(type):
    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, Tensor) and bool(value._keys & FAKE)

    def __call__(cls, fake_mode, elem, device, constant=None, **options):
        result = fake_mode.make(elem._array.shape, elem.stride(), elem.dtype, devices.indexed(device))
        if constant is not None:
            fake_mode.set_constant(result, constant)
        return result


class FakeTensor(metaclass=_FakeTensorMeta):
    """The class that fake tensors answer to: `isinstance(x, FakeTensor)`. They are ordinary tensors with a key."""

    @staticmethod
    def from_tensor(t: Tensor, fake_mode: FakeTensorMode) -> Tensor:
        return fake_mode.from_tensor(t)


class FakeTensorMode(TorchDispatchMode):
    """Inside, operators compute shapes, dtypes and devices, and touch no data."""

    is_fake_mode = True
    symbols_on_demand = False  # whether an environment is made as soon as something has a size that data decides

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env=None,
        static_shapes: bool | None = None,
        export: bool = False,
    ):
        super().__init__()
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env = shape_env
        self.static_shapes = static_shapes if static_shapes is not None else shape_env is None
        self.export = export
        self.fake_tensor_converter = FakeTensorConverter(export=export)
        self.cache_enabled = True
        self.allow_meta = config.fake_tensor_allow_meta
        self.entered: list[FakeTensorMode | None] = []

    @property
    def is_tracing(self) -> bool:
        """Whether the mode serves a tracer, which meets real tensors too. Graphs take and make no sparse tensors: how many
        elements one has is data."""
        return self.allow_non_fake_inputs or self.shape_env is not None

    @property
    def avoid_device_init(self) -> bool:
        """Whether nothing but the CPU can be used here, so that a fake of another device must not ask for one."""
        return not has_accelerator()

    # ---- what was computed before
    @classmethod
    def cache_info(cls) -> DispatchCacheInfo:
        """How often shapes were found in the cache that all modes share."""
        return _cache.info()

    @classmethod
    def cache_clear(cls) -> None:
        """Forget every result, and count from nothing."""
        _cache.clear()

    @staticmethod
    def bypass(reason: str) -> None:
        """Count a call that goes past the cache."""
        _cache.bypasses[reason] += 1

    def _cache_key(self, state: CacheKeyState, func: Operator, args, kwargs: dict) -> CacheKey:
        """The key of a call of an operator; ValueError where it has none."""
        try:
            return CacheKey(key_of(func, (*args, *kwargs.items()), self.shape_env is not None))
        except Bypass as reason:
            raise ValueError(f"{func}: {reason}, so that the call has no key") from None

    # ---- making fakes
    def make(self, shape, stride, dtype, device, cls=Tensor) -> Tensor:
        """A fake with memory of its own."""
        if not self.allow_meta:
            refuse_meta(device)
        array = Geometry(shape, stride, dtype.numpy)
        t = assemble(cls, array, dtype, device, META | FAKE, None, [0], None, 0)
        t.__dict__["fake_mode"] = self
        return t

    def brand(self, t, device) -> None:
        """Say of a tensor that a shape rule made that it is a fake of this mode, on `device`."""
        if isinstance(t, Tensor):
            if not self.allow_meta:
                refuse_meta(device)
            t._own_device = device
            t._keys |= FAKE | META
            t.__dict__["fake_mode"] = self
            if t._keys & SPARSE:
                for part in parts_of(t):
                    self.brand(part, device)

    def from_tensor(
        self,
        tensor: Tensor,
        *,
        static_shapes: bool | None = None,
        source=None,
        symbolic_context=None,
        trace: bool = True,
    ) -> Tensor:
        """The fake of a tensor. One tensor has one fake; tensors that share memory have fakes that do."""
        if tensor._keys & FAKE and tensor.__dict__["fake_mode"] is self:
            return tensor
        static = self.static_shapes if static_shapes is None else static_shapes
        return self.fake_tensor_converter.from_real_tensor(
            self, tensor, shape_env=None if static else self.shape_env, source=source, symbolic_context=symbolic_context
        )

    # ---- running operators
    def handle(self, op: Operator, args: tuple):
        """An operator inside the mode, from dispatch."""
        tensors = op.tensors(args)
        for t in tensors:
            if not t._keys & FAKE or t.__dict__["fake_mode"] is not self:
                if any(s._keys & DISPATCH_SUBCLASS for s in tensors):
                    with self:  # a wrapper's own rule comes first; what it calls is ours
                        return call_subclasses(op, args)
                args = self.admit(op, args)
                tensors = op.tensors(args)
                break
        return self.run(op, args, tensors) if op.inplace_of is None else self.write(op, args, tensors)

    def admit(self, op: Operator, args: tuple) -> tuple:
        """Arguments that are all fakes of this mode: real tensors are converted where that is allowed."""
        if op is lift_fresh:
            return args
        if op is lift_fresh_copy and not args[0]._keys & FAKE:  # of a graph's constant
            return (self.lifted(args[0]),)
        for t in op.tensors(args):
            if t._keys & FAKE:
                if t.__dict__["fake_mode"] is not self:
                    raise mixed_modes(t, self)
            elif not self.allow_non_fake_inputs:
                raise real_among_fakes(op, args)
        return tuple(self._fake_of(a) for a in args)

    def lifted(self, t: Tensor) -> Tensor:
        """A fake of a tensor that is nobody's but the call's, with its number if that is all it holds."""
        fake = self.make(tuple(t._array.shape), stride_of(t), t.dtype, t.device)
        self.set_constant(fake, t)
        return fake

    def _fake_of(self, value):
        if isinstance(value, Tensor):
            return self.from_tensor(value)
        if value.__class__ is tuple and any(isinstance(v, Tensor) for v in value):
            return tuple(self._fake_of(v) for v in value)
        return value

    def run(self, op: Operator, args: tuple, tensors: list):
        """The results of an operator on fake arguments."""
        facts = facts_of(op)
        if facts.own is not None:
            return facts.own(self, op, args)
        if op.backend is not None:  # a shape rule registered at run time
            result = op.backend(args, FAKE | META)
            if result is not NotImplemented:
                return result
        for t in tensors:
            if t._keys & SPARSE:
                return self._sparse_results(op, args, result_device(op, facts, args, tensors))
        try:
            out = self._cached_results(op, facts, args, tensors)
        except DataDependent as reason:
            return self._unbacked_results(op, args, result_device(op, facts, args, tensors), reason)
        except NoShapeRule as reason:
            raise UnsupportedOperatorException(op) from reason
        except RuntimeError as reason:
            if reason.args != (NEEDS_A_COPY,):
                raise
            raise ViewMismatch(tensors[0], args[1], reason) from None
        if getattr(out, "_keys", 0) & SPARSE and self.is_tracing:
            raise UnsupportedOperatorException(op)
        if ambient.mode & modes.INFERENCE and not (
            (op.is_view or op.schema.returns_views) and not tensors[0]._keys & INFERENCE_TENSOR
        ):
            mark_inference(out, args)
        known = "constant" in tensors[0].__dict__ if tensors else op.family.takes_numbers
        if known and facts.foldable:
            self._fold(op, args, tensors, out)
        return out

    # ---- what a call gives
    def _cached_results(self, op: Operator, facts: Facts, args: tuple, tensors: list):
        """The results of a call, by the recipe of one like it where there is one."""
        if facts.uncached is not None or not self.cache_enabled:
            _cache.bypasses[facts.uncached or "cache disabled"] += 1
            return self._fresh_results(op, facts, args, tensors)
        try:
            key = key_of(op, args, self.shape_env is not None)
        except Bypass as reason:
            _cache.bypasses[str(reason)] += 1
            return self._fresh_results(op, facts, args, tensors)
        recipe = _cache.recipes.get(key)
        if recipe is not None:
            _cache.hits += 1
            return self._follow(op, facts, args, recipe)
        out = self._fresh_results(op, facts, args, tensors)
        _cache.keep(key, _recipe(out))
        return out

    def _follow(self, op: Operator, facts: Facts, args: tuple, recipe):
        if facts.is_view:
            source = args[0]
            if recipe.__class__ is list:
                return tuple([alias(source, shape, stride, offset) for shape, stride, offset, _, _ in recipe])
            return alias(source, *recipe[:3])
        if recipe.__class__ is not list:
            return self.make(recipe[0], recipe[1], recipe[3], recipe[4])
        out = [None if r is None else self.make(r[0], r[1], r[3], r[4]) for r in recipe]
        return out if facts.many else pack_results(op, out)

    def _fresh_results(self, op: Operator, facts: Facts, args: tuple, tensors: list):
        device = result_device(op, facts, args, tensors)
        if self.shape_env is None:
            return self._results(op, facts, args, device)
        return self._symbolic_results(op, facts, args, device)

    def _results(self, op: Operator, facts: Facts, args: tuple, device):
        if facts.by_spec:
            spec = op.family.meta(op, args)
            if spec.__class__ is Spec:
                return self._from_spec(spec, device)
            result = [None if s is None else self._from_spec(s, device) for s in spec]
            return result if facts.many else pack_results(op, result)
        out = op.family.run_meta(op, args)
        if not op.family.makes_fakes:
            for t in out if isinstance(out, (tuple, list)) else (out,):
                self.brand(t, device)
        return out

    def _symbolic_results(self, op: Operator, facts: Facts, args: tuple, device):
        """The same where sizes may be unbacked symbols: shape rules take them for ordinary sizes, neither 0 nor 1."""
        env = self.shape_env
        before, env.sizes_assumed = env.sizes_assumed, True
        try:
            out = self._results(op, facts, args, device)
        finally:
            env.sizes_assumed = before
        if isinstance(op.family, Factory):
            for size in out._array.shape:  # a number that data decides, once it is used as a size, is known to be one
                if size.__class__ is not int and getattr(size.node.expr, "is_unbacked", False):
                    env.constrain_for_size(size)
        return out

    def _sparse_results(self, op: Operator, args: tuple, device):
        out = without_data(op, args)
        for t in out if isinstance(out, (tuple, list)) else (out,):
            self.brand(t, device)
        return out

    def _from_spec(self, spec: Spec, device) -> Tensor:
        shape = spec.shape
        return self.make(shape, contiguous_strides(shape) if spec.stride is None else spec.stride, spec.dtype, device)

    def _unbacked_results(self, op: Operator, args: tuple, device, reason: DataDependent):
        """Results whose sizes are symbols that stand for nothing known."""
        from .rules import UNBACKED_RULES

        rule = UNBACKED_RULES.get(op)
        if self.shape_env is None or rule is None or not self.shape_env.allow_dynamic_output_shape_ops:
            raise DynamicOutputShapeException(op) from reason
        _cache.bypasses["unrepresented symbol in output"] += 1
        spec = rule(self.shape_env, *args)
        if spec.__class__ is Spec:
            return self._from_spec(spec, device)
        return pack_results(op, [self._from_spec(s, device) for s in spec])

    def write(self, op: Operator, args: tuple, tensors: list) -> Tensor:
        """An in-place operator: everything that storing a real result would check, and one more write counted."""
        functional, target = op.inplace_of, args[0]
        if functional.is_view:
            _cache.bypasses["inplace view"] += 1
            return op.family.execute(op, args)
        if any(t.device is not target.device for t in tensors):
            args = self._beside(target, args)
            tensors = op.tensors(args)
        number = None
        if "constant" in target.__dict__ and facts_of(functional).foldable:
            number = self._folded(functional, args, tensors)
        result = self.run(functional, args, tensors)
        inplace.check_result(op, target, result)
        if functional.declared.expanded is None:
            inplace.check_overlap(target)
        inplace.write(target, result)
        if number is not None:
            self.set_constant(target, number.to(target.dtype))
        return target

    def _beside(self, target: Tensor, args: tuple) -> tuple:
        """The arguments of a write, those without data where the target is: the target stays on its device."""

        def moved(value):
            apart = isinstance(value, Tensor) and value.device is not target.device
            if not apart or devices.meta not in (value.device, target.device) or value._keys & SPARSE:
                return value
            return self.make(value._array.shape, value.stride(), value.dtype, target.device)

        return tuple(moved(a) for a in args)

    # ---- numbers that are known
    def set_constant(self, t: Tensor, number: Tensor) -> None:
        """Remember the number of a fake of one element, until something is written to its memory."""
        if number._array.size <= 1:
            t.__dict__["constant"], t.__dict__["constant_version"] = number, t._counter[0]

    def _fold(self, op: Operator, args: tuple, tensors: list, out) -> None:
        """Compute with the numbers of arguments that are all known."""
        if isinstance(out, Tensor) and out._array.size == 1:
            number = self._folded(op, args, tensors)
            if number is not None:
                self.set_constant(out, number)

    def _folded(self, op: Operator, args: tuple, tensors: list) -> Tensor | None:
        numbers = [constant_of(t) for t in tensors]
        if any(n is None for n in numbers):
            return None
        supply = iter(numbers)

        def real(value):
            if isinstance(value, Tensor):
                return next(supply)
            if isinstance(value, devices.device):
                return devices.cpu  # the number is here, wherever the fake is
            return tuple(map(real, value)) if value.__class__ is tuple else value

        keys = 0
        for n in numbers:
            keys |= n._keys
        with unset_fake_temporarily():
            return dispatching.execute(op, tuple(map(real, args)), keys)

    def higher_order(self, op, args: tuple, kwargs: dict):
        """An operator that takes functions."""
        return op.fake_rule(self, *args, **kwargs)

    # ---- the mode itself
    def __enter__(self):
        """Below all other modes, whenever they were entered; of two fake modes the inner one counts."""
        stack = ambient.dispatch_modes
        at = next((i for i, m in enumerate(stack) if isinstance(m, FakeTensorMode)), None)
        if at is None:
            stack.insert(0, self)
        self.entered.append(None if at is None else stack[at])
        if at is not None:
            stack[at] = self
        ambient.switch(modes.DISPATCH, True)
        return self

    def __exit__(self, *exc) -> None:
        stack, before = ambient.dispatch_modes, self.entered.pop()
        at = next(i for i, m in enumerate(stack) if m is self)
        if before is None:
            del stack[at]
        else:
            stack[at] = before
        ambient.switch(modes.DISPATCH, stack)


def _recipe(out):
    """What makes results like these: (shape, stride, offset, dtype, device), a list of them for several."""
    if isinstance(out, (tuple, list)):
        return [None if t is None else _recipe(t) for t in out]
    return out._array.shape, out._array.stride, out._offset, out.dtype, out.device


def constant_of(t: Tensor) -> Tensor | None:
    """The real tensor of one number that a fake is known to hold now."""
    facts = t.__dict__
    return facts["constant"] if "constant" in facts and facts["constant_version"] == t._counter[0] else None


def _move(t: Tensor, value) -> None:
    """`fake.fake_device = device`: the device that a fake says it is on, with its number."""
    if t._keys & FAKE:
        t._own_device = devices.indexed(value)
    else:
        t.__dict__["fake_device"] = value


def _of_fakes(name: str, read, write=None) -> property:
    """An attribute that fake tensors have, and others have not, unless they set one."""

    def get(self: Tensor):
        if self._keys & FAKE:
            return read(self)
        if name not in self.__dict__:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return self.__dict__[name]

    return PartialProperty(get, write or (lambda self, value: self.__dict__.__setitem__(name, value)))


extend(
    Tensor,
    __name__,
    constant=_of_fakes("constant", constant_of),
    fake_device=_of_fakes("fake_device", lambda t: t.device, _move),
)


# ---- outside the mode
def _mode_of(op: Operator, args: tuple) -> FakeTensorMode:
    return next(t.__dict__["fake_mode"] for t in op.tensors(args) if t._keys & FAKE)


def execute_fake(op: Operator, args: tuple):
    """An operator on at least one fake tensor, outside the mode."""
    mode = _mode_of(op, args)
    args = mode.admit(op, args)
    return mode.run(op, args, op.tensors(args))


def write_fake(op: Operator, args: tuple) -> None:
    """An in-place operator on at least one fake tensor, outside the mode."""
    mode = _mode_of(op, args)
    args = mode.admit(op, args)
    mode.write(op, args, op.tensors(args))


def run_body(op: Operator, args: tuple):
    """A composite operator: on fakes outside the mode, inside it, since its body may call factories."""
    if not ambient.mode & modes.DISPATCH:
        for t in op.tensors(args):
            if t._keys & FAKE:
                with t.__dict__["fake_mode"]:
                    return op.body(*args)
        return op.body(*args)
    for mode in reversed(ambient.dispatch_modes):
        composite = getattr(mode, "composite", None)
        if composite is not None:  # a trace, which may have a decomposition of its own, or keep the operator whole
            result = composite(op, args)
            return op.body(*args) if result is NotImplemented else result
    return op.body(*args)


above.execute_fake = execute_fake
above.run_body = run_body
above.write_fake = write_fake


def fake_mode_of(values) -> FakeTensorMode | None:
    """The fake mode of the first fake among some values, or the one that is active."""
    for v in values:
        if isinstance(v, Tensor) and v._keys & (FAKE | DISPATCH_SUBCLASS):
            mode = maybe_get_fake_mode(v)
            if mode is not None:
                return mode
    return active_fake_mode()


def active_fake_mode() -> FakeTensorMode | None:
    """The fake mode that is entered, if any."""
    return next((m for m in ambient.dispatch_modes if isinstance(m, FakeTensorMode)), None)


def detect_fake_mode(inputs=None) -> FakeTensorMode | None:
    """The one fake mode of what is active and of the fakes in nested `inputs`; an error where there are two."""
    found = active_fake_mode()
    for v in tree_leaves(inputs):
        mode = maybe_get_fake_mode(v)
        if mode is not None:
            if found is not None and mode is not found:
                raise AssertionError(f"fake mode ({mode}) from fake tensor input doesn't match mode ({found})")
            found = mode
    return found


__all__ = [
    "NO_DATA_POINTER",
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorConverter",
    "FakeTensorDeviceMismatchError",
    "FakeTensorMode",
    "MetadataMismatchError",
    "UnsupportedFakeTensorException",
    "UnsupportedMutationAliasingException",
    "UnsupportedOperatorException",
    "detect_fake_mode",
    "is_fake",
    "maybe_get_fake_mode",
    "unset_fake_temporarily",
]
