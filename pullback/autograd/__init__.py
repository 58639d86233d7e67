"""How gradients flow."""

from . import forward, methods, views  # noqa: F401
from .calls import backward, grad
from ..core.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from .variable import Variable

__all__ = ["Variable", "backward", "enable_grad", "grad", "inference_mode", "no_grad", "set_grad_enabled"]
