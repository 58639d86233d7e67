"""Tensors as pickled values, in the form in which PyTorch writes them.

`reduce_tensor` says with which function and arguments a tensor is made again; the `rebuild_*` functions make it. A
tensor is a view of a storage: tensors that shared memory share it again. The arguments may come from a hostile file:
whatever they say, a rebuilt tensor never reads outside its storage.
"""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from typing import Any

from ..core import device as devices
from ..core import dtype as dtypes
from ..core.geometry import Geometry
from ..core.modes import ambient
from ..core.storage import Storage, UntypedStorage, check_bounds, span_bytes, storage_of, window
from ..core.tensor import (
    CONJ,
    DISPATCH_SUBCLASS,
    FAKE,
    META,
    NEG,
    NESTED,
    SPARSE,
    TRANSFORMED,
    Parameter,
    Tensor,
    set_requires_grad,
    stride_of,
    subclass_of,
    wrap,
    wrap_meta,
)
from ..ops.layout.nested.construct import nested_tensor_from_jagged
from ..ops.layout.nested.layouts import Structure, wrap_nested
from ..ops.make.storages import TypedStorage
from ..ops.system.operator import public
from ..ops.system.stored import on_foreign
from .options import options
from .storage_types import storage_type

_COMPRESSED = {
    devices.sparse_csr: ("crow_indices", "col_indices"),
    devices.sparse_bsr: ("crow_indices", "col_indices"),
    devices.sparse_csc: ("ccol_indices", "row_indices"),
    devices.sparse_bsc: ("ccol_indices", "row_indices"),
}

_OF_FAKES = ("fake_mode", "fake_device", "constant", "constant_version", "real_tensor")  # which mean nothing in a file


# ---- to pickle
def reduce_tensor(t: Tensor) -> tuple:
    """The function and arguments that make this tensor again; of a parameter, PyTorch's form for parameters."""
    if t._keys & FAKE and not (options.skip_data and options.materialize_fake_tensors):
        raise TypeError(
            "cannot pickle a fake tensor: it has no data, and belongs to the FakeTensorMode that made it; save the real tensor, or its shape "
            "inside torch.serialization.skip_data(materialize_fake_tensors=True)"
        )
    if type(t) is Parameter:
        state = _attributes(t)
        if state:
            return rebuild_parameter_with_state, (t.data, t.requires_grad, OrderedDict(), state)
        return rebuild_parameter, (t.data, t.requires_grad, OrderedDict())
    function, args = _reduce_plain(t)
    if type(t) is Tensor and not _attributes(t):
        return function, args
    return rebuild_from_type, (function, type(t), args, _state(t))


def _attributes(t: Tensor) -> dict[str, Any]:
    """What a program hung on a tensor."""
    return {k: v for k, v in t.__dict__.items() if k not in _OF_FAKES} if t._keys & FAKE else dict(t.__dict__)


def _state(t: Tensor) -> Any:
    own = type(t).__dict__.get("__getstate__")
    if own is not None:
        return own(t)
    slots = {name: getattr(t, name) for name in t.class_slots if hasattr(t, name)}
    return (_attributes(t), slots) if slots else _attributes(t) or None


def _reduce_plain(t: Tensor) -> tuple:
    if t._keys & TRANSFORMED:
        raise RuntimeError("a tensor inside vmap or another transform cannot be pickled: it has no numbers of its own")
    if t._keys & NESTED:
        if options.skip_data:
            raise RuntimeError(
                "Cannot serialize nested tensor under skip_data context manager: what it holds says which shape it has"
            )
        return _reduce_nested(t)
    if t._keys & SPARSE:
        return rebuild_sparse_tensor, (t.layout, _sparse_parts(t))
    size, stride = tuple(t._array.shape), stride_of(t)
    if t._keys & DISPATCH_SUBCLASS and isinstance(t._array, Geometry):
        return rebuild_wrapper_subclass, (
            type(t),
            t.dtype,
            size,
            stride,
            t._offset,
            t.layout,
            t.device,
            t.requires_grad,
        )
    if t._keys & META and not t._keys & FAKE:
        if options.skip_data:
            warnings.warn(
                "Serializing tensors on the meta device under skip_data context manager is a no-op", stacklevel=2
            )
        return rebuild_meta_tensor_no_storage, (t.dtype, size, stride, t.requires_grad)
    storage: Any = face_of(storage_of(t))
    bits = {name: True for name, bit in (("conj", CONJ), ("neg", NEG)) if t._keys & bit}
    extra = (bits,) if bits else ()
    hooks: OrderedDict[str, Any] = OrderedDict()  # the place of backward hooks, which are not kept
    place = (t._offset, size, stride, t.requires_grad, hooks)
    if storage_type(t.dtype) is None:
        return rebuild_tensor_v3, (storage, *place, t.dtype, *extra)
    return rebuild_tensor_v2, (TypedStorage(wrap_storage=storage, dtype=t.dtype), *place, *extra)


