"""Operators that write arguments besides giving results, as pure ones.

Batch norm has a functional form of its own. Any other operator (custom ones, above all) runs inside
`auto_functionalized`, which copies what the operator will write and gives the copies as further results; or, where the
configuration says so, inside `auto_functionalized_v2`, which copies the bases of what it will write.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import getitem
from typing import TYPE_CHECKING

from ..capture.front.config import native
from ..core.tensor import Tensor
from ..graph.node import Node
from ..ops.network.batch_normalization import batch_norm_functional, batch_norm_legit, batch_norm_op
from ..ops.system.dispatch import autograd_layer
from ..ops.system.operator import Operator
from ..ops.system.return_types import pack_results

if TYPE_CHECKING:
    from .functionalize import Functionalization


def run_functionally(mode: Functionalization, op: Operator, args: tuple):
    """Run a writing operator on values, and make what it wrote the values of its arguments."""
    if op in BATCH_NORMS:
        return _batch_norm(mode, op, args)
    from ..capture.higher_order.auto_functionalized import run as run_on_copies
    from ..capture.higher_order.auto_functionalized_v2 import run as run_on_bases

    return (run_on_bases if native.enable_auto_functionalized_v2 else run_on_copies)(mode, op, args)


def _batch_norm(mode: Functionalization, op: Operator, args: tuple):
    values = tuple(mode.argument(a) for a in args)
    means, variances, training = args[3], args[4], args[5]
    if not training or not isinstance(means, Tensor) or not isinstance(variances, Tensor):
        return autograd_layer(batch_norm_op, values)
    out, mean, rstd, moved_mean, moved_variance = autograd_layer(batch_norm_functional, values)
    mode.assign(means, moved_mean)
    mode.assign(variances, moved_variance)
    return pack_results(op, [out, mean, rstd])


BATCH_NORMS = frozenset((batch_norm_op, batch_norm_legit))  # those that write running statistics
MOVED, RESULTS = (
    (3, 4),
    3,
)  # the functional form's running statistics, and its results that do not depend on them in training


def sources_of(results: Iterable) -> set[Node]:
    """The nodes on whose values results depend. A batch norm's results do not depend on the statistics that it moves."""
    found: set[Node] = set()
    waiting = [v for v in results if isinstance(v, Node)]
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        found.add(node)
        norm = node.args[0] if node.target is getitem and node.args[1] < RESULTS else None
        if isinstance(norm, Node) and norm.target is batch_norm_functional and norm.args[5] is True:
            waiting += [v for k, v in enumerate(norm.args) if isinstance(v, Node) and k not in MOVED]
        else:
            waiting += node._input_nodes
    return found
