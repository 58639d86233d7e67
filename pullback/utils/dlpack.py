"""Exchange of tensors by DLPack: `from_dlpack` and `to_dlpack` (declared with the other constructors), device kinds."""

from __future__ import annotations

import enum

from ..ops import exports

from_dlpack = exports["utils.dlpack"]["from_dlpack"]
to_dlpack = exports["utils.dlpack"]["to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """Device kinds of the DLPack standard."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
