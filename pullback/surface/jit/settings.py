"""Switches and files of TorchScript.

Switches can be set and read, and change nothing. Files of compiled code are neither written nor read: that raises.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, NoReturn

from ...nn import Module
from .modules import ScriptModule, no_graph

_switches: dict[str, Any] = {"onednn_fusion": False, "fusion_strategy": [("STATIC", 2), ("DYNAMIC", 10)]}


def save(m: Any, f: Any, _extra_files: dict | None = None) -> NoReturn:
    """Archives of compiled code are not written."""
    no_graph(m)


def load(f: Any, map_location: Any = None, _extra_files: dict | None = None, _restore_shapes: bool = False) -> NoReturn:
    """Archives of compiled code are not read."""
    import os

    if isinstance(f, (str, os.PathLike)) and not os.path.exists(f):
        raise ValueError(f"The provided filename {f} does not exist")
    raise NotImplementedError(
        "torch.jit.load: TorchScript archives hold code for PyTorch's own interpreter, which is not here. Save a state_dict "
        "with torch.save and load it into the Python module."
    )


def freeze(
    mod: Module,
    preserved_attrs: list[str] | None = None,
    optimize_numerics: bool = True,
    preserve_parameters: bool = False,
) -> Module:
    """The scripted module itself, which must be in evaluation mode."""
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before "
            "freezing."
        )
    return mod


def optimize_for_inference(mod: Module, other_methods: list[str] | None = None) -> Module:
    """The scripted module itself."""
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "optimize_for_inference expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script "
            "your 'nn.Module'."
        )
    return mod.eval()


def run_frozen_optimizations(
    mod: Module, optimize_numerics: bool = True, preserved_methods: list[str] | None = None
) -> None:
    """Nothing is there to be optimized."""


def export_opnames(m: Any) -> NoReturn:
    """The operators of compiled code."""
    no_graph(m)


def last_executed_optimized_graph() -> NoReturn:
    """The graph that ran last."""
    no_graph("last_executed_optimized_graph")


@contextmanager
def optimized_execution(should_optimize: bool):
    """Inside the block nothing is different."""
    yield


@contextmanager
def fuser(name: str):
    """Choose a fuser: the names are checked, and nothing is fused."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3", "none"):
        raise Exception(f"unrecognized fuser option (name: {name})")
    yield


class strict_fusion:
    """Would raise where nodes are not fused: there are none."""

    def __enter__(self) -> None:
        """Nothing is watched."""

    def __exit__(self, *exc: Any) -> None:
        """Nothing was watched."""


def enable_onednn_fusion(enabled: bool) -> None:
    _switches["onednn_fusion"] = bool(enabled)


def onednn_fusion_enabled() -> bool:
    return _switches["onednn_fusion"]


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Set it; the old one comes back."""
    before = _switches["fusion_strategy"]
    _switches["fusion_strategy"] = list(strategy)
    return before
