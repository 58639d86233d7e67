"""oneDNN (MKL-DNN): its tensor layout is there (`ops.opaque`), its kernels are not. Its switches can be set and read."""

from __future__ import annotations

from .switches import Precision, assign, assigned, everywhere, guard

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2
SWITCHES = ("enabled", "deterministic", "allow_tf32", "fp32_precision")
enabled = False
deterministic = False
allow_tf32 = False
fp32_precision = "none"
matmul, conv, rnn = (Precision("none", lambda: fp32_precision, everywhere) for _ in range(3))


def is_available() -> bool:
    """Whether tensors of its layout can be made: `Tensor.to_mkldnn()`."""
    return True


def is_acl_available() -> bool:
    return False


class verbose:
    """Would print what oneDNN does inside a block: it does nothing."""

    def __init__(self, level: int):
        self.level = level

    def __enter__(self):
        if self.level != VERBOSE_OFF:
            raise RuntimeError("Failed to set MKLDNN into verbose mode: the kernels of oneDNN are not available.")
        return self

    def __exit__(self, *exc) -> None:
        """Nothing was changed."""


def set_flags(_enabled=None, _deterministic=None, _allow_tf32=None, _fp32_precision=None) -> tuple:
    """Set switches; the old values come back."""
    return assign(globals(), _named(_enabled, _deterministic, _allow_tf32, _fp32_precision))


def flags(enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none"):
    """Context manager: switches inside a block."""
    return assigned(globals(), _named(enabled, deterministic, allow_tf32, fp32_precision))


def _named(*values) -> dict:
    return dict(zip(SWITCHES, values, strict=True))


guard(__name__)
