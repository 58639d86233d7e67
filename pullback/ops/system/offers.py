"""What tensors say of themselves (`size()`, `shape`, `len(t)`), offered to subclasses with a `__torch_function__` of their own.

In: a new subclass of Tensor. Out: the subclass, where the names below go to its `__torch_function__` first, as every function does;
the function that it is asked about is `Tensor.size`, or `Tensor.shape.__get__`. Always: tensors themselves and subclasses that inherit
the default pay nothing, because the names are put into the subclass alone; a name that the subclass, or a class before Tensor
in its order, has of its own stays.
"""

from __future__ import annotations

import functools
import sys
from inspect import getattr_static

from ...core.layers import above
from ...core.modes import ambient
from ...core.tensor import Tensor, disabled_torch_function
from .overrides import call_overridden, default_torch_function, keeps_type

METHODS = (
    "__bool__", "__complex__", "__float__", "__format__", "__index__", "__int__", "__len__", "__reduce_ex__", "__repr__", "_is_view", "const_data_ptr",
    "data_ptr", "dim", "element_size", "get_device", "is_complex", "is_conj", "is_contiguous", "is_floating_point", "is_inference",
    "is_neg", "is_pinned", "is_same_size", "is_shared", "is_signed", "ndimension", "nelement", "numel", "register_hook",
    "register_post_accumulate_grad_hook", "retain_grad", "size", "storage_offset", "stride", "untyped_storage",
)  # fmt: skip
ATTRIBUTES = (
    "H", "T", "_backward_hooks", "_base", "_cdata", "_grad", "_grad_fn", "_version", "data", "device", "dtype", "grad", "grad_dtype",
    "grad_fn", "imag", "is_cpu", "is_cuda", "is_ipu", "is_leaf", "is_maia", "is_meta", "is_mkldnn", "is_mps", "is_mtia", "is_nested",
    "is_quantized", "is_sparse", "is_sparse_csr", "is_vulkan", "is_xla", "is_xpu", "itemsize", "layout", "mH", "mT", "name", "nbytes",
    "ndim", "output_nr", "real", "requires_grad", "retains_grad", "shape",
)  # fmt: skip
PLAIN_RESULTS = ("_base", "_grad", "grad")  # the default `__torch_function__` leaves these as they are
SAID_BY = {"nelement": "numel", "ndimension": "dim"}  # of two names for one thing, overrides hear one


class OfferedAttribute(property):
    """An attribute of Tensor in a subclass that is asked about it: about `Tensor.shape.__get__`, and `__set__` and `__delete__`."""

    def __init__(self, own):
        def get(self):
            return _offered(own.__get__, self) if _listens() else own.__get__(self)

        def put(self, value):
            return _offered(own.__set__, self, value) if _listens() else own.__set__(self, value)

        def delete(self):
            return _offered(own.__delete__, self) if _listens() else own.__delete__(self)

        super().__init__(get, put, delete, own.__doc__)


OWN = __package__.partition(".")[0]
for_programs: set = set()  # code of functions of ours that ask in the place of a program


def _listens() -> bool:
    """Whether overrides are on, and it is a program that asks: what we look up on our own is nothing to override."""
    if ambient.function_disabled:
        return False
    asking = sys._getframe(2)
    return asking.f_globals.get("__name__", OWN).partition(".")[0] != OWN or asking.f_code in for_programs


def is_offered(cls: type, name: str) -> bool:
    """Whether a class hears of this attribute."""
    return isinstance(getattr_static(cls, name, None), OfferedAttribute) and not ambient.function_disabled


def _offered(function, *args):
    return call_overridden(function, args, {})


def _method(own, asked):
    @functools.wraps(own)
    def method(self, *args, **kwargs):
        if _listens():
            return call_overridden(asked, (self, *args), kwargs)
        return own(self, *args, **kwargs)

    method.offers = own
    return method


def _is_offer(value) -> bool:
    return isinstance(value, OfferedAttribute) or hasattr(value, "offers")


@functools.cache
def _offer_of(name: str, own):
    """What offers a name of Tensor's, which holds `own` there."""
    if name in ATTRIBUTES:
        if name in PLAIN_RESULTS:
            keeps_type.add(own.__get__)
        return OfferedAttribute(own)
    return _method(own, getattr(Tensor, SAID_BY.get(name, name)))


def overridable() -> dict:
    """What overrides are asked about by these names, by the name under which users find it."""
    attributes = {f"{name}.__get__": getattr_static(Tensor, name).__get__ for name in ATTRIBUTES}
    return attributes | {name: getattr(Tensor, name) for name in METHODS if name not in SAID_BY}


def asks(cls: type) -> bool:
    """Whether a class has a `__torch_function__` that is neither the default nor switched off."""
    override = getattr(cls, "__torch_function__", disabled_torch_function)
    return override is not disabled_torch_function and getattr(override, "__func__", None) is not _DEFAULT


def offer(cls: type) -> None:
    """Put the names that a class inherits from Tensor into it, where its `__torch_function__` wants to hear of them."""
    if not asks(cls):
        return
    for name in (*METHODS, *ATTRIBUTES):
        found = [vars(c)[name] for c in cls.__mro__ if name in vars(c)]
        first = next((v for v in found if not _is_offer(v)), None)
        if first is None:  # a name that a layer above has not added yet
            continue
        own = getattr_static(Tensor, name, None)
        wanted = (
            _offer_of(name, own) if first is own else first
        )  # a class between an offer and Tensor has a say of its own
        if found[0] is not wanted:
            setattr(cls, name, wanted)


_DEFAULT = default_torch_function
above.offer = offer
