"""Places that pooling remembers, saved in the narrowest integers.

In: a joint graph. It is changed where a backward of pooling on a CUDA device reads the places of maxima, which are int64: it reads them
through a cast to integers that hold a plane's places and back, so that the narrow ones can be saved (an eighth or a quarter of the
bytes, and both casts are part of kernels that run anyway).
"""

from __future__ import annotations

import math
import operator

from ..core import dtype as dtypes
from ..core.dtype import dtype
from ..graph import Graph, GraphModule, Node
from ..ops.system.operator import find

DEVICE = "cuda"  # on which casts are part of kernels
FORMS = {f"max_pool{n}d_with_indices_backward.default": n for n in (2, 3)}
HOLD = ((dtypes.int8, 1 << 7), (dtypes.int16, 1 << 15))  # and how many places each counts


def narrow_places(module: GraphModule) -> None:
    """See the module's docstring."""
    graph, changed = module.graph, False
    targets = {find(name): n for name, n in FORMS.items()}
    for node in [n for n in graph.nodes if n.op == "call_function" and n.target in targets]:
        source, places = node.args[1], node.args[-1]
        kind = narrowest(math.prod(source.meta["val"].shape[-targets[node.target] :]))
        if kind is None or places.target is not operator.getitem or places.meta["val"].device.type != DEVICE:
            continue
        short = _cast(graph, places, places, kind)
        node.replace_input_with(places, _cast(graph, node.prev, short, dtypes.int64))
        changed = True
    if changed:
        module.recompile()


def narrowest(count: int) -> dtype | None:
    """The integers that count so many places in fewest bytes; None where wider ones are needed, which the cut
    would not choose, or the count is not known."""
    if not isinstance(count, int):
        return None
    return next((kind for kind, most in HOLD if count <= most), None)


def _cast(graph: Graph, after: Node, source: Node, kind: dtype) -> Node:
    with graph.inserting_after(after):
        result = graph.call_function(find("_to_copy.default"), (source,), {"dtype": kind})
    result.meta = {**source.meta, "val": source.meta["val"].to(kind)}
    return result
