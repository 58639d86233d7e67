"""Mixed precision: `autocast` runs matrix products and convolutions in a lower precision."""

from .autocast import autocast, custom_bwd, custom_fwd, is_autocast_available

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def __getattr__(name: str):
    """The scaler is loaded when it is first named."""
    if name == "GradScaler":
        from .grad_scaler import GradScaler

        return GradScaler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
