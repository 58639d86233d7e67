"""Small functions behind private names of PyTorch that packages call."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from ..capture.trace.graph_trace import GraphTrace
from ..core import dtype as dtypes
from ..core.device import device as device_type
from ..core.device import device as device_type_of
from ..core.geometry import is_dense
from ..core.modes import ambient
from ..core.random import manual_seed
from ..core.storage import storage_of
from ..core.tensor import Tensor
from ..core.tree import tree_map_only
from ..ops.make.random import fork_rng
from ..ops.make.storages import LEGACY
from ..surface.jit.graphs import TracingState, tracing_state
from ..surface.overrides import resolve_name
from ..surface.settings import get_default_device as default

MAP_LOCATION = Callable[[Any, str], Any] | Any | str | dict[str, str] | None


DTYPE_ABBRS = {d: d.abbr for d in dtypes.by_name.values()}


def with_a_seed(op: Callable, *args: Any, **kwargs: Any) -> Any:
    """What a function gives with a seed of its own, the generators left as they were."""
    with fork_rng():
        manual_seed(42)
        return op(*args, **kwargs)


class _KindOfTensorMeta(type):
    """Lets `isinstance(cls, TensorMeta)` mean that `cls` is a class of tensors."""

    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, type) and issubclass(instance, Tensor)


class TensorMeta(type, metaclass=_KindOfTensorMeta):
    """The metaclass of tensors in PyTorch, from which others are derived. Tensors have no metaclass here, so any will do."""


def log_api_usage_once(event: str) -> None:
    """PyTorch tells a logger that its operators may install which features are used. There is none here to tell."""


def get_tracing_state() -> TracingState | None:
    """The state of a run that becomes a graph to read (`jit._get_trace_graph`)."""
    return tracing_state()


def get_proxy_mode() -> GraphTrace | None:
    """The trace that records operators now, if there is one."""
    return next((mode for mode in reversed(ambient.dispatch_modes) if isinstance(mode, GraphTrace)), None)


class python_rules:
    """A block in which rules that are written in Python count. All rules are, here, so there is nothing to switch."""

    def __enter__(self) -> None:
        """They count already."""

    def __exit__(self, *exc) -> None:
        """They go on counting."""


def storage_id(t: Tensor) -> int:
    """A number by which tensors on one storage know each other."""
    return id(storage_of(t))


def joined_path(*parts: str) -> str:
    """The path of a file that lies beside a program, by its parts (`torch._utils_internal.get_file_path`)."""
    return os.path.join(*parts)


def all_same_mode(modes) -> bool:
    """Whether modes are one and the same."""
    return all(mode == modes[0] for mode in modes)


def all_dtypes() -> list:
    """The dtypes of tensors: neither quantised ones nor integers of less than a byte."""
    return [*dtypes.ALL, *(d for name, d in dtypes.opaque.items() if name.startswith(("bits", "float")))]


def has_internal_overlap(t: Tensor) -> int:
    """Whether two indices of a tensor name one element: no (0), yes (1), or 2 where strides alone do not tell."""
    if is_dense(t.shape, t.stride()):
        return 0
    return 1 if any(st == 0 and s > 1 for s, st in zip(t.shape, t.stride(), strict=True)) else 2


def register_device_module(device_type: str, module) -> None:
    """Let `torch.<device type>` be the module of a device that another package serves."""
    torch = importlib.import_module("torch")
    name = device_type_of(device_type).type
    if hasattr(torch, name):
        raise RuntimeError(f"The runtime module of '{name}' has already been registered with '{getattr(torch, name)}'")
    setattr(torch, name, module)
    sys.modules[f"torch.{name}"] = module


def get_privateuse1_backend_name() -> str:
    return "privateuseone"


def cast(value, device_type: str, dtype):
    """Every floating point tensor in a nest of containers in another dtype (`torch.amp.autocast_mode._cast`)."""
    if isinstance(value, Tensor):
        wanted = value.is_floating_point() and value.device.type == device_type and value.dtype.name != "float64"
        return value.to(dtype) if wanted else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, dict):
        return {cast(k, device_type, dtype): cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([cast(v, device_type, dtype) for v in value])
    return value


def get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device (`torch.cuda._utils._get_device_index`)."""
    if isinstance(device, int):
        return device
    where = device_type(device) if isinstance(device, str) else device
    if isinstance(where, device_type):
        if where.type == "cpu" and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        if where.type == "cpu":
            return -1
        if where.index is not None:
            return where.index
    if optional:
        from .. import cuda

        return cuda.current_device()
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {device}")


