"""One joint graph into a forward and a backward: `torch._functorch.partitioners`.

In: a joint graph (see `halves`) and how many of its results belong to the forward. Out: two modules. Forward returns its
results and then the saved values; backward takes the saved values and the tangents and returns the gradients.
"""

from __future__ import annotations

from typing import Any

from ..graph import GraphModule
from .config import config
from .halves import Halves, ancestors, divide
from .mincut import choose_saved
from .narrow import narrow_places
from .policies import must_recompute
from .rows import unfold_rows


def default_partition(
    joint_module: GraphModule,
    _joint_inputs: Any,
    *,
    num_fwd_outputs: int,
    static_lifetime_input_indices: list[int] | None = None,
    static_lifetime_input_nodes: Any = None,
) -> tuple[GraphModule, GraphModule]:
    """Forward computes what its results need; whatever of it backward uses is saved.

    Nothing is computed twice, except nodes that selective checkpointing says to compute again.
    """
    halves = Halves(joint_module, num_fwd_outputs)
    return divide(halves, lambda node: not must_recompute(node))


def min_cut_rematerialization_partition(
    joint_module: GraphModule,
    _joint_inputs: Any,
    compiler: str = "inductor",
    *,
    num_fwd_outputs: int,
    static_lifetime_input_indices: list[int] | None = None,
) -> tuple[GraphModule, GraphModule]:
    """As `default_partition`, but backward computes cheap values again where that saves fewer bytes (see `mincut`).

    Inputs that live on anyway, such as parameters, are told by their places in `static_lifetime_input_indices`.
    """
    if config.activation_memory_budget != 1:
        raise NotImplementedError(f"activation_memory_budget must be 1, got {config.activation_memory_budget}")
    narrow_places(joint_module)
    unfold_rows(joint_module)
    halves = Halves(joint_module, num_fwd_outputs)
    static = static_lifetime_input_indices or () if config.treat_parameters_as_free_to_save else ()
    saved = choose_saved(halves, {halves.primals[i] for i in static})
    halves.forward |= ancestors(saved)
    return divide(halves, saved.__contains__)
