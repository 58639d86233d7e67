"""CUDA's own libraries, which are not there."""

from cupy.cuda import NO_KERNELS

raise NotImplementedError(NO_KERNELS)