def face_of(storage: Storage) -> UntypedStorage:
    """One public face per storage while it is being pickled, so that pickle's memo keeps tensors together."""
    known = storage.__dict__.get("face")
    face = known() if known is not None else None
    if face is None:
        face = UntypedStorage.of(storage)
        storage.__dict__["face"] = weakref.ref(face)
    return face


def _sparse_parts(t: Tensor) -> tuple:
    """Indices, values and shape; the values say whether the whole requires grad."""
    plain = t.detach()
    if t.layout is devices.sparse_coo:
        values = _finish(plain._values().detach(), t.requires_grad)
        return plain._indices(), values, t.shape, t.is_coalesced()
    values = _finish(plain.values().detach(), t.requires_grad)
    return *(getattr(plain, name)() for name in _COMPRESSED[t.layout]), values, t.shape


def _reduce_nested(t: Tensor) -> tuple:
    """Packed numbers, and where components lie in them."""
    values, structure = t._array.values, t._array.structure
    if structure.layout is devices.jagged:
        parts = {"values": values, "offsets": structure.offsets, "lengths": structure.lengths}
        rest = {"_ragged_idx": t._array.ragged_idx, "_metadata_cache": dict(structure.extremes)}
        return rebuild_jagged_tensor, (parts | rest | {"requires_grad": t.requires_grad},)
    table = lambda rows: public("torch", "tensor")(rows, dtype=dtypes.int64)
    sizes = [tuple(s) for s in structure.sizes]
    strides, starts = structure.places()
    return rebuild_nested_tensor, (
        _finish(values.detach(), t.requires_grad),
        table(sizes),
        table(strides),
        table(starts),
    )


# ---- from pickle
def _checked(name: str, values: Any) -> tuple[int, ...]:
    result = tuple(values)
    if not all(type(v) is int for v in result):
        raise RuntimeError(f"a tensor in the file has {name} {result!r}, which are not all integers")
    return result


def _on_storage(storage: Any, dtype: dtypes.dtype, offset: Any, size: Any, stride: Any) -> Tensor:
    """A tensor on a storage, once its geometry is known to lie inside."""
    dtypes.computable(dtype)
    size, stride, (offset,) = _checked("sizes", size), _checked("strides", stride), _checked("an offset", (offset,))
    if len(size) != len(stride) or any(s < 0 for s in size):
        raise RuntimeError(f"a tensor in the file has sizes {list(size)} and strides {list(stride)}")
    memory = storage._storage
    if memory.buffer is None:  # without data a storage grows with what is put on it
        memory.length = max(memory.length, span_bytes(size, stride, offset, dtype.itemsize))
    check_bounds(memory, size, stride, offset, dtype.itemsize)
    if memory.buffer is None:
        result = wrap_meta(size, dtype, stride)
    else:
        result = on_foreign(wrap(window(memory, dtype, size, stride, offset), dtype, memory.device))
    result._memory, result._offset = memory, offset
    fake_mode = active_fake_mode()
    if fake_mode is None:
        return result
    fake = fake_mode.from_tensor(result)
    if "_checkpoint_offset" in memory.__dict__:  # where in the file its bytes are
        storage_of(fake).__dict__["_checkpoint_offset"] = memory.__dict__["_checkpoint_offset"]
    return fake


