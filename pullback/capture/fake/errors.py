"""What goes wrong with fake tensors: the errors, and the words of those that are not classes of their own.

In: the operator at fault, and the values that it was given. Out: exceptions with PyTorch's names and words.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.tensor import FAKE, Tensor
from ...nn.parameter import Buffer, Parameter
from ...ops.system.operator import Operator
from ...ops.system.overrides import call_form


class ViewMismatch(RuntimeError, ValueError):
    """A shape that memory cannot be seen in without being copied."""

    def __init__(self, t: Tensor, size: Sequence, reason: Exception):
        shape, stride = tuple(t._array.shape), tuple(t._array.stride)
        super().__init__(
            f"Cannot view a tensor with shape {shape} and strides {stride} as a tensor with shape {tuple(size)}! {reason}"
        )


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that has no fake: its layout is none that shape rules describe."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class _OperatorException(RuntimeError):
    is_expected = True

    def __init__(self, func: Operator):
        super().__init__(str(func))
        self.func = func


class DynamicOutputShapeException(_OperatorException):
    """The shape of a result depends on data."""


class DataDependentOutputException(_OperatorException):
    """A Python value that depends on data was asked for."""


class UnsupportedOperatorException(_OperatorException):
    """An operator that has no shape rule."""


class UnsupportedMutationAliasingException(RuntimeError):
    """A write that reaches further than it says."""


class MetadataMismatchError(RuntimeError):
    """What a shape rule says is not what its kernel made."""


class FakeTensorDeviceMismatchError(RuntimeError):
    """Operands on two devices."""

    def __init__(self, func: Operator, common_device, device):
        super().__init__(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{common_device} and {device}!"
        )
        self.func, self.common_device, self.device = func, common_device, device


def real_among_fakes(op: Operator, args: tuple) -> AssertionError | TypeError:
    """The error for a real tensor that meets fakes, with the call as it would be written; for one of a class that fakes do not know,
    that nobody answers the call."""
    unknown = {type(t) for t in op.tensors(args) if type(t) not in (Tensor, Parameter, Buffer) and not t._keys & FAKE}
    if unknown:
        return TypeError(
            f"Multiple dispatch failed for 'torch._ops.{op}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
            "  - mode object FakeTensorMode, which was given no fakes of these tensors\n"
            + "\n".join(f"  - tensor subclass {cls}" for cls in unknown)
        )
    positional, keywords = call_form(op, args)
    said = [_written(a) for a in positional] + [f"{k}={_written(v)}" for k, v in keywords.items()]
    return AssertionError(
        "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. "
        f"Found in {op}({', '.join(said)})"
    )


def _written(value) -> str:
    if isinstance(value, Tensor):
        if value._keys & FAKE:
            return repr(value)
        return f"{'tensor' if type(value) is Tensor else type(value).__name__}([...], size={tuple(value.shape)})"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_written, value))}]"
    return repr(value)


def mixed_modes(tensor: Tensor, mode) -> AssertionError:
    """The error for fakes of two modes in one call."""
    return AssertionError(f"Mixing fake modes NYI x.fake_mode={tensor.__dict__['fake_mode']} vs self={mode}")


def refuse_meta(device) -> None:
    """Refuse a fake on the device without data, where a setting says so."""
    if device.type == "meta":
        raise AssertionError("device.type must not be 'meta' when allow_meta is False")
