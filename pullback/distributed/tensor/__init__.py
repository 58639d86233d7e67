"""`torch.distributed.tensor`: tensors spread over a mesh of ranks."""

from ..device_mesh import DeviceMesh, init_device_mesh
from .dtensor import DTensor, distribute_tensor
from .factories import distribute_module, empty, full, ones, rand, randn, zeros
from .placements import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty",
    "full", "init_device_mesh", "ones", "rand", "randn", "zeros",
]  # fmt: skip
