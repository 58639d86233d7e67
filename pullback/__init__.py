"""pullback: automatic differentiation and a training compiler behind PyTorch's API.

    import pullback as torch

This module is assembly only: it gathers the public names of the layers below.
"""

from __future__ import annotations

from .core.start_up import uncollected as _uncollected  # noqa: I001

with _uncollected():
    from . import ops as _operators  # declares all operators, on which the rest stands
from .core import device as _devices
from .core import dtype as _dtypes
from .core.device import device, layout, memory_format, qscheme
from .core.dtype import dtype, finfo, iinfo
from .core.modes import (
    enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled,
)  # fmt: skip
from .core import subclasses as _makers  # adds the makers of subclasses to Tensor
from .core import symbolic as _symbolic
from .core.promotion import can_cast, promote_types
from .core.size import Size
from .core.storage import StorageBase, UntypedStorage
from .core.tensor import Parameter, Tensor
from .ops.make.construct import TYPED as _TYPED
from .ops.make.storages import LEGACY as _STORAGES
from .ops.make.storages import TypedStorage
from .ops.system.operator import exports as _exports
from .ops.system import packet as _packet
from .surface import settings as _settings
from .surface.version import __version__

globals().update(_exports["torch"])
globals().update({d.name: d for d in _dtypes.ALL} | {d.alias: d for d in _dtypes.ALL} | _dtypes.opaque)
globals().update({n: v for n, v in vars(_devices).items() if isinstance(v, (layout, memory_format, qscheme))})
globals().update(_TYPED | _STORAGES)
globals().update(_settings.public)
globals().update(_symbolic.public)

from math import e, inf, nan, pi  # noqa: E402

from . import amp, autograd  # noqa: E402
from .surface import homes, loading as _loading, namespaces, overrides, tracebacks as _tracebacks  # noqa: E402
from .amp.autocast import autocast  # noqa: E402
from .amp.autocast import public as _autocast_functions  # noqa: E402
from .core import printing as _printing  # noqa: E402

globals().update(_autocast_functions)
ops = _packet.ops
DisableTorchFunction = overrides.DisableTorchFunction
DisableTorchFunctionSubclass = overrides.DisableTorchFunctionSubclass
set_printoptions = _printing.set_printoptions
newaxis = None
homes.install(__name__)
namespaces.install(__name__)
_tracebacks.install()

_LATER = frozenset((
    "nn", "optim", "testing", "utils", "amp", "profiler", "distributed", "distributions", "compiler", "library",
    "overrides", "accelerator", "backends", "cpu", "cuda", "futures", "hub", "jit", "serialization",
    "version", "xpu", "export", "func", "fx", "nested", "sparse", "multiprocessing", "monitor", "__future__", "masked",
))  # fmt: skip
_HOMES = {
    "Stream": "surface.streams", "Event": "surface.streams", "OutOfMemoryError": "core.errors", "AcceleratorError": "core.errors",
    "FatalError": "core.errors", "Future": "surface.futures", "ScriptModule": "surface.jit", "ScriptObject": "surface.jit", "ScriptFunction": "surface.jit", "CompilationUnit": "surface.jit", "fork": "surface.jit", "wait": "surface.jit",
    "GradScaler": "amp", "Tag": "surface.names", "classproperty": "surface.names",
    "TYPE_CHECKING": "surface.names", "PRIVATE_OPS": "surface.names", "set_anomaly_enabled": "autograd.anomaly_mode",
    "is_anomaly_enabled": "autograd.anomaly_mode", "is_anomaly_check_nan_enabled": "autograd.anomaly_mode",
    "DispatchKey": "library.keys", "DispatchKeySet": "library.keys", "save": "serialization", "load": "serialization", "PyTorchFileReader": "serialization.file_reader", "compile": "capture.front.compile", "SymInt": "capture.shapes.numbers",
    "SymFloat": "capture.shapes.numbers", "SymBool": "capture.shapes.numbers", "_assert": "graph.assertions",
    "cond": "capture.higher_order", "while_loop": "capture.higher_order", "vmap": "func",
}  # fmt: skip
_MODULES = {
    "return_types": "ops.system.return_types", "types": "surface.types", "quasirandom": "surface.quasirandom",
    "mps": "surface.mps",
}  # fmt: skip


def __getattr__(name: str):
    """Submodules that programs name without importing them, and rare names, are loaded then, not before."""
    import importlib.util

    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{_MODULES[name]}")
    if name in _LATER and importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names that are loaded later are there too."""
    return sorted({*globals(), *_LATER, *_HOMES, *_MODULES})
