"""What a tensor is: an array with a dtype, a device, a place in a storage, and a place in a graph.

`Tensor` here has only what needs no operator: identity, metadata, memory, conversion to Python and NumPy. Operators add
themselves as methods (`ops`), and so do backward and hooks (`autograd`). `_keys` is 0 for a plain dense CPU tensor of
this very class (or a `Parameter`); any bit means that a call must take the general path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from . import device as devices
from . import dtype as dtypes
from .extension import extension
from .geometry import Geometry, contiguous_strides, is_channels_last_contiguous, is_contiguous, wrap_dim
from .layers import above
from .modes import ambient, is_inference_mode_enabled
from .node import UNTRACKED_VIEW, Autograd, View, current_autograd, own_autograd, requires_grad
from .printing import tensor_repr
from .size import Size, make_size
from .storage import UntypedStorage, address_of, storage_of

CONJ = 1
NEG = 2
META = 4
SPARSE = 8
NESTED = 16
CUDA = 32  # `_array` is CuPy's: see core.cupy_library
SUBCLASS = 64  # a class with its own __torch_function__
DISPATCH_SUBCLASS = 128  # a class with __torch_dispatch__
TRANSFORMED = 256  # a level of a function transform wraps this tensor
INFERENCE_TENSOR = 512
FAKE = 1024  # no data, but the device (and so the errors, results and layout) of a real tensor: see capture.fake
OPAQUE = 2048  # the layout `_mkldnn`: see ops.opaque
NAMED = 4096  # dimensions have names: see ops.names
STORED = dtypes.STORED  # 8192: computed in another dtype, or from other bytes, see ops.system.stored
ZERO = 16384  # all elements are zero, and no call writes it: see ops.make.zero_tensors
LAYOUTS = SPARSE | NESTED | OPAQUE  # no dense array: `_array` is what the layout holds


class NoData(RuntimeError):
    """The memory of a fake tensor was asked for."""

    is_expected = True


NO_DATA_POINTER = (
    "Cannot access data pointer of Tensor (e.g. FakeTensor, FunctionalTensor). If you're using torch.compile/export/fx, it is "
    "likely that we are erroneously tracing into a custom kernel. To fix this, please wrap the custom kernel into an opaque "
    "custom op."
)
new_object = object.__new__

if TYPE_CHECKING:  # what operators hang on the class, for editors and type checkers
    from .methods import TensorMethods
else:
    TensorMethods = object


class PartialProperty(property):
    """A property that some tensors have and others do not: `dir` asks."""


class Tensor(TensorMethods):
    """A multi-dimensional array that can record what is done with it.

    >>> x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    >>> x.shape, x.dtype
    (torch.Size([1, 2]), torch.float32)
    >>> (x @ x.T).sum().backward()
    >>> x.grad
    tensor([[2., 4.]])
    """

    __slots__ = (
        "_array", "_own_dtype", "_own_device", "_keys", "_autograd", "_counter", "_memory", "_offset", "_view_info",
        "__dict__", "__weakref__",
    )  # fmt: skip

    class_keys = 0  # bits that every instance of a subclass has
    class_slots: tuple[str, ...] = ()  # names of a subclass's own `__slots__`
    __torch_dispatch__: ClassVar[Callable[..., Any]]  # what `super()` finds: the operator on plain tensors
    __array_priority__ = 1000
    _is_param = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if _inherits_default(cls) and cls.__torch_dispatch__ is not disabled_torch_dispatch:
            cls.__torch_function__ = disabled_torch_function  # type: ignore[assignment]
        cls.class_keys = class_bits(cls)
        own = cls.__dict__.get("__slots__", ())
        cls.class_slots += (own,) if isinstance(own, str) else tuple(own)
        above.offer(cls)

    def __new__(cls, *args, **kwargs):
        return above.construct(cls, *args, **kwargs)

    # ---- metadata
    @property
    def dtype(self) -> dtypes.dtype:  # the extension puts a quicker descriptor in its place, and in that of `device`
        return self._own_dtype

    @property
    def device(self) -> devices.device:
        return self._own_device

    @property
    def shape(self) -> Size:
        return make_size(self._array.shape)

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self._array.size * self.dtype.itemsize

    @property
    def layout(self) -> devices.layout:
        if not self._keys & (LAYOUTS | DISPATCH_SUBCLASS):
            return devices.strided
        return self._array.layout if self._keys & LAYOUTS else self.__dict__.get("own_layout", devices.strided)

    @property
    def _cdata(self) -> int:
        """A number that no other living tensor has, by which programs tell tensors apart."""
        return id(self)

    @property
    def _version(self) -> int:
        if self._keys & INFERENCE_TENSOR:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._counter[0]

    @property
    def requires_grad(self) -> bool:
        return requires_grad(self)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        a = self._autograd
        if value and a is not None and a.edge is not None:  # `requires_grad_` takes it
            raise RuntimeError("you can only change requires_grad flags of leaf variables.")
        set_requires_grad(self, value)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        undeletable("requires_grad")(self)

    @property
    def is_leaf(self) -> bool:
        a = current_autograd(self)
        return a is None or a.edge is None

    @property
    def output_nr(self) -> int:
        a = current_autograd(self)
        return 0 if a is None or a.edge is None else a.edge[1]

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        return self.device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        return self.device.type == "meta"

    @property
    def is_sparse(self) -> bool:
        return self.layout is devices.sparse_coo

    @property
    def is_sparse_csr(self) -> bool:
        return self.layout is devices.sparse_csr

    @property
    def is_nested(self) -> bool:
        return bool(self._keys & NESTED)

    @property
    def is_mkldnn(self) -> bool:
        return bool(self._keys & OPAQUE)

    @property
    def is_quantized(self) -> bool:
        """Quantized tensors, and those of devices that are not there: never.

        >>> torch.ones(1).is_quantized, torch.ones(1).is_mps
        (False, False)
        """
        return False

    is_mps = is_xpu = is_ipu = is_xla = is_vulkan = is_maia = is_mtia = is_quantized

    def dim(self) -> int:
        return self._array.ndim

    def ndimension(self) -> int:
        return self._array.ndim

    def size(self, dim: int | None = None):
        if dim is None:
            return make_size(self._array.shape if not self._keys & NESTED else self._array.common_sizes)

        if not self._array.ndim:
            wrap_dim_of_scalar(dim)
        if dim.__class__ is bool:
            raise TypeError("size(): argument 'dim' (position 1) must be int, not bool")
        if self._keys & NESTED:
            return self._array.common_size(wrap_dim(dim, self._array.ndim))
        return self._array.shape[wrap_dim(dim, self._array.ndim)]

    def numel(self) -> int:
        return self._array.size

    nelement = numel

    def stride(self, dim: int | None = None):
        strides = stride_of(self) if not self._keys & NESTED else self._array.common_strides
        if dim is None:
            return strides

        if dim.__class__ is bool:
            raise TypeError("stride(): argument 'dim' (position 1) must be int, not bool")
        return strides[wrap_dim(dim, self._array.ndim)]

    def storage_offset(self) -> int:
        return self._offset

    def element_size(self) -> int:
        return self.dtype.itemsize

    def is_contiguous(self, memory_format=devices.contiguous_format) -> bool:
        if memory_format is devices.contiguous_format:
            array = self._array
            if array.__class__ is np.ndarray or hasattr(array, "flags"):
                return array.flags.c_contiguous
            own = getattr(array, "c_contiguous", None)  # of arrays whose components have no strides in common
            return is_contiguous(array.shape, array.stride) if own is None else own
        if self._keys & TRANSFORMED and "wrapped" in self.__dict__:
            raise RuntimeError(
                "NYI: querying is_contiguous inside of vmap for memory_format other than torch.contiguous_format"
            )
        wanted = {devices.channels_last: 4, devices.channels_last_3d: 5}.get(memory_format)
        return self._array.ndim == wanted and is_channels_last_contiguous(self._array.shape, stride_of(self))

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        return self.dtype.is_signed

    def is_conj(self) -> bool:
        return bool((self._keys if not self._keys & TRANSFORMED else innermost(self)._keys) & CONJ)

    def is_neg(self) -> bool:
        return bool((self._keys if not self._keys & TRANSFORMED else innermost(self)._keys) & NEG)

    def is_inference(self) -> bool:
        return bool(self._keys & INFERENCE_TENSOR)

    def _is_zerotensor(self) -> bool:
        return bool(self._keys & ZERO)

    def is_shared(self) -> bool:
        memory = (self._array.values if self._keys & NESTED else self)._memory
        return memory is not None and memory.shared

    def is_pinned(self, device=None) -> bool:
        """Whether the memory is locked, so that devices can read it while the CPU works."""
        from .cupy_library import is_pinned

        return not self._keys and is_pinned(self._array)

    def get_device(self) -> int:
        return -1 if self.device.index is None else self.device.index

    def _is_view(self) -> bool:
        return self._view_info is not None

    @property
    def _base(self):
        return None if self._view_info is None else self._view_info.base

    # ---- memory
    def untyped_storage(self) -> UntypedStorage:
        if self._keys & TRANSFORMED:
            raise NotImplementedError("Cannot access storage of a tensor inside vmap: it stands for all examples")
        result = UntypedStorage.of(storage_of(self))
        if self._keys & (DISPATCH_SUBCLASS | FAKE) == DISPATCH_SUBCLASS and isinstance(self._array, Geometry):
            result.__dict__["of_wrapper"] = True
        return result

    def data_ptr(self) -> int:
        if isinstance(self._array, Geometry):
            if self._keys & FAKE:
                raise NoData(NO_DATA_POINTER)
            if self._keys & TRANSFORMED:
                raise RuntimeError("Cannot access data pointer of a tensor inside vmap: it stands for all examples")
            return 0
        return address_of(self._array) if self._array.size else 0

    const_data_ptr = data_ptr

    def shallow(self, autograd: Autograd | None = None, storage: bool = True):
        """Another tensor on the same memory and version, with the history given.

        A short-lived one need not share the storage object (`storage=False`), which may then not be made at all.
        """
        keys = self._keys
        memory = (
            self._memory
            if not storage
            else storage_of(self)
            if not keys & (LAYOUTS | DISPATCH_SUBCLASS | TRANSFORMED)
            else None
        )
        t = assemble(
            type(self), self._array, self.dtype, self.device, keys, autograd, self._counter, memory, self._offset
        )
        if self.__dict__ and (
            self._keys & (DISPATCH_SUBCLASS | TRANSFORMED | SUBCLASS | FAKE) or "trace_marks" in self.__dict__
        ):
            t.__dict__.update(self.__dict__)
        for name in self.class_slots:
            if hasattr(self, name):
                setattr(t, name, getattr(self, name))
        return t

    # ---- as Python values
    def __len__(self) -> int:
        if not self._array.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self._array.shape[0]

    def __hash__(self) -> int:
        return id(self)

    def __dir__(self):
        cls = type(self)
        own = {n for n in dir(cls) if not isinstance(getattr(cls, n, None), PartialProperty) or hasattr(self, n)}
        return sorted(own | self.__dict__.keys())

    def __repr__(self, tensor_contents: str | None = None) -> str:
        return tensor_repr(self, contents=tensor_contents)


def undeletable(name: str) -> Callable[[Tensor], None]:
    """What refuses to delete a property."""

    def refuse(self: Tensor) -> None:
        raise RuntimeError(f"Cannot delete '{name}' of a tensor")

    return refuse


def _inherits_default(cls: Any) -> bool:
    """Whether the `__torch_function__` of a class is that of Tensor: one that dispatches operators then does without it."""
    default = Tensor.__dict__.get("__torch_function__")
    return default is not None and getattr(cls.__torch_function__, "__func__", None) is default.__func__


def class_bits(cls: Any) -> int:
    """Which keys all instances of a subclass carry."""
    bits = 0
    if cls.__torch_function__ is not disabled_torch_function:
        bits |= SUBCLASS
    if "__torch_dispatch__" in dir(cls) and cls.__torch_dispatch__ is not disabled_torch_dispatch:
        bits |= DISPATCH_SUBCLASS
    return bits


def disabled_torch_function(func, types, args=(), kwargs=None):
    """A class that takes this as `__torch_function__` is treated as a plain tensor; so is every other in a call by `super()`."""
    before = ambient.function_disabled
    ambient.function_disabled = max(before, 1)
    try:
        return func(*args, **(kwargs or {}))
    finally:
        ambient.function_disabled = before


def disabled_torch_dispatch(func, types, args=(), kwargs=None):
    """A class that takes this as `__torch_dispatch__` is treated as a plain tensor; others reach it by `super()`."""
    return above.run_as_plain(func, args, kwargs or {})


def innermost(t: Tensor) -> Tensor:
    """The value that all levels of transforms around it wrap."""
    while t._keys & TRANSFORMED and "wrapped" in t.__dict__:
        t = t.__dict__["wrapped"].value
    return t


def stride_of(t: Tensor) -> tuple[int, ...]:
    """Strides in elements."""
    array = t._array
    if array.__class__ is not np.ndarray and not hasattr(array, "flags"):
        return getattr(array, "stride", None) or contiguous_strides(array.shape)
    if not array.size and not any(array.strides):  # what NumPy says of new memory without elements
        return contiguous_strides(array.shape)
    return element_strides(array)


def element_strides(array) -> tuple[int, ...]:
    """Strides of an array in elements."""
    size = array.itemsize
    return tuple([s // size for s in array.strides])


def wrap_dim_of_scalar(dim: int) -> None:
    raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")


def assemble_in_python(cls, array, dtype, device, keys: int, autograd, version: list, memory, offset: int):
    """A tensor of class `cls` with every slot filled: in Python, tensors are made here and nowhere else."""
    t = new_object(cls)
    t._array = array
    t._own_dtype = dtype
    t._own_device = device
    t._keys = keys
    t._autograd = autograd
    t._counter = version
    t._memory = memory
    t._offset = offset
    t._view_info = None
    return t


native_objects = extension("_objects")  # makes these objects in C
assemble: Callable[..., Any] = getattr(native_objects, "assemble", assemble_in_python)


def make_tensor(array, dtype: dtypes.dtype) -> Tensor:
    """A plain CPU tensor around an array that nobody else holds."""
    return assemble(Tensor, array, dtype, devices.cpu, 0, None, [0], None, 0)


def wrap(array, dtype: dtypes.dtype | None = None, device: devices.device = devices.cpu, keys: int = 0) -> Tensor:
    """A new plain tensor around an array that nobody else holds."""
    if dtype is None:
        dtype = dtypes.by_numpy[array.dtype]
    if device is devices.cpu and not keys and not dtype.keys:
        return make_tensor(array, dtype)
    return assemble(Tensor, array, dtype, device, keys | device.keys | dtype.keys, None, [0], None, 0)


def wrap_meta(shape: tuple, dtype: dtypes.dtype, stride: tuple | None = None) -> Tensor:
    """A tensor on device `meta`: shape, strides and dtype, no data."""
    stride = contiguous_strides(shape) if stride is None else stride
    return wrap(Geometry(tuple(shape), stride, dtype.numpy), dtype, devices.meta, META)


def view_of(base: Tensor, array, dtype: dtypes.dtype, offset: int) -> Tensor:
    """A plain tensor on the memory of another: shares storage and version."""
    keys = base._keys & ~(SUBCLASS | DISPATCH_SUBCLASS | STORED) | dtype.keys
    if dtype is dtypes.bool and (base.dtype is not dtype or base._keys & STORED) and not keys & (META | CUDA):
        keys |= STORED  # the bytes of other numbers: truths are what is not 0, and kernels want 1
    memory = base._memory if base._memory is not None else storage_of(base)
    t = assemble(Tensor, array, dtype, base.device, keys, None, base._counter, memory, offset)
    if keys & FAKE:
        t.__dict__["fake_mode"] = base.__dict__["fake_mode"]
    return t


def set_requires_grad(t: Tensor, value: bool) -> None:
    """`t.requires_grad = value`, with PyTorch's refusals."""
    if value.__class__ is not bool and not isinstance(value, np.bool_):
        raise TypeError("requires_grad must be a bool")
    a = t._autograd
    if a is not None and a.edge is not None:
        if not value:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
                "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        return
    if value and not (t.dtype.is_floating_point or t.dtype.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    if value and t._keys & INFERENCE_TENSOR:
        if not is_inference_mode_enabled():
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    if value or a is not None:
        own_autograd(t).requires_grad = value


class _ParameterMeta(type):
    """A tensor of another class that was made a parameter is one too."""

    def __instancecheck__(cls, value) -> bool:
        return type.__instancecheck__(cls, value) or (
            cls is Parameter and isinstance(value, Tensor) and getattr(value, "_is_param", False)
        )


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A leaf tensor that modules collect.

    >>> torch.nn.Parameter(torch.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    _is_param = True

    def __new__(cls, data=None, requires_grad: bool = True):
        if data is None:
            data = wrap(np.empty(0, dtypes.float32.numpy))
        if type(data) in (Tensor, Parameter):
            p = subclass_of(cls, data)
        else:
            p = data.detach()
            if type(p) is not type(data):
                raise RuntimeError(
                    f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
                    f"instance of the same type, but return type {type(p).__name__} was found instead."
                )
            p._is_param = True
        set_requires_grad(p, requires_grad)
        return p

    def __repr__(self, tensor_contents: str | None = None) -> str:
        said = Tensor.__repr__(self, tensor_contents)
        return f"Parameter({said})" if self._keys & FAKE else f"Parameter containing:\n{said}"

    __torch_function__ = disabled_torch_function

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]


def subclass_of(cls: Any, data: Tensor, requires_grad: bool = False):
    """A `cls` on the memory of `data`, without history: `Tensor._make_subclass`."""
    check_reclassed(cls, data)
    keys = data._keys & ~(SUBCLASS | DISPATCH_SUBCLASS) | cls.class_keys
    memory = None if data._keys & LAYOUTS else storage_of(data)
    t = assemble(cls, data._array, data.dtype, data.device, keys, None, data._counter, memory, data._offset)
    for name in ("fake_mode", "trace_marks"):
        if name in data.__dict__:
            t.__dict__[name] = data.__dict__[name]
    if requires_grad:
        set_requires_grad(t, True)
    return t


def check_reclassed(cls, data: Tensor) -> None:
    """A dispatching tensor becomes one of a class of its own kind only: another would not know how to handle it."""
    if data._keys & DISPATCH_SUBCLASS and data._array.__class__ is Geometry and not issubclass(type(data), cls):
        raise RuntimeError(
            f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is already associated to a python "
            f"object of type {type(data).__name__} which is not a subclass of the requested type"
        )


Tensor.__torch_dispatch__ = staticmethod(disabled_torch_dispatch)
PLAIN = frozenset((Tensor, Parameter))


native_calls = extension("_calls")
if native_calls is not None:
    element_strides = native_calls.strides
if native_objects is not None:
    native_objects.setup(Tensor, Parameter, View, devices.cpu, UNTRACKED_VIEW, storage_of)
    make_tensor = native_objects.fresh
