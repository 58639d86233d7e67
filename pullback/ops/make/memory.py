"""The memory under a tensor: `set_`, `resize_`, storages, sharing, element-wise Python calls, deep copies and pickles."""

from __future__ import annotations

import numpy as np

from ...core import device as devices
from ...core.arrays import assign, library
from ...core.cupy_library import device_count, pinned_like
from ...core.geometry import Geometry, contiguous_strides
from ...core.layers import above, extend
from ...core.modes import (
    BELOW_AUTOGRAD,
    CAPTURE,
    DISPATCH,
    ambient,
    is_grad_enabled,
    outside_transforms,
    whole_in_graphs,
)
from ...core.node import MissingError, Node, edge_of, next_sequence, own_autograd, requires_grad
from ...core.promotion import result_type
from ...core.shared_memory import share
from ...core.storage import UntypedStorage, check_addressable, check_bounds, span_bytes, storage_of, window
from ...core.tensor import (
    DISPATCH_SUBCLASS,
    FAKE,
    LAYOUTS,
    META,
    NESTED,
    SPARSE,
    STORED,
    TRANSFORMED,
    Tensor,
    innermost,
    set_requires_grad,
    stride_of,
    subclass_of,
    view_of,
    wrap,
    wrap_meta,
)
from ..family.base import composite
from ..shape.views import alias as alias_op
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.inplace import bump, check_inference_write, check_writable, resize, told_mode
from ..system.operator import Operator, export, public
from ..system.overrides import (
    DisableTorchFunctionSubclass,
    call_overridden,
    disable_torch_function,
    has_torch_function_unary,
    keeps_type,
)
from ..system.scalars import c_name
from ..system.schema import wrong_element
from ..system.stored import on_foreign
from .factories import format_strides, sizes_from
from .like import like_strides
from .memory_operators import declare, is_heard, tell
from .storages import TypedStorage


class Forgotten(Node):
    """The history of a tensor that was given other memory: nobody says what its gradient is a gradient of."""

    def run(self, grads: list) -> tuple:
        raise MissingError("derivative for set_ is not implemented")

    def saved_state(self, differentiable: bool = False) -> dict:
        return {}


Forgotten.__name__ = "NotImplemented"


def has_tangents(t: Tensor) -> bool:
    """Whether a tensor, or the value that transforms wrap, carries tangents."""
    a = innermost(t)._autograd
    return a is not None and bool(a.tangents)


def _forgetting(self, source) -> Forgotten | None:
    """The node that a tensor's history becomes when it gets other memory; None where no gradient is wanted. Refuses leaves,
    views that may not be written, and tangents."""
    tensors = [t for t in (self, source) if isinstance(t, Tensor)]
    if any(map(has_tangents, tensors)):
        raise NotImplementedError(
            "Trying to use forward AD with set_ that does not support it because it has not been implemented yet."
        )
    if not is_grad_enabled() or ambient.mode & BELOW_AUTOGRAD or not any(map(requires_grad, tensors)):
        return None
    check_writable(self)
    node = Forgotten()
    node.edges, node.saved, node.sequence = tuple(map(edge_of, tensors)), [], next_sequence()
    return node


