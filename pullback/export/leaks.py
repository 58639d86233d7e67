"""Fakes that outlive an export: tensors that the module put where its program does not see them.

In: an export that is over. Out: a warning that counts them and shows the lines that made them. What always holds: fakes that
the program itself keeps, on its nodes and for its inputs, are none of them.
"""

from __future__ import annotations

import gc
import warnings
from typing import Any

from ..capture.trace.graph_trace import marks_of
from ..core import tree
from ..core.tensor import Tensor


def fakes_of(mode: Any) -> list[Tensor]:
    """The fakes of a mode that are alive."""
    gc.collect()
    return [o for o in gc.get_objects() if isinstance(o, Tensor) and o.__dict__.get("fake_mode") is mode]


def warn_of_leaks(mode: Any, trace: Any, kept: list) -> None:
    """Warn where fakes live that are neither the program's nor among `kept`."""
    own = {id(v) for n in trace.graph.nodes for v in tree.tree_leaves(list(n.meta.values()))}
    own |= {id(t) for t in [*trace.stand_ins.values(), *trace.examples, *[t for t, _ in trace.own], *kept]}
    nodes = [marks_of(t).get(trace) for t in fakes_of(mode) if id(t) not in own]
    leaked = {n: n.meta.get("stack_trace", "") for n in nodes if n is not None}  # a value may have several objects
    if leaked:
        warnings.warn(
            f"Detected {len(leaked)} fake tensors that are still alive after export.\n"
            "The module has put them where the exported program does not see them: in a list, a closure, an attribute. They were made at:\n"
            + "\n".join(leaked.values()),
            stacklevel=4,
        )
