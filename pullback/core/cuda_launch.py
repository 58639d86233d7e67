"""Kernels of CUDA devices that are called with one structure: compiled at first need, launched straight by the driver.

In: a source in CUDA C, and the bytes of the structure. CuPy compiles and keeps the code; its own launch takes several microseconds,
which a call of one operator would notice.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from .cupy_library import device_count


@cache
def _kernel(source: str, name: str, device: int) -> int:
    """The address of a kernel on the device in use."""
    import cupy

    return cupy.RawModule(code=source, options=("--std=c++17",)).get_function(name).kernel.ptr


@cache
def _driver() -> Callable[..., int]:
    function = ctypes.CDLL("libcuda.so.1").cuLaunchKernel
    pointer, count = ctypes.c_void_p, ctypes.c_uint
    function.argtypes = [pointer, *[count] * 7, pointer, pointer, pointer]
    return function


def address(array: Any) -> int:
    return array.data.ptr


def clear(array: Any, count: int) -> None:
    """Set the first bytes of an array to zero, on the stream in use."""
    array.data.memset_async(0, count)


def stream_in_use() -> Callable[[], int]:
    """What gives the address of the stream in use."""
    import cupy

    try:
        from cupy_backends.cuda.stream import get_current_stream_ptr
    except ImportError:
        return lambda: cupy.cuda.get_current_stream().ptr
    return get_current_stream_ptr


@cache
def _in_use() -> tuple[Callable[[], int], Callable[[], int]]:
    """What gives the device in use, and its stream."""
    import cupy

    return (lambda: 0) if device_count() == 1 else cupy.cuda.get_device_id, stream_in_use()


def launch(source: str, block: int, *runs: tuple[str, int, bytes]) -> None:
    """Run kernels of a source, each (name, blocks, its structure), one after the other on the device and the stream in use."""
    device, stream = (ask() for ask in _in_use())
    for name, grid, argument in runs:
        function, given = _kernel(source, name, device), (ctypes.c_char_p * 1)(argument)
        wrong = _driver()(function, grid, 1, 1, block, 1, 1, 0, stream, given, None)
        if wrong:
            raise RuntimeError(f"CUDA error: the launch of a kernel gave {wrong}")