def _set_(self, source=None, storage_offset=0, size=None, stride=None) -> Tensor:
    node = _forgetting(self, source)
    check_inference_write(self)
    if (self._keys | (source._keys if isinstance(source, Tensor) else 0)) & TRANSFORMED:
        raise RuntimeError(
            "vmap: aten::set_ is not possible because a tensor that is being vmapped over stands for all examples, and has no memory of its "
            "own to give or to lose. Please use out-of-place operators instead."
        )
    if source is None and ambient.mode & DISPATCH:
        source = public("torch", "empty")(0, dtype=self.dtype, device=self.device)  # in the sight of what traces
    if source is None:
        fresh = (
            wrap_meta((0,), self.dtype)
            if self._keys & META
            else wrap(library(self.device).empty(0, self.dtype.numpy), self.dtype, self.device)
        )
        self._array, self._memory, self._offset = fresh._array, storage_of(fresh), 0
    elif isinstance(source, Tensor):
        if (source._keys ^ self._keys) & META:
            raise RuntimeError(
                "set_(): a tensor with data and one without (on device meta, or fake) cannot share memory"
            )
        if source.dtype is not self.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {c_name(source.dtype)} to a tensor of type {c_name(self.dtype)}"
            )
        told_mode("set_memory", self, source, _set_tensor)
        self._array, self._memory, self._offset = source._array, storage_of(source), source._offset
        self._keys = self._keys & ~STORED | source._keys & STORED
    else:
        if isinstance(source, TypedStorage) and source.dtype is not self.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {c_name(self.dtype)} or an UntypedStorage, but got type {source.dtype.scalar_name} "
                "for argument 1 'storage'"
            )
        storage = (source.untyped() if isinstance(source, TypedStorage) else source)._storage
        if size is None:
            size = (storage.length // self.dtype.itemsize,)
        size = (size,) if isinstance(size, int) else tuple(size)

        if stride is None and size != self._array.shape:  # a new shape, laid out here, has the memory it needs
            stride = contiguous_strides(size)
            need = span_bytes(size, stride, storage_offset, self.dtype.itemsize)
            if need > storage.length and storage.may_resize:
                UntypedStorage.of(storage).resize_(need)
        stride = tuple(stride) if stride is not None else contiguous_strides(size)
        check_bounds(storage, size, stride, storage_offset, self.dtype.itemsize)
        told_mode("set_storage", self, storage, size, stride, storage_offset)
        self._array, self._memory, self._offset = (
            window(storage, self.dtype, size, stride, storage_offset),
            storage,
            storage_offset,
        )
        on_foreign(self)
    bump(self)
    if self._autograd is not None and self._autograd.accumulator is not None and not self._keys & FAKE:
        self._autograd.accumulator = None  # what was recorded on the old memory is not this tensor's any more
    return _forgotten(self, node)


def _forgotten(self, node: Forgotten | None) -> Tensor:
    """A tensor that has other memory now, with the history that says so, where a gradient is wanted."""
    if node is not None:
        node.outputs = ((self._array.shape, self.dtype, self.device),)
        above.rebase_history(self, (node, 0))
    return self


_set_in_graphs = whole_in_graphs(_set_)


@front("Tensor.set_")
def set_(self, source=None, storage_offset=0, size=None, stride=None) -> Tensor:
    """Make this tensor read another tensor's or storage's memory."""
    if isinstance(size, str):
        raise TypeError("set_(): argument 'size' (position 3) must be tuple of ints, not str")
    if wrong := wrong_element("set_", "size", " (position 3)", size):
        raise wrong
    if isinstance(source, Tensor) and (size is not None or storage_offset):
        storage_offset, source = storage_offset + source._offset, _storage_of_part(self, source, size)
    if ambient.mode & CAPTURE and source is not None and not isinstance(source, Tensor):
        ambient.captures[-1].refuse("it gives a tensor the memory of a storage")
    if is_heard(self, source):
        node = _forgetting(self, source)
        told = tell(*_set_call(self, source, storage_offset, size, stride))
        if told is not NotImplemented:
            return _forgotten(self, node) if node is not None else told
    return _set_in_graphs(self, source, storage_offset, size, stride)


def _storage_of_part(self, source: Tensor, size) -> UntypedStorage:
    """The storage of a tensor of which another is to have a part."""
    if size is None:
        raise TypeError("set_(): a tensor and an offset need a size, too: set_(source, storage_offset, size, stride)")
    if source.dtype is not self.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {c_name(source.dtype)} to a tensor of type {c_name(self.dtype)}"
        )
    if not source.is_contiguous():
        raise RuntimeError("passed in tensor to be used as storage must be contiguous")
    return source.untyped_storage()


def _set_call(self, source, storage_offset, size, stride) -> tuple[Operator, tuple]:
    """The overload of `set_` for some arguments, and those it takes."""
    if source is None:
        return _set_default, (self,)
    if isinstance(source, Tensor):
        return _set_tensor, (self, source)
    source = source.untyped() if isinstance(source, TypedStorage) else source
    if size is None:
        return _set_whole_storage, (self, source)
    size = (size,) if isinstance(size, int) else tuple(size)
    return _set_storage, (self, source, storage_offset, size, tuple(stride or ()))


