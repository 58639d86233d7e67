"""Mixed precision: `autocast` runs matrix products and convolutions in a lower precision."""

from .autocast import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
