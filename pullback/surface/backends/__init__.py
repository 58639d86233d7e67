"""Libraries that kernels may be taken from: which are here, and switches for those that are.

Kernels here are NumPy's, SciPy's and the project's own. Switches of libraries that are absent can be set, read and
restored, so that programs which set them run; they choose nothing.
"""

from . import cpu, cuda, cudnn, cusparselt, mha, miopen, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized
from .switches import disable_global_flags, flags_frozen, guard

SWITCHES = ("fp32_precision",)
fp32_precision = "none"
guard(__name__)

__all__ = [
    "cpu", "cuda", "cudnn", "cusparselt", "disable_global_flags", "flags_frozen", "mha", "miopen", "mkl", "mkldnn", "mps",
    "nnpack", "openmp", "opt_einsum", "quantized",
]  # fmt: skip