_set_default = declare("set_(Tensor(a!) self) -> Tensor(a!)", _set_)
_set_tensor = declare("set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)", _set_)
_set_whole_storage = declare("set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)", _set_)
declare(
    "set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, SymInt[] size, SymInt[] "
    "stride=[]) -> Tensor(a!)",
    lambda self, source, offset, size, stride: set_(self, source, offset, size, stride or None),
)
_set_storage = declare(
    "set_.source_Storage_storage_offset(Tensor(a!) self, Storage source, SymInt storage_offset, SymInt[] size, SymInt[] "
    "stride=[]) -> Tensor(a!)",
    lambda self, source, offset, size, stride: _set_(self, source, offset, size, stride or None),
)


@front("Tensor.resize_")
@whole_in_graphs
def resize_(self, *sizes, memory_format=None) -> Tensor:
    """Change the shape in place; the storage grows if it must."""
    shape = sizes_from("resize_", sizes)
    if is_heard(self):
        _refuse_history(self)
        told = tell(_resize_to, (self, shape, memory_format))
        if told is not NotImplemented:
            return told
    return _resize_(self, shape, memory_format)


def _refuse_history(self) -> None:
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if has_tangents(self):
        raise RuntimeError("cannot resize variables that has a forward grad")


def _resize_(self, shape: tuple, memory_format) -> Tensor:
    _refuse_history(self)
    check_inference_write(self)
    if self._keys & TRANSFORMED and shape != self._array.shape:
        raise RuntimeError(
            f"vmap: resize_ to {list(shape)} is not possible: a tensor that is being vmapped over stands for all examples, and has no memory "
            "of its own to grow. Please use `reshape`, or a new tensor."
        )
    if memory_format is devices.preserve_format:
        raise RuntimeError("Unsupported memory format Preserve")
    if memory_format is None and shape == self._array.shape:
        return self  # as it is, whatever its strides
    check_addressable(shape, None, self.dtype.itemsize)
    if self._keys & LAYOUTS:
        return above.resize_layout(self, shape)
    resize(self, shape, None if memory_format is None else format_strides(shape, memory_format))
    bump(self)
    return self


_resize_to = declare(
    "resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)", _resize_
)


@front("Tensor.resize_as_", "torch.resize_as_")
def resize_as_(input, the_template, memory_format=None) -> Tensor:
    if is_heard(input, the_template):
        _refuse_history(input)
        told = tell(_resize_like, (input, the_template, memory_format))
        if told is not NotImplemented:
            return told
    return _resize_as_(input, the_template, memory_format)


def _resize_as_(input, the_template, memory_format) -> Tensor:
    if input._keys & the_template._keys & SPARSE:
        return public("Tensor", "resize_as_sparse_")(input, the_template)
    if memory_format is not devices.preserve_format:
        return input.resize_(the_template.shape, memory_format=memory_format)
    input.resize_(the_template.shape)
    resize(input, tuple(the_template.shape), like_strides(the_template, None))
    return input


_resize_like = declare(
    "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)", _resize_as_
)


@front("Tensor.resize")
def resize_out_of_place(self, *sizes) -> Tensor:
    return self.reshape(*sizes) if sizes else self


@front("Tensor.resize_as")
def resize_as(self, tensor) -> Tensor:
    return self.reshape(tensor.shape)


@front("Tensor.storage")
def storage(self) -> TypedStorage:
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


@front("Tensor._typed_storage")
def typed_storage(self) -> TypedStorage:
    """What `storage()` gives, under the name that PyTorch's own code uses."""
    return storage(self)


@front("Tensor.storage_type")
def storage_type(self):
    return TypedStorage


def _is_set_to(self, tensor) -> bool:
    return (
        storage_of(self) is storage_of(tensor)
        and self._offset == tensor._offset
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
    )


