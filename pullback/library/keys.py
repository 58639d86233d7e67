"""Dispatch keys: the places at which a kernel can be registered.

In: the names that PyTorch gives them, or device types ("cpu"). Out: `DispatchKey` members, and what each means here. A
name that PyTorch does not know raises its words; one that PyTorch has and that has no meaning here raises too, because
a kernel that would never be called must not be taken silently.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from enum import Enum

from ..core.tensor import CONJ, INFERENCE_TENSOR, META, NEG, NESTED, SPARSE, Tensor

COMPOSITE_IMPLICIT = "CompositeImplicitAutograd"
COMPOSITE_EXPLICIT = "CompositeExplicitAutograd"
NON_FUNCTIONAL = "CompositeExplicitAutogradNonFunctional"
UNDEFINED = "Undefined"  # no tensor says where the data is

_DEVICES = ("CPU", "CUDA", "Meta", "XLA", "MPS", "XPU", "HPU", "Lazy", "MTIA", "MAIA", "IPU", "PrivateUse1")
_BACKENDS = (*_DEVICES, *(f"{prefix}{d}" for prefix in ("Sparse", "SparseCsr", "NestedTensor", "Quantized") for d in ("CPU", "CUDA", "Meta")))  # fmt: skip
_AUTOGRADS = ("Autograd", "AutogradOther", "AutogradFunctionality", "AutogradNestedTensor", *(f"Autograd{d}" for d in _DEVICES))  # fmt: skip
_COMPOSITES = (COMPOSITE_IMPLICIT, COMPOSITE_EXPLICIT, NON_FUNCTIONAL, "CompositeImplicitAutogradNestedTensor")
_KEPT = ("Functionalize", "NestedTensor")
_AUTOCASTS = tuple(f"Autocast{d}" for d in ("CPU", "CUDA", "XPU", "MPS", "MTIA", "MAIA", "HPU"))
_INSTEAD = {
    "FuncTorchBatched": "register_vmap",
    "Python": "register_torch_dispatch",
}
_MEANINGLESS = (
    "BackendSelect", "Tracer", "ADInplaceOrView", "Conjugate", "Negative", "ZeroTensor", "Dense", "Sparse", "SparseCsr", "Quantized",
    "PythonTLSSnapshot", "PythonDispatcher", "PreDispatch", "FuncTorchVmapMode", "Batched", "VmapMode", "BatchedNestedTensor",
    "FuncTorchGradWrapper", "FuncTorchDynamicLayerBackMode", "FuncTorchDynamicLayerFrontMode", "TESTING_ONLY_GenericWrapper",
    "TESTING_ONLY_GenericMode", )  # fmt: skip

_DEVICE_KEYS = {
    "cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "xla": "XLA", "mps": "MPS", "xpu": "XPU", "hpu": "HPU", "lazy": "Lazy", "mtia": "MTIA",
    "maia": "MAIA", "ipu": "IPU", "privateuseone": "PrivateUse1",
}  # fmt: skip
_DEVICE_WORDS = "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone"

HONOURED = frozenset((*_BACKENDS, *_AUTOGRADS, *_COMPOSITES, *_KEPT, *_AUTOCASTS))
KNOWN = HONOURED | frozenset(_INSTEAD) | frozenset(_MEANINGLESS) | {UNDEFINED}

DispatchKey = Enum("DispatchKey", {name: name for name in sorted(KNOWN)}, module=__name__)  # type: ignore[misc]
DispatchKey.__doc__ = (
    "A place at which kernels are registered, by PyTorch's name.\n\n>>> torch.DispatchKey.CPU.name\n'CPU'"
)


_ASCENDING = (
    UNDEFINED, *_BACKENDS, "BackendSelect", "Python", "Functionalize", "Conjugate", "Negative", "ZeroTensor", "ADInplaceOrView",
    *_AUTOGRADS, "Tracer", *_AUTOCASTS,
)  # fmt: skip
_ORDER = {name: i for i, name in enumerate((*_ASCENDING, *sorted(KNOWN.difference(_ASCENDING))))}


class DispatchKeySet:
    """Some dispatch keys: what a kernel registered with `with_keyset` is told of its call.

    >>> torch.DispatchKeySet(torch.DispatchKey.CPU).has(torch.DispatchKey.CPU)
    True
    """

    __slots__ = ("keys",)

    def __init__(self, keys: DispatchKey | DispatchKeySet | Iterable = ()):
        if isinstance(keys, DispatchKeySet):
            keys = keys.keys
        self.keys = frozenset((keys,) if isinstance(keys, DispatchKey) else keys)

    def has(self, key: DispatchKey) -> bool:
        return key in self.keys

    def add(self, key: DispatchKey) -> DispatchKeySet:
        return DispatchKeySet(self.keys | {key})

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        return DispatchKeySet(self.keys - {key})

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self.keys | other.keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self.keys & other.keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self.keys - other.keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self.keys == other.keys

    def __hash__(self) -> int:
        return hash(self.keys)

    def raw_repr(self) -> int:
        """One number, with a bit for each key."""
        return sum(1 << at for at, key in enumerate(DispatchKey) if key in self.keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(sorted((k.name for k in self.keys), key=_ORDER.__getitem__))})"


class _Included(threading.local):
    """The keys that calls of a thread have besides those of their tensors."""

    keys = DispatchKeySet()


included = _Included()


def chosen_backend(tensors: list[Tensor], keys: int) -> str:
    """Where a call of a library's operator computes: where its tensors are, or where a guard says."""
    own = backend_of(tensors, keys)
    asked = included.keys.keys
    return own if not asked else next((d for d in reversed(_DEVICES) if DispatchKey[d] in asked), own)


