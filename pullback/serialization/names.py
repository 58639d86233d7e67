"""The names under which PyTorch's files speak of classes, functions and constants, and what they mean here.

`resolve(module, name)` gives the object that a file's name means; `name_of(object)` gives the name to write for an
object, or None where PyTorch has no such thing (it is then written under its own name). A name that is written here is
one that `resolve` finds again.
"""

from __future__ import annotations

import importlib
from functools import cache
from types import FunctionType
from typing import Any

from ..core import device as devices
from ..core import dtype as dtypes
from ..core.random import Generator
from ..core.size import Size
from ..core.storage import UntypedStorage
from ..core.tensor import Parameter, Tensor
from ..ops.make.construct import TYPED
from ..ops.make.storages import TypedStorage
from . import tensors
from .storage_types import STORAGE_TYPES, StorageType

_ROOT = __package__.partition(".")[0]

# Files of torch.nn.modules that are called otherwise here, and classes that share a file here only.
_NN_FILES = {
    "attention_module": "activation",
    "containers": "container",
    "embedding": "sparse",
    "norm": "normalization",
}
_NN_CLASSES = {
    "ChannelShuffle": "channelshuffle", "Flatten": "flatten", "Unflatten": "flatten", "Fold": "fold", "Unfold": "fold",
    "PixelShuffle": "pixelshuffle", "PixelUnshuffle": "pixelshuffle", "Upsample": "upsampling",
    "UpsamplingBilinear2d": "upsampling", "UpsamplingNearest2d": "upsampling",
} | {f"{lazy}InstanceNorm{n}d": "instancenorm" for lazy in ("", "Lazy") for n in (1, 2, 3)}  # fmt: skip

# Packages whose modules PyTorch lays out alike, and those that are one module there.
_ALIKE = ("optim.", "distributions.", "utils.data.", "nn.utils.")
_ONE_MODULE = ("optim.lr_scheduler", "utils.checkpoint")
_FUNCTIONS = ("nn.functional", "", "nn.init")
_PRIVATE = {
    ("torch.nn.modules.module", "_WrappedHook"): ("nn.module_state", "_BoundHook"),
    ("torch.utils.hooks", "RemovableHandle"): ("autograd.methods", "RemovableHandle"),
    ("torch.storage", "_load_from_bytes"): ("serialization.files", "load_from_bytes"),
    ("torch._C", "_LinAlgError"): ("linalg", "LinAlgError"),
}


@cache
def constants() -> dict[tuple[str, str], Any]:
    """What tensors are written with: these names are harmless, and the safe loader knows no others."""
    found: dict[tuple[str, str], Any] = {
        ("torch", "Size"): Size,
        ("torch", "Tensor"): Tensor,
        ("torch", "device"): devices.device,
        ("torch.nn.parameter", "Parameter"): Parameter,
        ("torch.storage", "UntypedStorage"): UntypedStorage,
        ("torch.storage", "TypedStorage"): TypedStorage,
        ("torch._tensor", "_rebuild_from_type_v2"): tensors.rebuild_from_type,
        ("torch.serialization", "_get_layout"): tensors.layout_named,
        ("torch.nested._internal.nested_tensor", "_rebuild_njt"): tensors.rebuild_jagged_tensor,
        ("torch._dynamo.decorators", "_DimRange"): tensors.Ignored,
    }
    found.update({("torch._utils", name): function for name, function in tensors.REBUILDERS.items()})
    found.update({("torch", d.name): d for d in dtypes.ALL})
    found.update({("torch", name): d for name, d in dtypes.opaque.items()})
    found.update({("torch", n): v for n, v in vars(devices).items() if isinstance(v, devices.qscheme)})
    for space in ("torch", "torch.cuda"):
        found.update({(space, name): kind for name, kind in STORAGE_TYPES.items()})
    found.update({("torch", name): kind for name, kind in TYPED.items()})
    found["torch.nested._internal.nested_tensor", "NestedTensor"] = Tensor  # no class of its own here
    return found


@cache
def _written() -> dict[int, tuple[str, str]]:
    """The name of each constant, by identity (some compare equal to other things)."""
    names = {id(value): name for name, value in reversed(constants().items())}
    formats = {id(v): ("torch", n) for n, v in vars(devices).items() if isinstance(v, devices.memory_format)}
    return names | formats | {id(Generator): ("torch._C", "Generator")}


def name_of(value: Any) -> tuple[str, str] | None:
    """The module and name that PyTorch gives to one of our classes, functions or constants."""
    known = _written().get(id(value))
    if known is not None or isinstance(value, StorageType):
        return known
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not module.startswith(f"{_ROOT}."):
        return None
    inside = module[len(_ROOT) + 1 :]
    if isinstance(value, type):
        found = _class_name(inside, name)
    elif isinstance(value, FunctionType) or callable(value):
        found = _function_name(value, inside, name)
    else:
        return None
    return found if found is not None and _resolves_to(found, value) else None


def _class_name(inside: str, name: str) -> tuple[str, str] | None:
    private = next((theirs for theirs, ours in _PRIVATE.items() if ours == (inside, name)), None)
    if private is not None:
        return private
    package, _, file = inside.partition(".")
    if package == "nn" and "." not in file:
        if file == "parameter":
            return "torch.nn.parameter", name
        return f"torch.nn.modules.{_NN_CLASSES.get(name) or _NN_FILES.get(file, file)}", name
    for whole in _ONE_MODULE:
        if inside.startswith(f"{whole}."):
            return f"torch.{whole}", name
    return (f"torch.{inside}", name) if f"{inside}.".startswith(_ALIKE) else None


def _function_name(value: Any, inside: str, name: str) -> tuple[str, str] | None:
    if inside.startswith(_ALIKE):
        return f"torch.{inside}", name
    plain = getattr(value, "__name__", name)
    for home in _FUNCTIONS:
        if getattr(_module(home), plain, None) is value:
            return f"torch.{home}".rstrip("."), plain
    return None


def _resolves_to(name: tuple[str, str], value: Any) -> bool:
    try:
        return resolve(*name) is value
    except (AttributeError, ImportError):
        return False


def _module(inside: str) -> Any:
    return importlib.import_module(f"{_ROOT}.{inside}".rstrip("."))


def resolve(module: str, name: str) -> Any:
    """The object that PyTorch's `module.name` means here; AttributeError where there is none."""
    if (module, name) in constants():
        return constants()[module, name]
    if (module, name) == ("torch._C", "Generator"):
        return Generator
    private = _PRIVATE.get((module, name))
    if private is not None:
        return getattr(_module(private[0]), private[1])
    for home in _homes(module):
        try:
            return _attribute(_module(home), name)
        except (ImportError, AttributeError):
            continue
    raise AttributeError(f"Can't get attribute '{name}' of '{module}': {_ROOT} has nothing under this name")


def _homes(module: str) -> list[str]:
    """Where to look for what a module of PyTorch has, the likeliest first."""
    inside = module.removeprefix("torch").removeprefix(".")
    if inside.startswith("nn.modules"):
        return ["nn", inside.replace("nn.modules", "nn")]
    parents = [inside]
    while "." in inside:
        inside = inside.rpartition(".")[0]
        parents.append(inside)
    return parents


def _attribute(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = getattr(value, part)
    return value