_set_to = declare("is_set_to(Tensor self, Tensor tensor) -> bool", _is_set_to)


@front("Tensor.is_set_to")
def is_set_to(self, tensor) -> bool:
    """Whether two tensors are one view of one memory."""
    return _set_to.layer((self, tensor))


@front("Tensor.share_memory_")
def share_memory_(self) -> Tensor:
    """Move the memory under this tensor to where child processes see it too."""
    share(storage_of(self._array.values if self._keys & NESTED else self))
    return self


@composite("_pin_memory(Tensor self, Device? device=None) -> Tensor", function=False, out=False)
def _pin_memory(self, device):
    if not device_count():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if not self.is_cpu:
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    pinned = pinned_like(self._array)
    pinned[...] = self._array
    return wrap(pinned, self.dtype)


@front("Tensor.pin_memory")
def pin_memory(self, device=None) -> Tensor:
    return _pin_memory(self, device)


@front("Tensor.requires_grad_")
@whole_in_graphs
def requires_grad_(self, requires_grad: bool = True) -> Tensor:
    outside_transforms(
        "Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs)",
        "attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() "
        "outside of a function being transformed instead.",
    )
    if not isinstance(requires_grad, (bool, np.bool_)):
        raise TypeError(
            f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {type(requires_grad).__name__}"
        )
    set_requires_grad(self, requires_grad)
    return self


def as_subclass(self, cls) -> Tensor:
    """The same tensor as one of another class. Overrides do not see this call: it is what gives their results a class."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class inherits from Tensor."
        )
    if not requires_grad(self):
        return subclass_of(cls, self)
    with disable_torch_function():
        alias = dispatch(alias_op, (self,))  # traces know it as a value of its own, as its history does
    result = subclass_of(cls, alias)
    result._autograd = alias._autograd
    return result


export("Tensor", "as_subclass", as_subclass)
keeps_type.add(as_subclass)


@front("Tensor._fix_weakref")
def fix_weakref(self) -> None:
    """Nothing to mend: Python owns a tensor, whoever refers to it."""


@front("Tensor.apply_")
def apply_(self, callable) -> Tensor:
    """Replace each element by what a Python function makes of it."""
    if self._keys & NESTED:
        apply_(self._array.values, callable)
        bump(self)
        return self
    return _fill_with(self, [callable(v) for v in self.reshape(-1).tolist()])


def _fill_with(self: Tensor, values: list, *others: Tensor) -> Tensor:
    """Put the results of a Python function into a tensor; gradients do not pass it."""
    for t in (self, *others):
        if t.requires_grad:
            raise RuntimeError(
                "Can't call apply_(), map_() or map2_() on a Variable that requires grad. Use var.detach() instead."
            )
    if any(not isinstance(v, (bool, int, float, complex)) for v in values):
        raise TypeError(f"apply_(), map_() and map2_(): the function must give numbers, but gave {values[0]!r}")
    assign(self._array, np.asarray(values).astype(self.dtype.numpy).reshape(self._array.shape))
    bump(self)
    return self


@front("Tensor.map_")
def map_(self, tensor, callable) -> Tensor:
    """Replace each element by what a Python function makes of it and of another tensor's."""
    other = tensor.expand(self.shape).reshape(-1).tolist()
    return _fill_with(self, [callable(a, b) for a, b in zip(self.reshape(-1).tolist(), other, strict=True)], tensor)


@front("Tensor.map2_")
def map2_(self, x, y, callable) -> Tensor:
    """As `map_`, with two other tensors."""
    columns = (
        self.reshape(-1).tolist(),
        x.expand(self.shape).reshape(-1).tolist(),
        y.expand(self.shape).reshape(-1).tolist(),
    )
    return _fill_with(self, [callable(*row) for row in zip(*columns, strict=True)], x, y)


