"""Memory shared with other array libraries by DLPack: tensors on theirs, capsules on ours."""

from __future__ import annotations

import numpy as np

from ...core import device as devices
from ...core.arrays import library
from ...core.dtype import numpy_to_dtype
from ...core.geometry import Geometry
from ...core.layers import extend
from ...core.tensor import FAKE, LAYOUTS, NO_DATA_POINTER, Tensor, wrap
from ..system.calls import front
from .construct import from_numpy


@front("torch.from_dlpack", "utils.dlpack.from_dlpack")
def from_dlpack(ext_tensor, *, device=None, copy=None) -> Tensor:
    """A tensor on the memory of an object with `__dlpack__` (or of a capsule), or with `copy=True` on memory of its own."""
    if hasattr(ext_tensor, "__dlpack__") and int(ext_tensor.__dlpack_device__()[0]) == 2:
        where = devices.device("cuda", int(ext_tensor.__dlpack_device__()[1]))
        array = library(where).from_dlpack(ext_tensor)
        result = wrap(array.copy() if copy else array, numpy_to_dtype(array.dtype), where)
    else:
        array = _array_of_capsule(_capsule_of(ext_tensor))
        result = from_numpy(array.copy() if copy else array)
    wanted = result.device if device is None else devices.indexed(device)
    if wanted is result.device:
        return result
    if wanted.type == "meta":
        raise BufferError("Cannot pack tensors on meta")
    if copy is False:
        raise ValueError(
            f"cannot move DLPack tensor from device {result.device} to {wanted} without copying: copy=False"
        )
    return result.to(wanted)


def _capsule_of(ext_tensor):
    """The capsule of an object, by the newest protocol that it knows; a capsule itself."""
    if not hasattr(ext_tensor, "__dlpack__"):
        return ext_tensor
    try:
        return ext_tensor.__dlpack__(max_version=(1, 0))
    except TypeError:  # written before versions were
        return ext_tensor.__dlpack__()


def _array_of_capsule(capsule) -> np.ndarray:
    class Exporter:
        def __dlpack__(self, **kwargs):
            return capsule

        def __dlpack_device__(self):
            return (1, 0)

    versioned = "dltensor_versioned" in repr(capsule)
    array = np.from_dlpack(Exporter())
    # A capsule of the old protocol cannot say whether its memory may be written: NumPy takes it that it may not, PyTorch that it may.
    return array if versioned or array.flags.writeable or not array.size else _writable(array)


def _writable(array: np.ndarray) -> np.ndarray:
    """The same memory, to be written to."""
    import ctypes

    first, last = np.lib.array_utils.byte_bounds(array)
    memory = (ctypes.c_byte * (last - first)).from_address(first)
    memory.owner = array
    start = array.__array_interface__["data"][0] - first
    return np.ndarray(array.shape, array.dtype, memory, start, array.strides)


@front("torch.to_dlpack", "utils.dlpack.to_dlpack")
def to_dlpack(tensor):
    """A DLPack capsule on the memory of a tensor."""
    return tensor.__dlpack__()


def _dlpack(self: Tensor, *, stream=None, max_version=None, dl_device=None, copy=None):
    if self._keys & LAYOUTS:
        raise BufferError("Can't export tensors with layout other than torch.strided")
    if stream is not None and not self.is_cuda:
        raise AssertionError(f"stream should be None on cpu. Got {stream}")
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    if isinstance(self._array, Geometry):
        raise BufferError("Cannot pack tensors on meta" if not self._keys & FAKE else NO_DATA_POINTER)
    if dl_device is not None and tuple(dl_device) != _dlpack_device(self):
        raise BufferError(
            f"Unsupported device_type: {int(dl_device[0])}. A tensor on {self.device} cannot be exported to the DLPack device "
            f"{tuple(dl_device)}: move it first"
        )
    array = self._array.copy() if copy else self._array
    if max_version is None or tuple(max_version) < (1, 0):
        return array.__dlpack__()
    return array.__dlpack__(max_version=tuple(max_version))


def _dlpack_device(self) -> tuple[int, int]:
    return (2, self.device.index) if self.is_cuda else (1, 0)


extend(Tensor, __name__, __dlpack__=_dlpack, __dlpack_device__=_dlpack_device)