def get_available_device_type() -> str | None:
    """The type of the accelerator that is there, if any."""
    from .. import cuda

    return "cuda" if cuda.is_available() else None


def get_device_module(device_type: str):
    """The module of a device type: `torch.cuda` for "cuda"."""
    import pullback

    found = getattr(pullback, device_type, None)
    if found is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        )
    return found


def element_size(dtype) -> int:
    """The number of bytes of one element."""
    return dtype.itemsize


def is_function_mode_enabled() -> bool:
    """Whether a `TorchFunctionMode` is entered."""
    return bool(ambient.function_modes)


def count_function_modes() -> int:
    return len(ambient.function_modes)


def are_transforms_active() -> bool:
    """Whether a function transform (`vmap`, `grad`, ...) is open."""
    return ambient.function_levels > 0 or bool(ambient.transforms)


def get_accelerator():
    """The device type that is not the CPU, where there is one."""
    return device_type(get_available_device_type() or "cpu")


def get_default_device() -> str:
    return str(default())


def tqdm(iterable=None, **options):
    """tqdm's progress bar where it is installed; without it, what is iterated over, as it is."""
    try:
        from tqdm import tqdm as bar
    except ImportError:
        return iterable
    return bar(iterable, **options)


def is_compile_supported(device_type: str) -> bool:
    """Whether `compile` makes graphs for a device type."""
    return device_type_of(device_type).type in ("cpu", "cuda")


def is_dynamo_supported() -> bool:
    """Whether this Python's bytecode can be captured: wherever the package runs."""
    return True


def gelu_(self, *, approximate: str = "none"):
    """The in-place form of `gelu`."""
    from ..ops.system.packet import packet

    return packet("aten", "gelu_").default(self, approximate=approximate)


def fixed_sizes(t: Tensor) -> tuple[int, ...]:
    """The sizes of a tensor as plain numbers: symbols become those that they stand for."""
    return tuple([int(s) for s in t.shape])


def try_import(module_name: str) -> types.ModuleType | None:
    """A module, or None where there is none of that name."""
    if (found := sys.modules.get(module_name)) is not None:
        return found
    return importlib.import_module(module_name) if importlib.util.find_spec(module_name) is not None else None


def render_call(fn: Callable, args: Sequence, kwargs: dict[str, Any]) -> str:
    """A call as Python would write it, with the sizes of tensors for their values."""
    words = [repr(_rendered(a)) for a in args] + [f"{k}={_rendered(v)!r}" for k, v in kwargs.items()]
    return f"{resolve_name(fn) or fn}({', '.join(words)})"


def _rendered(value: Any) -> Any:
    """A value with its tensors replaced by something that prints as `tensor([...], size=(2, 3))`."""

    def short(t: Tensor) -> SimpleText:
        kind = "" if t.dtype is ambient.default_dtype else f", dtype={t.dtype}"
        return SimpleText(f"tensor([...], size={tuple(t.shape)}{kind})")

    return tree_map_only(Tensor, short, value)


class SimpleText(str):
    """Text that prints as itself."""

    __slots__ = ()

    __repr__ = str.__str__


def __getattr__(name: str) -> Any:
    """`Storage`: the old class of storages of the default dtype, whichever that is now."""
    if name == "Storage":
        return LEGACY[f"{ambient.default_dtype.scalar_name}Storage"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
