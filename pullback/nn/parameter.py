"""Tensors that modules hold: `Parameter`, `Buffer`, and the uninitialized ones of lazy modules.

A parameter is a leaf that requires grad and registers itself when it is assigned to a module; a buffer is a tensor
marked to do likewise. An uninitialized tensor has a dtype and a device but no shape: every use raises until
`materialize(shape)`.
"""

from __future__ import annotations

from ..core.modes import ambient
from ..core.tensor import Parameter, Tensor, subclass_of
from ..ops.system.operator import public
from ..ops.system.overrides import DisableTorchFunctionSubclass

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    """A buffer is recognized by a mark, so that subclasses of Tensor can be buffers too."""

    def __instancecheck__(cls, instance) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a module registers as a buffer when it is assigned.

    >>> module = torch.nn.Module()
    >>> module.count = torch.nn.Buffer(torch.zeros(1))
    >>> list(module.state_dict())
    ['count']
    """

    def __new__(cls, data=None, *, persistent: bool = True):
        data = public("torch", "empty")(0) if data is None else data
        t = data.detach().requires_grad_(data.requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t


_REFUSAL = (
    "Attempted to use an uninitialized parameter in {}. This error happens when you are using a `LazyModule` or "
    "explicitly manipulating `torch.nn.parameter.{}` objects. When using LazyModules Call `forward` with a dummy batch "
    "to initialize the parameters before calling torch functions"
)
_ANSWERED = (
    "__get__",
    "__set__",
    "__delete__",
    "get_device",
    "is_complex",
    "is_floating_point",
    "size",
)  # without a shape, too
_CONVERSIONS = ("half", "float", "double", "char", "short", "int", "long", "cuda", "cpu", "to")


class UninitializedTensorMixin:
    """What both uninitialized kinds share."""

    cls_to_become: type = Tensor

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Give the tensor a shape and memory; from here on it is an ordinary one."""
        result = public("torch", "empty")(shape, device=device or self.device, dtype=dtype or self.dtype)
        become = self.cls_to_become
        self.__class__ = become
        self._keys = result._keys | become.class_keys
        self.data = result

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol):
        return (type(self), (self.requires_grad,), self.__dict__ or None)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in _CONVERSIONS:
            return _converted(args[0], name, args[1:], kwargs or {})
        if name in _ANSWERED:
            with DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        raise ValueError(_REFUSAL.format(func, cls.__name__))


def _converted(t, name: str, args: tuple, kwargs: dict):
    """Another dtype or device, still without a shape."""
    plain = subclass_of(Tensor, t)
    return subclass_of(type(t), getattr(plain, name)(*args, **kwargs), t.requires_grad)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet.

    >>> parameter = torch.nn.UninitializedParameter()
    >>> parameter.materialize((2, 3))
    >>> parameter.shape
    torch.Size([2, 3])
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device=None, dtype=None):
        data = public("torch", "empty")(0, device=device, dtype=dtype or ambient.default_dtype)
        return subclass_of(cls, data, requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet.

    >>> torch.nn.UninitializedBuffer().requires_grad
    False
    """

    cls_to_become = Tensor

    def __new__(cls, requires_grad: bool = False, device=None, dtype=None, persistent: bool = True):
        data = public("torch", "empty")(0, device=device, dtype=dtype or ambient.default_dtype)
        t = subclass_of(cls, data, requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t


def is_lazy(value) -> bool:
    """Whether a tensor is still without a shape."""
    return isinstance(value, UninitializedTensorMixin)
