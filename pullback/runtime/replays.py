"""Which runs of a program are worth a CUDA graph, and the graphs that were made.

A run is named by all that its launches depend on: addresses of inputs, outputs and arena, the stream, the precision. A name that
comes a second time will come again (a training loop allocates in the same order every time): it gets a graph, and from then on one
launch. A graph is the same launches on the same addresses, so it may always stand in for them. Few are kept, the latest used.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

KEPT = 8  # graphs of one program
REMEMBERED = 64  # names that have come once
WORTH = 6  # launches and products from which on a graph is made


class Replays:
    """See the module's docstring. `reason` says why no graphs are made any more, once one could not be."""

    def __init__(self, kept: int = KEPT) -> None:
        self.kept = kept
        self.graphs: OrderedDict[Hashable, Any] = OrderedDict()
        self.once: OrderedDict[Hashable, None] = OrderedDict()
        self.reason: str | None = None

    def find(self, name: Hashable, make: Callable[[], Any]) -> Any:
        """The graph of a run, made where the run has come before; else None."""
        graph = self.graphs.get(name)
        if graph is not None:
            self.graphs.move_to_end(name)
            return graph
        if self.reason is not None:
            return None
        if name not in self.once:
            self.once[name] = None
            if len(self.once) > REMEMBERED:
                self.once.popitem(last=False)
            return None
        del self.once[name]
        try:
            graph = make()
        except RuntimeError as error:  # also what the driver says
            self.reason = str(error)
            return None
        self.graphs[name] = graph
        if len(self.graphs) > self.kept:
            self.graphs.popitem(last=False)
        return graph
