"""How gradients flow."""

from ..core.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from . import (  # noqa: F401
    anomaly_mode,
    forward,
    forward_ad,
    forward_writes,
    function,
    grad_mode,
    graph,
    methods,
    nodes,
    saved,
    views,
)
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .calls import backward, grad
from .function import Function, NestedIOFunction
from .grad_mode import enforce_grad_layout_policy, set_multithreading_enabled
from .gradcheck import gradcheck, gradgradcheck
from .saved import SavedTensor  # noqa: F401
from .variable import Variable
from .views import is_view_replay_enabled  # noqa: F401

__all__ = [
    "Function", "NestedIOFunction", "Variable", "backward", "detect_anomaly", "enable_grad",
    "enforce_grad_layout_policy", "grad", "grad_mode", "gradcheck", "gradgradcheck", "inference_mode", "no_grad",
    "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip


def __getattr__(name: str):
    """These are loaded when they are first named: most programs never do."""
    import importlib

    if name in ("functional", "profiler", "profiler_util"):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "kineto_available":
        return importlib.import_module(f"{__name__}.profiler").kineto_available
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