def active_fake_mode() -> Any:
    """The mode in which tensors that are loaded are fakes, which need no data."""
    return next((m for m in ambient.dispatch_modes if getattr(m, "is_fake_mode", False)), None)


def rebuild_tensor(storage: TypedStorage, storage_offset, size, stride) -> Tensor:
    """PyTorch's oldest form: the dtype is the storage's."""
    if not isinstance(storage, TypedStorage):
        raise RuntimeError(f"expected a typed storage in the file, but got {type(storage).__name__}")
    return _on_storage(storage.untyped(), storage.dtype, storage_offset, size, stride)


def _finish(t: Tensor, requires_grad: Any, metadata: Any = None) -> Tensor:
    for name, bit in (("conj", CONJ), ("neg", NEG)):
        if metadata and metadata.get(name):
            t._keys |= bit
    if requires_grad:
        set_requires_grad(t, True)
    return t


def rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None) -> Tensor:
    """A view of a typed storage."""
    return _finish(rebuild_tensor(storage, storage_offset, size, stride), requires_grad, metadata)


def rebuild_tensor_v3(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None
) -> Tensor:
    """A view of an untyped storage, for dtypes that came after typed storages."""
    if not isinstance(dtype, dtypes.dtype):
        raise RuntimeError(f"expected a dtype in the file, but got {type(dtype).__name__}")
    storage = storage.untyped() if isinstance(storage, TypedStorage) else storage
    if not isinstance(storage, UntypedStorage):
        raise RuntimeError(f"expected a storage in the file, but got {type(storage).__name__}")
    return _finish(_on_storage(storage, dtype, storage_offset, size, stride), requires_grad, metadata)


def rebuild_parameter(data, requires_grad, backward_hooks) -> Parameter:
    """A parameter around a tensor."""
    if not isinstance(data, Tensor):
        raise RuntimeError(f"expected a tensor in the file, but got {type(data).__name__}")
    return Parameter(data, bool(requires_grad))


def rebuild_parameter_with_state(data, requires_grad, backward_hooks, state) -> Parameter:
    """A parameter with attributes of its own."""
    result = rebuild_parameter(data, requires_grad, backward_hooks)
    _set_state(result, state)
    return result


def _set_state(t: Tensor, state: Any) -> Tensor:
    """Give a tensor attributes: into its dict and the slots of its class only, so that no file reaches a tensor's own fields."""
    if state is None:
        return t
    if isinstance(state, tuple) and len(state) == 2:
        state = {**(state[0] or {}), **(state[1] or {})}
    if not isinstance(state, dict):
        raise RuntimeError(f"Invalid serialized state: {state!r}")
    for name in t.class_slots:
        if name in state:
            setattr(t, name, state[name])
    t.__dict__.update({name: value for name, value in state.items() if name not in t.class_slots})
    return t


def rebuild_from_type(function, new_type, args, state) -> Tensor:
    """A tensor of a subclass, or one with attributes."""
    result = function(*args)
    if function is rebuild_jagged_tensor:
        return result
    if not isinstance(result, Tensor) or not isinstance(new_type, type) or not issubclass(new_type, Tensor):
        raise RuntimeError(f"expected a tensor of a tensor class in the file, but got {type(result).__name__}")
    if type(result) is not new_type:
        result = subclass_of(new_type, result, result.requires_grad)
    own = getattr(new_type, "__setstate__", None)
    if own is not None:
        result.__setstate__(state)
        return result
    return _set_state(result, state)


def rebuild_sparse_tensor(layout, data) -> Tensor:
    """A sparse tensor; its indices are checked."""
    if layout is devices.sparse_coo:
        indices, values, size, *coalesced = data
        make = public("torch", "sparse_coo_tensor")
        known = coalesced[0] if coalesced else None
        result = make(indices, values.detach(), size, check_invariants=True, is_coalesced=known)
    elif layout in _COMPRESSED:
        compressed, plain, values, size = data
        make = public("torch", "sparse_compressed_tensor")
        result = make(compressed, plain, values.detach(), size, layout=layout, check_invariants=True)
    else:
        raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")
    return _finish(result, values.requires_grad)


def rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad) -> Tensor:
    """A tensor on device `meta`."""
    return _finish(wrap_meta(_checked("sizes", size), dtype, _checked("strides", stride)), requires_grad)


def rebuild_wrapper_subclass(cls, dtype, size, stride, storage_offset, layout, device, requires_grad) -> Tensor:
    """A subclass without data of its own."""
    if not isinstance(cls, type) or not issubclass(cls, Tensor) or not cls.class_keys & DISPATCH_SUBCLASS:
        raise RuntimeError(f"expected a tensor class with __torch_dispatch__ in the file, but got {cls!r}")
    return Tensor._make_wrapper_subclass(
        cls, size, strides=stride, storage_offset=storage_offset, layout=layout, device=device,
        requires_grad=requires_grad, dtype=dtype,
    )  # fmt: skip


def rebuild_nested_tensor(buffer, sizes, strides, storage_offsets) -> Tensor:
    """A strided nested tensor from its packed numbers and where its components lie in them."""
    rows = tuple(tuple(tuple(row) for row in table.tolist()) for table in (sizes, strides))
    structure = Structure(devices.strided, sizes=rows[0], strides=rows[1], starts=tuple(storage_offsets.tolist()))
    if structure.packed().places() == structure.places():
        structure = structure.packed()
    return _finish(wrap_nested(buffer.detach(), structure), buffer.requires_grad)


def rebuild_jagged_tensor(parts) -> Tensor:
    """A jagged nested tensor; what else PyTorch keeps of it follows from these."""
    lengths, dim = parts["lengths"], parts.get("_ragged_idx", 1)
    result = nested_tensor_from_jagged(parts["values"].detach(), parts["offsets"], lengths, dim)
    result._array.structure.extremes.update(parts.get("_metadata_cache") or {})
    return _finish(result, parts.get("requires_grad"))


class Ignored:
    """Stands for marks of PyTorch's compiler on tensors in files: they are read over."""

    def __setstate__(self, state: Any) -> None:
        pass


def rebuild_device_tensor_from_cpu_tensor(data, dtype, device, requires_grad) -> Tensor:
    """A tensor of a device without storages, saved by way of the CPU."""
    return _finish(data.to(device=device, dtype=dtype), requires_grad)


def rebuild_device_tensor_from_numpy(data, dtype, device, requires_grad) -> Tensor:
    """A tensor of a device without storages, saved as a NumPy array."""
    return _finish(public("torch", "from_numpy")(data).to(device=device, dtype=dtype), requires_grad)


def rebuild_qtensor(*args) -> Tensor:
    raise NotImplementedError("the file holds a quantized tensor: quantized tensors are not supported")


def layout_named(name: str) -> devices.layout:
    """The layout that a file calls `torch.sparse_csr`."""
    found = vars(devices).get(str(name).rpartition(".")[2])
    if not isinstance(found, devices.layout):
        raise RuntimeError(f"unknown layout in the file: {name!r}")
    return found


REBUILDERS = {
    "_rebuild_tensor": rebuild_tensor,
    "_rebuild_tensor_v2": rebuild_tensor_v2,
    "_rebuild_tensor_v3": rebuild_tensor_v3,
    "_rebuild_parameter": rebuild_parameter,
    "_rebuild_parameter_with_state": rebuild_parameter_with_state,
    "_rebuild_sparse_tensor": rebuild_sparse_tensor,
    "_rebuild_meta_tensor_no_storage": rebuild_meta_tensor_no_storage,
    "_rebuild_wrapper_subclass": rebuild_wrapper_subclass,
    "_rebuild_nested_tensor": rebuild_nested_tensor,
    "_rebuild_device_tensor_from_cpu_tensor": rebuild_device_tensor_from_cpu_tensor,
    "_rebuild_device_tensor_from_numpy": rebuild_device_tensor_from_numpy,
    "_rebuild_qtensor": rebuild_qtensor,
}
