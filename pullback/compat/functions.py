"""Functions on tensors and modules behind undocumented names of PyTorch that packages call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from ..core.modes import CAPTURE, ambient
from ..core.tensor import Tensor
from ..ops.make.assertions import assert_async_msg
from ..ops.system.operator import public


def _t(name: str) -> Any:
    return public("torch", name)


def shape_as_tensor(input: Tensor) -> Tensor:
    """The shape as a tensor of integers."""
    return _t("tensor")(list(input.shape), dtype=_t("arange")(0).dtype)


def assert_async(condition: Tensor, message: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise where a tensor of one element is zero; on the CPU there is nothing to wait for."""
    if ambient.mode & CAPTURE:
        assert_async_msg(condition, message)
    elif not bool(condition):
        raise RuntimeError(message)


def check_tensor_all_with(kind: type[Exception], condition: Tensor, message: Callable[[], str] | None = None) -> None:
    """Raise an error of some kind unless every element is True."""
    if not isinstance(condition, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(condition)}")
    if condition.dtype.name != "bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {condition.dtype}")
    words = message or (lambda: "Expected cond to be True for every element")
    if ambient.mode & CAPTURE and kind is RuntimeError:
        assert_async_msg(condition.all(), words())  # the graph asks when it runs
    elif not bool(condition.all()):
        raise kind(words())


check_tensor_all = partial(check_tensor_all_with, RuntimeError)


def rows_to_compressed(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where each of `size` rows begins in sorted row indices, and where the last ends."""
    rows = _t("arange")(size + 1, device=input.device, dtype=input.dtype)
    return _t("searchsorted")(input.contiguous(), rows, out_int32=out_int32)


def compressed_to_rows(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """(2, elements): the row and the column of each element of compressed rows; the other way round if `transpose`."""
    counts = crow_indices.diff()
    rows = _t("repeat_interleave")(_t("arange")(len(counts), device=counts.device), counts)
    pair = [col_indices, rows] if transpose else [rows, col_indices]
    stacked = _t("stack")([p.long() for p in pair])
    return stacked.int() if out_int32 else stacked


def _cast(method: str, input: Tensor, non_blocking: bool = False) -> Tensor:
    return getattr(input, method)()


cast_Byte, cast_Char = partial(_cast, "byte"), partial(_cast, "char")
cast_Double, cast_Float, cast_Half = partial(_cast, "double"), partial(_cast, "float"), partial(_cast, "half")
cast_Int, cast_Long, cast_Short = partial(_cast, "int"), partial(_cast, "long"), partial(_cast, "short")


def always_record(_: int) -> Any:
    """The schedule of a profiler that was given none: every step is recorded."""
    from ..profiler import ProfilerAction

    return ProfilerAction.RECORD


def no_cuda_profile() -> NoReturn:
    raise RuntimeError("torch.cuda.profiler.profile: the profiler of CUDA is not bound here; torch.profiler.profile is")


def sync_module_states(
    module: Any,
    process_group: Any,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Any = (),
    **_: Any,
) -> None:
    """Give all ranks the parameters and buffers that rank `src` has."""
    from ..core.modes import no_grad
    from ..distributed import broadcast

    ignored = set(params_and_buffers_to_ignore)
    with no_grad():
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            if name not in ignored:
                broadcast(tensor.detach(), src, group=process_group)


def compatibility(is_backward_compatible: bool) -> Callable:
    """A decorator that promises something of a function's later versions, and changes nothing in this one."""
    return lambda function: function
