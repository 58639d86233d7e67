"""Mixed precision under the names of CUDA's: the general ones, for device type "cuda"."""

from __future__ import annotations

import warnings
from functools import partial

from .. import amp as _amp
from . import amp_common as common


class autocast(_amp.autocast):
    """`amp.autocast("cuda", ...)`."""

    def __init__(self, enabled: bool = True, dtype=None, cache_enabled: bool = True):
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    def __call__(self, func):
        return _amp.autocast("cuda", self.fast_dtype, self.enabled)(func)


class GradScaler(_amp.GradScaler):
    """`amp.GradScaler("cuda", ...)`: disabled, with a warning, where there is no CUDA device."""

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ):  # fmt: skip
        warnings.warn(
            "`torch.cuda.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


custom_fwd = partial(_amp.custom_fwd, device_type="cuda")
custom_bwd = partial(_amp.custom_bwd, device_type="cuda")

__all__ = ["GradScaler", "autocast", "common", "custom_bwd", "custom_fwd"]
