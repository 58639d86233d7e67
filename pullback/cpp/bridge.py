"""What the C++ headers call, by name: one module, so that a header needs one import.

In: C++ values as Python objects (names for dtypes and devices, numbers for addresses). Out: tensors, functions, contexts.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum

import numpy as np

from ..autograd.calls import backward
from ..autograd.calls import grad as gradients
from ..autograd.grad_mode import enable_grad, inference_mode, no_grad
from ..core import device as devices
from ..core import dtype as dtypes
from ..core.device import device
from ..core.dtype import dtype
from ..core.layers import above
from ..core.modes import is_grad_enabled
from ..core.tensor import Tensor
from ..library.dispatcher import AutoDispatchBelowAutograd
from ..library.functions import lookup
from ..library.kernels import fallthrough_kernel
from .calls import function
from .functions import apply_function, declare_function
from .registry import library, note_failure, raise_failures

__all__ = [
    "Tensor", "address", "apply_function", "as_tensor", "backward", "context", "contiguous", "declare_function", "device",
    "device_named", "dtype", "dtype_named", "enumeration", "fallthrough_kernel", "find_operator", "format_named",
    "from_memory", "function", "grad", "is_alias", "is_contiguous", "is_dense", "is_grad_enabled", "layout_named", "library",
    "manual_seed", "note_failure", "promote_types", "raise_failures", "tensor",
]  # fmt: skip

NOT_ALLOCATED = (
    "The tensor has a non-zero number of elements, but its data is not allocated yet.\nIf you're using torch.compile/export/fx, "
    "it is likely that we are erroneously tracing into a custom kernel. To fix this, please wrap the custom kernel into an opaque "
    "custom op. Please see the following for details: https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html"
)
CONTEXTS = {
    "no_grad": no_grad,
    "enable_grad": enable_grad,
    "inference_mode": inference_mode,
    "normal_mode": contextlib.nullcontext,
    "below_autograd": AutoDispatchBelowAutograd,
}


# ---- values by name
def dtype_named(name: str) -> dtype:
    """A dtype by its Python name."""
    return dtypes.by_name[name]


device_named = device


def layout_named(name: str):
    """A layout by its name."""
    return getattr(devices, name)


format_named = layout_named


class Enumeration(enum.Enum):
    """Base of bound C++ enumerations: a value has a number, and is equal to itself alone."""

    def __index__(self) -> int:
        return self.value

    __int__ = __index__


def enumeration(scope, name: str, values: list[tuple[str, int]]) -> type[Enumeration]:
    """A C++ enumeration as a Python one, in the module or class it is bound in."""
    result = Enumeration(name, values, module=getattr(scope, "__name__", None))
    setattr(scope, name, result)
    return result


# ---- memory
def address(t: Tensor) -> int:
    """Where the first element of a tensor is; tensors without data have none."""
    if t.device.type == "meta":
        raise RuntimeError(NOT_ALLOCATED)
    if t.device.type != "cpu":
        raise RuntimeError(f"data_ptr: C++ can read the memory of tensors on the CPU only, this one is on {t.device}")
    if t.is_conj() or t.is_neg():
        raise RuntimeError(
            "data_ptr: the tensor is a conjugate or negative view, whose memory holds other values: call resolve_conj() or resolve_neg() first"
        )
    return t.data_ptr()


def from_memory(place: int, sizes: list[int], strides: list[int] | None, kind: dtype, owner: object) -> Tensor:
    """A tensor on memory that C++ owns; `owner` is let go when nobody holds the memory."""
    numpy = dtypes.computable(kind).numpy
    size = numpy.itemsize
    steps = (
        strides
        if strides is not None
        else list(np.empty(sizes, np.bool_).strides)
        if 0 not in sizes
        else [0] * len(sizes)
    )
    reach = 1 + sum((n - 1) * s for n, s in zip(sizes, steps, strict=True)) if 0 not in sizes else 0
    memory = (ctypes.c_char * (reach * size)).from_address(place)
    memory.owner = owner
    flat = np.frombuffer(memory, numpy, reach)
    return root().from_numpy(np.lib.stride_tricks.as_strided(flat, sizes, [s * size for s in steps]))


def is_contiguous(t: Tensor, layout) -> bool:
    return t.is_contiguous(memory_format=layout)


def contiguous(t: Tensor, layout) -> Tensor:
    return t.contiguous(memory_format=layout)


def is_dense(t: Tensor) -> bool:
    """Whether the elements fill their memory without gaps or overlaps, in whatever order of dimensions."""
    reach = 1
    for step, size in sorted((s, n) for s, n in zip(t.stride(), t.shape, strict=True) if n != 1):
        if step != reach:
            return False
        reach *= size
    return True


def is_alias(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are on one storage."""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


# ---- functions
def root():
    """The package itself: its functions are those that users call."""
    return above.package()


def tensor(values, kind: dtype | None, options: dict) -> Tensor:
    """`torch.tensor`, with a dtype that C++ values have where the options say none."""
    return root().tensor(values, **{"dtype": kind, **options})


def as_tensor(value, like: Tensor) -> Tensor:
    """A number as a tensor of the dtype of another; tensors as they are."""
    return value if isinstance(value, Tensor) else root().tensor(value, dtype=like.dtype, device=like.device)


def manual_seed(seed: int) -> None:
    root().manual_seed(seed)


def promote_types(a: dtype, b: dtype) -> dtype:
    return root().promote_types(a, b)


def context(name: str):
    """A block of ambient state."""
    return CONTEXTS[name]()


def find_operator(name: str, overload: str):
    """An operator by its qualified name, or PyTorch's error."""
    try:
        return lookup(f"{name}.{overload}" if overload else name)
    except AttributeError:
        raise RuntimeError(f"Could not find schema for {name}.{overload}") from None


def grad(
    outputs: list, inputs: list, grads: list, retain_graph: bool | None, create_graph: bool, allow_unused: bool
) -> tuple:
    return gradients(
        outputs, inputs, grads or None, retain_graph=retain_graph, create_graph=create_graph, allow_unused=allow_unused
    )
