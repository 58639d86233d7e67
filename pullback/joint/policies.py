"""What selective checkpointing said of the nodes of a joint graph.

A node's `meta["recompute"]` is a `CheckpointPolicy`; `meta["ac_graph_id"]` numbers the checkpointed region it was
recorded in.
"""

from __future__ import annotations

import operator

from ..core.checkpointing import CheckpointPolicy
from ..graph import Node

SAVE = (CheckpointPolicy.MUST_SAVE,)
RECOMPUTE = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)


def origin(node: Node) -> Node:
    """The call that policies speak of: for one of several results, the call that gave them all."""
    while node._target is operator.getitem and isinstance(node._args[0], Node):
        node = node._args[0]
    return node


def policy(node: Node) -> CheckpointPolicy | None:
    """A node's policy, if it has one."""
    return origin(node).meta.get("recompute")


def must_save(node: Node) -> bool:
    """Whether the value is to be saved, if backward needs it; also where another checkpointed region begins from it."""
    found = policy(node)
    return found in SAVE or found in RECOMPUTE and between_regions(origin(node))


def must_recompute(node: Node) -> bool:
    """Whether the value is to be computed again, if backward needs it."""
    return policy(node) in RECOMPUTE and not between_regions(origin(node))


def between_regions(node: Node) -> bool:
    """Whether a later checkpointed region uses a call: regions are computed again one at a time, from what enters."""
    region = node.meta.get("ac_graph_id")
    if region is None:
        return False
    waiting = list(node.users)
    while waiting:
        user = waiting.pop()
        if origin(user) is node:
            waiting.extend(user.users)
        elif policy(user) in RECOMPUTE and origin(user).meta.get("ac_graph_id", region) > region:
            return True
    return False