def parse(name: str) -> str:
    """A dispatch key at which something can be registered, or PyTorch's error for a name that is none."""
    if name not in KNOWN:
        raise RuntimeError(f"could not parse dispatch key: {name}")
    if name in HONOURED:
        return name
    hint = f": use torch.library.{_INSTEAD[name]}" if name in _INSTEAD else ", which has no meaning in pullback"
    raise NotImplementedError(f"kernels cannot be registered at the dispatch key {name}{hint}")


def for_device(device_type: str) -> str:
    """The key of a device type: "CPU" for "cpu"."""
    key = _DEVICE_KEYS.get(device_type.partition(":")[0])
    if key is None:
        raise RuntimeError(f"Expected one of {_DEVICE_WORDS} device type at start of device string: {device_type}")
    return key


def for_type(name: str) -> str:
    """The key that `impl(..., types)` names: a key, a device type, or "default" for all devices."""
    if name in KNOWN:
        return parse(name)
    return COMPOSITE_EXPLICIT if name == "default" else for_device(name)


def backend_of(tensors: list[Tensor], keys: int) -> str:
    """Where a call on these tensors computes; `keys` are theirs together."""
    if not keys & (META | SPARSE | NESTED):
        for t in tensors:
            if t.device.type != "cpu":
                return _DEVICE_KEYS.get(t.device.type, UNDEFINED)
        return "CPU" if tensors else UNDEFINED
    kind = _DEVICE_KEYS.get(next((t.device.type for t in tensors if t.device.type != "cpu"), "cpu"), UNDEFINED)
    return f"Sparse{kind}" if keys & SPARSE else f"NestedTensor{kind}" if keys & NESTED else kind


def is_backend(key: str) -> bool:
    return parse(key) in _BACKENDS


def own_keys(t: Tensor) -> DispatchKeySet:
    """The keys of a tensor that come of where and how its data lies."""
    backend, kind = backend_of([t], t._keys), for_device(t.device.type)
    recorded = () if t._keys & INFERENCE_TENSOR else ("ADInplaceOrView", f"Autograd{kind}")
    views = [name for bit, name in ((CONJ, "Conjugate"), (NEG, "Negative")) if t._keys & bit]
    return DispatchKeySet(DispatchKey[k] for k in (backend, *recorded, f"Autocast{kind}", *views) if k in KNOWN)


def key_set(backend: str) -> DispatchKeySet:
    """The keys of a call, as a kernel that asks for them sees them."""
    return DispatchKeySet(DispatchKey[k] for k in (backend, f"Autograd{backend}") if k in KNOWN)
