"""Anomaly mode: when backward fails or makes a NaN, say which forward call is to blame.

While it is on, each node remembers the Python stack of the call that made it, and which node's backward was running
then (its parent). A node that raises, or whose gradients hold a NaN, is reported as a warning with that stack, and its
parents' stacks after it.
"""

from __future__ import annotations

import sys
import warnings

from ..core import modes
from ..core.layers import above
from ..core.machinery import is_full, is_machinery
from ..core.modes import ambient
from ..core.node import Node
from ..core.tensor import Tensor
from . import engine


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Turn anomaly mode on or off, and whether NaN counts as one.

    >>> torch.set_anomaly_enabled(False)
    """
    ambient.switch(modes.ANOMALY, mode)
    ambient.anomaly_check_nan = bool(check_nan)


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on: errors in a backward say where the forward was.

    >>> torch.is_anomaly_enabled()
    False
    """
    return bool(ambient.mode & modes.ANOMALY)


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for NaN in gradients.

    >>> torch.is_anomaly_check_nan_enabled()
    True
    """
    return ambient.anomaly_check_nan


class set_detect_anomaly:
    """Set anomaly mode at once; as a context manager, until the block ends."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev, self.prev_check_nan = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        """It is on since it was made."""

    def __exit__(self, *exc: object) -> None:
        set_anomaly_enabled(self.prev, self.prev_check_nan)


class detect_anomaly:
    """Anomaly mode in a block."""

    def __init__(self, check_nan: bool = True) -> None:
        self.prev, self.prev_check_nan = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *exc: object) -> None:
        set_anomaly_enabled(self.prev, self.prev_check_nan)


# ---- in the forward
def note_creation(node: Node) -> None:
    """Remember where a node was made, and during whose backward."""
    if node.creation_stack is None:
        import traceback  # in this mode alone: every program would wait for it

        stack = traceback.extract_stack()[:-1]
        users = [f for f in stack if not is_machinery(f.filename)]
        node.creation_stack = traceback.format_list(stack if is_full() else users or stack)
        node.creation_parent = engine.current_node()


above.note_creation = note_creation


# ---- in the backward
def run_checked(node: Node, gs: list):
    """Run a node; report it if it raises or makes a NaN."""
    try:
        results = engine.run_node(node, gs)
    except Exception:
        report(node)
        raise
    if ambient.anomaly_check_nan:
        for i, g in enumerate(results):
            if isinstance(g, Tensor) and _has_nan(g):
                report(node)
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
    return results


above.run_checked = run_checked


def _has_nan(g: Tensor) -> bool:
    with modes.masked(modes.ANOMALY | modes.GRAD):
        g = g.values() if g.is_sparse else g
        return bool(g.isnan().any()) if not g.is_meta and g.dtype.category >= 2 else False


def report(node: Node) -> None:
    """Warn with the stack of the call that made a node, and those of its parents."""
    lead = f"Error detected in {node.name()}. "
    kind = "Traceback of forward call that caused the error:"
    current: Node | None = node
    while current is not None:
        stack = current.creation_stack
        if stack is None:
            _warn(
                f"{lead}No forward pass information available. Enable detect anomaly during forward pass for more "
                "information."
            )
        else:
            _warn(f"{lead}{kind}\n{''.join(stack)}")
        current = current.__dict__.get("creation_parent")
        if current is not None:
            lead = f"\n\nPrevious calculation was induced by {current.name()}. "
            kind = "Traceback of forward call that induced the previous calculation:"


def _warn(message: str) -> None:
    """A warning, on stderr where warnings are errors: the error to come says more."""
    try:
        warnings.warn(message, stacklevel=5)
    except Warning:
        print(message, file=sys.stderr)


__all__ = ["detect_anomaly", "set_detect_anomaly"]