@front("Tensor.dim_order")
def dim_order(self, *, ambiguity_check=False) -> tuple[int, ...]:
    """Dimensions from outermost to innermost in memory; `ambiguity_check`: True, or the memory formats that may fit, one of them."""
    formats = None if isinstance(ambiguity_check, bool) else list(ambiguity_check)
    if formats is not None and not all(isinstance(f, devices.memory_format) for f in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if self._keys & SPARSE:
        raise AttributeError(
            f"Can't get dim order on sparse type: {self.type()} Use Tensor.to_dense() to convert to a dense tensor first."
        )
    shape, stride = self._array.shape, stride_of(self)
    if ambiguity_check is True and (1 in shape or len(set(stride)) < self.ndim):
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
        )
    if formats is not None and sum(self.is_contiguous(memory_format=f) for f in formats) != 1:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
        )
    return tuple(sorted(range(self.ndim), key=lambda d: (-stride[d], d)))


@front("Tensor.module_load")
def module_load(self, other, assign: bool = False) -> Tensor:
    """What `load_state_dict` does with a tensor: copy it in, or take it over."""
    return other.detach() if assign else self.copy_(other).detach()


def _record_stream(self, stream) -> None:
    if not self.is_cuda:
        raise RuntimeError("Tensor.record_stream(): CPU tensors have no streams")


_recorded_on = declare("record_stream(Tensor(a!) self, Stream s) -> ()", _record_stream)


@front("Tensor.record_stream")
def record_stream(self, stream) -> None:
    """Memory of this tensor is in use by a stream: CuPy's pool hands memory out again to the same stream only."""
    return _recorded_on.layer((self, stream))


@front("Tensor.reinforce")
def reinforce(self, reward):
    raise RuntimeError(
        "Trying to call reinforce(), which is not supported: use torch.distributions and log_prob(action) * reward instead"
    )


def _deepcopy(self, memo):
    if has_torch_function_unary(self):
        return call_overridden(Tensor.__deepcopy__, (self, memo), {})
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were attempting to deepcopy "
            "a module, this may be because of a torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]
    import copy as copying

    with DisableTorchFunctionSubclass():
        wraps = self._keys & (DISPATCH_SUBCLASS | FAKE) == DISPATCH_SUBCLASS and isinstance(self._array, Geometry)
        if wraps or self._keys & (META | LAYOUTS):
            result = self.clone() if wraps else self.detach().clone()
            if wraps and type(result) is not type(self):
                raise RuntimeError(
                    "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that properly implement "
                    f"clone() and for which cloning returns another instance of the same subclass: {type(self).__name__} gave {type(result).__name__}"
                )
        else:
            source = storage_of(self)
            target = memo.get(id(source))
            if target is None:
                target = memo[id(source)] = UntypedStorage.of(source).clone()._storage
            result = view_of(
                self,
                window(target, self.dtype, self._array.shape, stride_of(self), self._offset),
                self.dtype,
                self._offset,
            )
            result._memory, result._counter = target, [0]
        if type(self) is not Tensor and not wraps:
            result = subclass_of(type(self), result)
        kept = {k: v for k, v in self.__dict__.items() if k not in result.__dict__}  # a fake stays its mode's
        result.__dict__.update(copying.deepcopy(kept, memo))
        for name in self.class_slots:
            if hasattr(self, name):
                setattr(result, name, copying.deepcopy(getattr(self, name), memo))
        if self.requires_grad:
            set_requires_grad(result, True)
        if self._autograd is not None and self._autograd.grad is not None:
            own_autograd(result).grad = copying.deepcopy(self._autograd.grad, memo)
    memo[id(self)] = result
    return result


class _Held:
    """What copies a fake and cannot be pickled."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    def __reduce__(self):
        return above.reduce_tensor(self.tensor)  # which says why not


def _another(state: _Held) -> Tensor:
    """`copy.copy` of a fake: the same memory, no history."""
    source = state.tensor
    result = source.shallow()
    result.__dict__.update(source.__dict__)
    if source.requires_grad:
        set_requires_grad(result, True)
    return result


def _reduce_ex(self, protocol):
    if self._keys & FAKE:
        return (_another, (_Held(self),))
    return above.reduce_tensor(self)


extend(Tensor, __name__, __deepcopy__=_deepcopy, __reduce_ex__=_reduce_ex)
export("torch", "result_type", lambda tensor, other: result_type(tensor, other))
