"""What mixed precision under CUDA's names asks first (`torch.cuda.amp.common`)."""

from __future__ import annotations

from ..core.cupy_library import device_count


def amp_definitely_not_available() -> bool:
    """Whether there is no device for it."""
    return not device_count()
