"""What packages import of modules of PyTorch's own and that has no other home here: devices, switches, checks of arguments."""

from __future__ import annotations

import functools
import importlib.util
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from .. import cuda
from ..core import dtype as dtypes
from ..core.device import device as Device
from ..core.dtype import finfo
from ..core.modes import ambient, decorate
from ..core.tensor import Tensor
from ..ops.network.multihead import additive_mask
from ..surface.settings import get_default_device

HAS_NUMPY = True
HAS_XPU = False  # no device of Intel's can be used
HAS_SPECTRAL = True  # Fourier transforms need no other library
_warned: set[str] = set()
_tuned: dict[tuple, dict] = {}  # parameters of Triton's kernels, by operator, device and version


class AsyncCollectiveTensor(Tensor):
    """A result of a collective that has not arrived. Here collectives have finished when they return: nothing is one."""

    def __new__(cls, *args: Any, **kwargs: Any):
        raise TypeError("AsyncCollectiveTensor: collectives return tensors that have arrived; none can be made")


class JitState:
    """Whether `torch.jit.script` is asked for (`torch.jit._state._enabled`): it gives the Python function either way."""

    enabled = True

    def __bool__(self) -> bool:
        return self.enabled


jit_state = JitState()


def get_meta_triton(
    op: str, key: tuple, device_name: str | None = None, version: Any = (0, dtypes.float16, 0.5), exact: bool = False
) -> dict | None:
    """The parameters that were put down for a kernel of Triton; None where nobody did."""
    return _tuned.get((op, device_name, version), {}).get(key)


def update_triton(op: str, device_name: str | None, version: Any, key: tuple, value: Any) -> None:
    """Put parameters of a kernel down."""
    _tuned.setdefault((op, device_name, version), {})[key] = value


def minimize_triton(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError("parameters of Triton's kernels cannot be searched for: no such kernels run here")


def inline_asm_elementwise(*inputs: Tensor, asm_str: str, **options: Any) -> NoReturn:
    raise NotImplementedError("inline_asm_elementwise: instructions of CUDA devices cannot be put into kernels here")


def has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """Whether a tensor can take over the data of another by `.data = `: of one layout, on one type of device."""
    return input.layout is from_.layout and input.device.type == from_.device.type


def warn_once(msg: str, stacklevel: int = 1) -> None:
    """A warning, the first time that its text is heard (`torch._dynamo.utils.warn_once`)."""
    if msg not in _warned:
        _warned.add(msg)
        warnings.warn(msg, stacklevel=stacklevel + 1)


def has_triton() -> bool:
    """Whether kernels of Triton can run: nothing here makes or runs them."""
    return False


def has_triton_package() -> bool:
    """Whether the package is installed."""
    return importlib.util.find_spec("triton") is not None


class DeviceContext:
    """A block in which a device is the default one, or the one in use where None is said (`torch.utils._device`)."""

    def __init__(self, device: Any) -> None:
        self.device = Device(device) if device is not None else get_default_device()

    def __enter__(self) -> DeviceContext:
        self.device.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.device.__exit__(*exc)


def set_device(device: Any) -> Callable[[Callable], Callable]:
    """A decorator: the function runs with another default device."""

    return functools.partial(decorate, functools.partial(DeviceContext, device))


def when_cuda_starts(function: Callable, **options: Any) -> None:
    """Call a function once CUDA is up: now where there is a device, never where there is none."""
    if cuda.is_available():
        function()


def is_checkpoint_valid() -> bool:
    """Whether a backward inside the one that runs would reach all it must: not where gradients of some inputs are asked for."""
    return not ambient.tasks or ambient.tasks[-1].needed is None


def unscale_lists(tensors: list[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Gradients times `inv_scale`, in place; `found_inf` becomes 1 where one of them was not finite."""
    for t in tensors:
        if not bool(t.isfinite().all()):
            found_inf.fill_(1.0)
        t.mul_(inv_scale)


def clipped_sigmoid(x: Tensor) -> Tensor:
    """`sigmoid`, kept a little away from 0 and 1."""
    info = finfo(x.dtype)
    return x.sigmoid().clamp(min=info.tiny, max=1.0 - info.eps)


def none_or_dtype(input: Tensor | None) -> dtypes.dtype | None:
    """The dtype of a tensor that may be absent."""
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: dtypes.dtype | None, other_name: str,
    target_type: dtypes.dtype, check_other: bool = True,
) -> Tensor | None:  # fmt: skip
    """A mask of attention as numbers to add: -inf where a boolean one is True."""
    if mask is not None and check_other and other_type is not None and mask.dtype is not other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=2,
        )
    return additive_mask(mask, mask_name, target_type)


class Switch:
    """A switch of a compiler that is not here: what programs set, they read again, and nothing follows from it."""

    def __init__(self, value: bool):
        self.value = value

    def set(self, value: bool) -> bool:
        """The new value; what it was before comes back."""
        before, self.value = self.value, value
        return before

    def get(self) -> bool:
        return self.value


profiling_executor, profiling_mode, fusion_on_cpu, fusion_on_gpu = (
    Switch(True),
    Switch(True),
    Switch(False),
    Switch(True),
)
tensor_expressions, nvfuser = Switch(True), Switch(False)


def take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Tensors in groups of one dtype, each of which is given when it reaches so many bytes, the rest at the end."""
    groups: dict[Any, list[Tensor]] = {}
    sizes: dict[Any, int] = {}
    for t in tensors:
        kind = t.type()
        size = t.numel() * t.element_size()
        if sizes.get(kind, 0) + size > size_limit and groups.get(kind):
            yield groups[kind]
            groups[kind], sizes[kind] = [], 0
        groups.setdefault(kind, []).append(t)
        sizes[kind] = sizes.get(kind, 0) + size
    yield from filter(None, groups.values())
