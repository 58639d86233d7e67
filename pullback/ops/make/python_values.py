"""Tensors as Python values: `item`, `tolist`, `numpy`, truth, numbers, indices, formatting."""

from __future__ import annotations

from ...core import modes
from ...core.arrays import readable, to_host
from ...core.errors import warn_once
from ...core.geometry import Geometry
from ...core.layers import extend
from ...core.modes import ambient, is_grad_enabled
from ...core.storage import storage_of
from ...core.symbolic import sym_int
from ...core.tensor import (
    CONJ,
    CUDA,
    DISPATCH_SUBCLASS,
    FAKE,
    META,
    NEG,
    NESTED,
    OPAQUE,
    PLAIN,
    SPARSE,
    TRANSFORMED,
    NoData,
    Tensor,
)
from ..eager.functions import bypassing
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.execute import resolve_bits
from ..system.operator import export
from ..system.overrides import any_overridden, call_overridden
from .lifting import local_scalar_dense


def _item_dispatched(self: Tensor):
    """`item` while something else is registered for the operator that it is."""
    if ambient.mode & modes.FUNCTION or any_overridden((self,)):
        return call_overridden(item, (self,), {})
    if self._array.size != 1:
        raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to Scalar")
    return dispatch(local_scalar_dense, (self,))


@bypassing("_local_scalar_dense.default", otherwise=_item_dispatched)
def item(self: Tensor):
    """The one number in a tensor."""
    if self.__class__ in PLAIN and not self._keys and ambient.mode < 2:
        array = self._array
        if array.size == 1 and array.dtype.kind in "biufc":
            return array.item()
    return _item_otherwise(self)


def _item_otherwise(self: Tensor):
    listened = ambient.mode & (modes.DISPATCH | modes.FUNCTION) or any_overridden((self,))
    if listened or self._array.size != 1 or self._keys & (FAKE | DISPATCH_SUBCLASS):
        return _item_dispatched(self)
    if self._keys:
        if self._keys & TRANSFORMED:
            raise no_numbers(self, "item")
        if self._keys & META:
            raise RuntimeError("Tensor.item() cannot be called on meta tensors")
        self = plain_numbers(self)
    return readable(to_host(self._array)).reshape(-1)[0].item()


def no_numbers(t: Tensor, what: str) -> Exception:
    """The error for reading numbers of a tensor that has none of its own: without data, or under a transform."""
    if t._keys & TRANSFORMED:
        return RuntimeError(
            f"vmap: It looks like you're calling .{what}() on a Tensor. We don't support vmap over calling .{what}() on a "
            "Tensor, please try to rewrite what you're doing with other operations. If error is occurring somewhere inside "
            "PyTorch internals, please file a bug report."
        )
    return NotImplementedError("Cannot copy out of meta tensor; no data!")


def plain_numbers(t: Tensor) -> Tensor:
    """A tensor whose array holds its numbers: dense, conjugation and negation carried out."""
    if t._keys & (SPARSE | OPAQUE):
        t = t.to_dense()
    return resolve_bits(t) if t._keys & (CONJ | NEG) else t


export("Tensor", "item", item)


@front("Tensor.tolist")
def tolist(self):
    """Nested Python lists, or a number."""
    if self._keys & FAKE:
        return [t.tolist() for t in self.unbind(0)] if self.ndim else self.item()
    if self._keys & (META | TRANSFORMED):
        raise no_numbers(self, "tolist")
    if self._array.__class__ is Geometry:
        raise RuntimeError(".tolist() is not supported for tensor subclasses.")
    t = plain_numbers(self)
    return readable(to_host(t._array)).tolist()


@front("Tensor.numpy")
def numpy(self, *, force: bool = False):
    """The NumPy array on the same memory."""
    if self._keys & FAKE or self._keys & DISPATCH_SUBCLASS and self._array.__class__ is Geometry:
        raise NoData(".numpy() is not supported for tensor subclasses.")
    if force:
        return self.detach().cpu().resolve_conj().resolve_neg().numpy()
    check_numpy(self)
    storage_of(self).may_resize = False  # the array would not see new memory
    return self._array.view()


def check_numpy(self: Tensor) -> None:
    """Refuse a tensor on whose memory no array can be."""
    if self._keys & TRANSFORMED:
        raise RuntimeError(
            "Cannot access data pointer of a tensor inside vmap: it stands for all examples, and no array can be it"
        )
    if is_grad_enabled() and self.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self._keys & NESTED:
        raise RuntimeError(
            "numpy() is not supported for NestedTensor, whose components differ in size; values() is the memory under them, "
            "and unbind() gives the components"
        )
    if self._keys & CONJ:
        raise RuntimeError(
            "Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() instead."
        )
    if self._keys & NEG:
        raise RuntimeError(
            "Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy() instead."
        )
    if self._keys & META and not self._keys & FAKE:
        raise TypeError(
            "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )
    if self._keys & CUDA:
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )
    if self.dtype.numpy.kind not in "biufc":
        raise TypeError(f"Got unsupported ScalarType {self.dtype.scalar_name}")
    if self._keys & (SPARSE | OPAQUE):
        name = "Mkldnn" if self._keys & OPAQUE else self.layout
        raise TypeError(f"can't convert {name} layout tensor to numpy. Use Tensor.to_dense() first.")


def _array(self, dtype=None, copy=None):
    result = self.numpy()
    return result if dtype is None else result.astype(dtype)


def _to_number(kind, word: str):
    def convert(self):
        if self._autograd is not None and self.requires_grad:
            warn_once(
                "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using tensor.detach() first.",
                3,
            )
        if self._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        value = self.item()
        if isinstance(value, complex) and kind is not complex:
            if value.imag:
                raise RuntimeError(f"value cannot be converted to type {word} without overflow")
            value = value.real
        return kind(value)

    return convert


def _bool(self) -> bool:
    if self._array.size != 1:
        if not self._array.size:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    if self._keys & TRANSFORMED:
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. "
            "We don't support that yet, please shout over at https://github.com/pytorch/functorch/issues/257 ."
        )
    return bool(self.item())


def whole_number(self):
    """The integer in a tensor, as a position; a symbol where data decides it and a trace can have one."""
    if self._array.size != 1 or self.dtype.category > 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return sym_int(self.item())


def _index(self) -> int:
    return int(whole_number(self))


def _format(self, spec: str) -> str:
    if not self._array.ndim and not self._keys & META and type(self) is Tensor:
        return format(self.item(), spec)
    return object.__format__(self, spec)


extend(
    Tensor, __name__, __array__=_array, __bool__=_bool, __index__=_index, __format__=_format, __float__=_to_number(float, "double"),
    __int__=_to_number(int, "int64_t"), __complex__=_to_number(complex, "complex"),
)  # fmt: skip
export("Tensor", "is_nonzero", front("torch.is_nonzero")(lambda input: _bool(input)))
