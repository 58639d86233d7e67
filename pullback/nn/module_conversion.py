"""Changing what a module's tensors are: dtype, device, memory format. In place for the module; parameters keep their "
"identity."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Self

from ..core import dtype as dtypes
from ..core.device import device as device_type
from ..core.dtype import dtype as dtype_type
from ..core.modes import FUNCTION, ambient, no_grad
from ..core.swap import swap_tensors
from ..core.tensor import META, SPARSE, Tensor
from ..ops.system.operator import public
from ..ops.system.overrides import call_overridden
from .conversion_flags import Flags
from .parameter import Parameter, is_lazy


def _same_kind(a: Tensor, b: Tensor) -> bool:
    """Whether one tensor may take over another's data in place."""
    return type(a) is type(b) or not (a._keys ^ b._keys) & (META | SPARSE) and a.device.type == b.device.type


def _no_form(args: tuple) -> TypeError:
    """The error for arguments that are no form of `.to`."""
    common = "bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None"
    forms = ("torch.device device = None, torch.dtype dtype = None", "torch.dtype dtype", "Tensor tensor")
    got = ", ".join(type(a).__name__ for a in args)
    listed = "".join(f"\n * ({form}, {common})" for form in forms)
    return TypeError(f"to() received an invalid combination of arguments - got ({got}), but expected one of:{listed}")


def _parse_to(*args, device=None, dtype=None, non_blocking: bool = False, tensor=None, memory_format=None, copy=False):
    """(device, dtype, non_blocking, memory format) from the forms of `.to`."""
    if ambient.mode & FUNCTION:
        named = {"device": device, "dtype": dtype, "tensor": tensor, "memory_format": memory_format}
        options = {name: value for name, value in named.items() if value is not None}
        return call_overridden(_parse_to, args, {**options, "non_blocking": non_blocking, "copy": copy})
    if copy:
        raise RuntimeError(".to() does not accept copy argument")
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        tensor = rest.pop(0)
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    elif rest and (rest[0] is None or isinstance(rest[0], (str, int, device_type))):
        device = rest.pop(0)
        if rest:
            dtype = rest.pop(0)
        if dtype is not None and not isinstance(dtype, dtype_type):
            raise _no_form(args)
    elif rest and isinstance(rest[0], dtype_type):
        dtype = rest.pop(0)
    elif rest:
        raise _no_form(args)
    if rest:
        non_blocking = rest.pop(0)
        if not isinstance(non_blocking, bool):
            raise _no_form(args)
    return None if device is None else device_type(device), dtype, non_blocking, memory_format


class ModuleConversion:
    """The part of `Module` that converts."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of every parameter, gradient and buffer by what `fn` makes of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                self._parameters[name] = self._applied(param, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _applied(self, param: Parameter, fn: Callable) -> Parameter:
        with no_grad():
            result = fn(param)
        if is_lazy(param):
            return result
        grad = param.grad
        if Flags.swap:
            kept, param.grad = param, None
            swap_tensors(param, Parameter(result.detach(), param.requires_grad))
        elif not Flags.overwrite and _same_kind(param, result):
            kept = param
            kept.data = result
        else:
            kept = Parameter(result, param.requires_grad)
        if grad is not None:
            with no_grad():
                kept_grad = fn(grad)
            kept.grad = None
            kept.grad = kept_grad.requires_grad_(grad.requires_grad)
        return kept

    def to(self, *args, **kwargs) -> Self:
        """Move and cast all tensors: `to(device)`, `to(dtype)`, `to(tensor)`, `to(memory_format=...)`."""
        device, dtype, non_blocking, wanted_format = _parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature under active development whose design may change, and some "
                    "modules might not work as expected when using complex tensors as parameters or buffers. Please "
                    "file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a "
                    "complex module does not work as expected.",
                    stacklevel=2,
                )

        def convert(t: Tensor) -> Tensor:
            target = dtype if t.is_floating_point() or t.is_complex() else None
            if wanted_format is not None and t.dim() in (4, 5):
                return t.to(device, target, non_blocking, memory_format=wanted_format)
            try:
                return t.to(device, target, non_blocking)
            except NotImplementedError as e:
                if "Cannot copy out of meta tensor" not in str(e):
                    raise
                raise NotImplementedError(
                    f"{e} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module "
                    "from meta to a different device."
                ) from None

        return self._apply(convert)

    def to_empty(self, *, device, recurse: bool = True) -> Self:
        """Move to a device without copying storage."""
        return self._apply(lambda t: public("torch", "empty_like")(t, device=device), recurse=recurse)

    def type(self, dst_type) -> Self:
        return self._apply(lambda t: t.type(dst_type))

    def _cast_floats(self, dtype: dtypes.dtype) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Self:
        return self._cast_floats(dtypes.float32)

    def double(self) -> Self:
        return self._cast_floats(dtypes.float64)

    def half(self) -> Self:
        return self._cast_floats(dtypes.float16)

    def bfloat16(self) -> Self:
        return self._cast_floats(dtypes.bfloat16)

    def cpu(self) -> Self:
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None) -> Self:
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device=None) -> Self:
        return self._apply(lambda t: t.to("xpu" if device is None else f"xpu:{device}"))

    def ipu(self, device=None) -> Self:
        return self._apply(lambda t: t.to("ipu" if device is None else f"ipu:{device}"))

    def mtia(self, device=None) -> Self:
        return self._apply(lambda t: t.to("mtia" if device is None else f"mtia:{device}"))

    def share_memory(self) -> Self:
        """Put all tensors into memory that other processes can map."""
        return self._apply(lambda t: t.share_memory_())
