"""cuDNN: absent. Its switches can be set and read."""

from __future__ import annotations

from .switches import assign, assigned, guard

SWITCHES = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32", "fp32_precision")
enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"


def is_available() -> bool:
    return False


def version() -> int | None:
    return None


def is_acceptable(tensor) -> bool:
    """Whether cuDNN could work on a tensor: never."""
    return False


def set_flags(
    _enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None, _fp32_precision=None,
    _depthwise_kernel=None,
) -> tuple:  # fmt: skip
    """Set switches; the old values come back."""
    return assign(
        globals(), _named(_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32, _fp32_precision)
    )


def flags(
    enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True, fp32_precision="none",
    depthwise_kernel="auto",
):  # fmt: skip
    """Context manager: switches inside a block."""
    return assigned(globals(), _named(enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision))


def _named(*values) -> dict:
    return dict(zip(SWITCHES, values, strict=True))


guard(__name__)
