"""CUDA's libraries: absent. Switches can be set and read; plans and workspaces raise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...core.cupy_library import device_count, use_matmul_precision
from ...core.modes import process
from .switches import check_precision


def is_built() -> bool:
    """Whether there are CUDA kernels: CuPy compiles them where there is a device."""
    return device_count() > 0


def is_flash_attention_available() -> bool:
    return False


def is_ck_sdpa_available() -> bool:
    return False


class _Matmul:
    """How products of matrices are rounded on CUDA. `allow_tf32` follows `get_float32_matmul_precision()`."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        return process.matmul_precision != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        use_matmul_precision("high" if value else "highest")

    @property
    def fp32_precision(self) -> str:
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        self.allow_tf32 = check_precision(value) == "tf32"


matmul = _Matmul()
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True, "fp16_bf16_reduction_math": False}


def enable_flash_sdp(enabled: bool) -> None:
    _attention["flash"] = bool(enabled)


def flash_sdp_enabled() -> bool:
    return _attention["flash"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    _attention["mem_efficient"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    return _attention["mem_efficient"]


def enable_math_sdp(enabled: bool) -> None:
    _attention["math"] = bool(enabled)


def math_sdp_enabled() -> bool:
    return _attention["math"]


def enable_cudnn_sdp(enabled: bool) -> None:
    _attention["cudnn"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    return _attention["cudnn"]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    _attention["fp16_bf16_reduction_math"] = bool(enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    return _attention["fp16_bf16_reduction_math"]


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """Which kernels of attention may be used inside a block."""
    before = dict(_attention)
    _attention.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _attention.update(before)


class _PlanCache:
    """Plans of cuFFT, of which there are none."""

    def __getattr__(self, name: str):
        raise AssertionError("Torch not compiled with CUDA enabled")

    def __getitem__(self, device):
        raise RuntimeError(f"cufft_plan_cache: expected 0 <= device index < 0, but got device with index {device}")


cufft_plan_cache = _PlanCache()


def preferred_linalg_library(backend=None):
    """Which library would solve linear systems on CUDA."""
    raise AssertionError("Torch not compiled with CUDA enabled")


preferred_blas_library = preferred_linalg_library
