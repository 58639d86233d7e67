"""Real tensors to fake ones: everything of a tensor but its data.

In: a tensor, the mode that its fake belongs to, and perhaps a shape environment, which makes its sizes symbols. Out:
the fake. What always holds: one tensor has one fake as long as anybody holds that, and neither keeps the other alive; tensors that
share memory have fakes that do (and one version counter); a view has a fake that is a view of its base's fake; leaves
stay leaves, parameters parameters with their attributes, and conjugate and negative bits stay set.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from ...batching.batched import make_batched
from ...core import device as devices
from ...core import modes
from ...core.modes import ambient
from ...core.node import own_autograd
from ...core.storage import Storage, storage_of
from ...core.tensor import (
    CONJ,
    DISPATCH_SUBCLASS,
    FAKE,
    INFERENCE_TENSOR,
    LAYOUTS,
    NEG,
    SPARSE,
    TRANSFORMED,
    Parameter,
    Tensor,
    set_requires_grad,
    stride_of,
)
from ...ops.layout.sparse.without_data import empty_on_meta
from ...ops.make.conversion import clone_op
from ...ops.shape.views import as_strided
from ...ops.system.dispatch import dispatch
from .errors import UnsupportedFakeTensorException

if TYPE_CHECKING:
    from .mode import FakeTensorMode

KEPT_BITS = CONJ | NEG | INFERENCE_TENSOR
OWN_ATTRIBUTES = frozenset(("fake_mode", "constant", "constant_version", "trace_marks"))  # ours, not the user's


class unset_fake_temporarily(modes.other_stack):
    """Leave all dispatch modes for a block, to make real tensors inside a trace. Gives the fake mode that was active."""

    name, bit = "dispatch_modes", modes.DISPATCH

    def __enter__(self):
        self.replace([])
        return next((m for m in self.before[0] if getattr(m, "is_fake_mode", False)), None)


class unobserved(unset_fake_temporarily):
    """Leave everything that listens for a block: calls are recorded (or not: `grad`) and seen by nobody."""

    def __init__(self, grad: bool):
        self.grad = grad

    def __enter__(self) -> None:
        super().__enter__()
        ambient.restore(modes.GRAD if self.grad else 0)


class FakeTensorConverter:
    """The fakes that were made of real tensors, by identity."""

    def __init__(self, *, copy_data: bool = False, export: bool = False):
        if copy_data:
            raise NotImplementedError("FakeTensorConverter: copy_data is not implemented: fakes hold no data")
        self.export = export
        # (id of a real tensor,) -> (it, its fake); a tensor's own hash is its id, and it is no key
        self.fakes: dict[tuple[int], tuple[weakref.ref, weakref.ref]] = {}
        self.storages: weakref.WeakKeyDictionary = (
            weakref.WeakKeyDictionary()
        )  # real storage -> (fake one, [(version, fake one)])

    @property
    def tensor_memo(self) -> dict:
        return self.fakes

    @property
    def storage_memo(self) -> weakref.WeakKeyDictionary:
        return self.storages

    @property
    def meta_converter(self) -> FakeTensorConverter:
        """What remembers tensors and storages: here both are remembered in one place."""
        return self

    def known(self, tensor: Tensor) -> Tensor | None:
        """The fake that a tensor has."""
        found = self.fakes.get((id(tensor),))
        return found[1]() if found is not None and found[0]() is tensor else None

    def remember(self, tensor: Tensor, fake: Tensor) -> None:
        key, table = (id(tensor),), self.fakes

        def forget(gone: weakref.ref) -> None:
            if any(r is gone for r in table.get(key, ())):
                del table[key]

        table[key] = (weakref.ref(tensor, forget), weakref.ref(fake, forget))

    def real_of(self, fake: Tensor) -> Tensor | None:
        """The tensor that a fake was made of, if it is alive."""
        return next((made_of() for made_of, known in self.fakes.values() if known() is fake), None)

    def from_real_tensor(
        self, fake_mode: FakeTensorMode, t: Tensor, make_constant=False, shape_env=None, *, source=None,
        symbolic_context=None, trace: bool = True,
    ) -> Tensor:  # fmt: skip
        """The fake of a tensor in a mode; with `make_constant`, one that knows its number."""
        result = self.known(t)
        if result is None:
            result = self._convert(fake_mode, t, shape_env, source, symbolic_context)
            self.remember(t, result)
        if make_constant:
            fake_mode.set_constant(result, t)
        return result

    def from_meta_and_device(self, fake_mode: FakeTensorMode, t: Tensor, device, **ignored) -> Tensor:
        """The fake on a device with the metadata of a meta tensor."""
        known = self.known(t)
        if known is None:
            cls = Parameter if isinstance(t, Parameter) else Tensor
            known = fake_mode.make(tuple(t._array.shape), stride_of(t), t.dtype, devices.device(device), cls)
            self.remember(t, known)
        return known

    # ---- one tensor
    def _convert(self, mode: FakeTensorMode, t: Tensor, env, source, context) -> Tensor:
        if t._keys & DISPATCH_SUBCLASS:
            result = self._convert_subclass(mode, t, env, source)
        elif t._keys & TRANSFORMED and "wrapped" in t.__dict__:
            batch = t.__dict__["wrapped"]
            value = self.from_real_tensor(mode, batch.value, shape_env=env, source=source)
            result = make_batched(value, batch.dim, batch.level)
        elif t._keys & SPARSE and not t._keys & TRANSFORMED:
            if mode.is_tracing:
                raise UnsupportedFakeTensorException(
                    "graphs take no sparse tensors: their numbers of elements are data"
                )
            result = empty_on_meta(t)
            mode.brand(result, t.device)
            if t.requires_grad:
                set_requires_grad(result, True)
        elif t._keys & (LAYOUTS | TRANSFORMED):
            raise UnsupportedFakeTensorException(f"fake tensors of layout {t.layout} are not implemented")
        else:
            result = self._convert_dense(mode, t, env, source, context)
        if t._autograd is not None and t._autograd.edge is None and t._autograd.grad is not None:
            own_autograd(result).grad = self.from_real_tensor(
                mode, t._autograd.grad, shape_env=env, source=_part(source, "grad")
            )
        if t._autograd is not None and "grad_dtype" in t._autograd.__dict__:
            own_autograd(result).grad_dtype = t._autograd.grad_dtype
        if isinstance(t, Parameter):
            result.__dict__.update({k: v for k, v in t.__dict__.items() if k not in OWN_ATTRIBUTES})
        return result

    def _convert_dense(self, mode: FakeTensorMode, t: Tensor, env, source, context) -> Tensor:
        place = tuple(t._array.shape), stride_of(t), t._offset
        if env is not None and not (t._keys & FAKE and t.__dict__["fake_mode"].shape_env is env):
            place = env.create_symbolic_sizes_strides_storage_offset(t, source, symbolic_context=context)
        base = None if t._view_info is None else t._view_info.base
        if base is not None and base.dtype is t.dtype and not base._keys & (LAYOUTS | DISPATCH_SUBCLASS):
            fake_base = self.from_real_tensor(mode, base, shape_env=env, source=_part(source, "_base"))
            with unobserved(grad=t.requires_grad and not t.is_leaf):
                result = dispatch(as_strided, (fake_base, *place))
            result._view_info.creation = t._view_info.creation
            result._keys = result._keys & ~KEPT_BITS | t._keys & KEPT_BITS
        else:
            result = self._alone(mode, t, *place)
        if t.requires_grad and not result.requires_grad:
            set_requires_grad(result, True)
        return result

    def _alone(self, mode: FakeTensorMode, t: Tensor, shape, stride, offset) -> Tensor:
        """The fake of a tensor that is nobody's view. A result of a recorded call has a fake that is one too."""
        cls = Parameter if isinstance(t, Parameter) else Tensor
        result = mode.make(shape, stride, t.dtype, t.device, cls)
        if t.requires_grad and not t.is_leaf:
            set_requires_grad(result, True)
            with unobserved(grad=True):
                result = dispatch(clone_op, (result, None))
            result._array.shape, result._array.stride = tuple(shape), tuple(stride)
        result._offset = offset
        result._keys |= t._keys & KEPT_BITS
        result._memory, result._counter = self._storage(t)
        return result

    def _storage(self, tensor: Tensor) -> tuple:
        real = storage_of(tensor)
        if real not in self.storages:
            self.storages[real] = (Storage(None, real.length, tensor.device), [])
        storage, versions = self.storages[real]
        for counted, version in versions:  # `.data` shares the memory, and counts its writes apart
            if counted is tensor._counter:
                return storage, version
        versions.append((tensor._counter, [0]))
        return storage, versions[-1][1]

    # ---- wrappers
    def _convert_subclass(self, mode: FakeTensorMode, t: Tensor, env, source) -> Tensor:
        """A wrapper of fakes for a wrapper of tensors, by the class's own `__tensor_flatten__`."""
        if not hasattr(t, "__tensor_flatten__"):
            raise UnsupportedFakeTensorException(
                f"a tensor subclass without __tensor_flatten__ has no fake: {type(t).__name__}"
            )
        names, context = t.__tensor_flatten__()
        inner = {
            name: self.from_real_tensor(mode, getattr(t, name), shape_env=env, source=_part(source, name))
            for name in names
        }
        with unobserved(grad=False):
            result = type(t).__tensor_unflatten__(inner, context, t.shape, t.stride())
        if t.requires_grad:
            set_requires_grad(result, True)
        return result


def _part(source, name: str):
    """The source of an attribute."""
    return f"{source}.{name}" if isinstance(source, str) else None


def is_fake(value) -> bool:
    """Whether a value is a fake tensor, or a wrapper of fakes only."""
    if not isinstance(value, Tensor):
        return False
    if value._keys & FAKE:
        return True
    inner = _inner(value)
    return bool(inner) and all(map(is_fake, inner))


def maybe_get_fake_mode(value):
    """The mode of a fake tensor, or of the fakes that a wrapper holds; None of anything else."""
    if not isinstance(value, Tensor):
        return None
    if value._keys & FAKE:
        return value.__dict__["fake_mode"]
    found = {maybe_get_fake_mode(v) for v in _inner(value)}
    if len(found) > 1:
        raise RuntimeError(f"the parts of a {type(value).__name__} belong to several fake modes, or some to none")
    return found.pop() if found else None


def _inner(value: Tensor) -> list:
    if not value._keys & DISPATCH_SUBCLASS or not hasattr(value, "__tensor_flatten__"):
        return []
    return [getattr(value, name) for name in value.__tensor_flatten__()[0]]
