"""`torch.distributed.tensor.experimental`: functions of parts as functions of distributed tensors (`local_map`), and
`implicit_replication`, inside which plain tensors count as replicated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

from ....core.tree import tree_flatten, tree_leaves, tree_unflatten
from .. import rules
from ..dtensor import DTensor

__all__ = ["implicit_replication", "local_map", "register_sharding"]

SHARDINGS: dict[Any, Callable] = {}  # what programs say of their operators


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Inside the block a plain tensor that meets a distributed one is taken to be the same on every rank."""
    before, rules.plain_is_replicated = rules.plain_is_replicated, True
    try:
        yield
    finally:
        rules.plain_is_replicated = before


def local_map(
    func: Callable | None = None, out_placements: Any = None, in_placements: Any = None, in_grad_placements: Any = None,
    device_mesh: Any = None, *, redistribute_inputs: bool = False,
) -> Callable:  # fmt: skip
    """A function that runs on each rank's parts, as one of distributed tensors.

    `in_placements` says for each flat argument how it must lie (None: it is no distributed tensor), `out_placements` how the
    results lie: one placement for each dimension of the mesh, or a tuple of such lists for several results.
    """
    if func is None:
        return partial(
            local_map, out_placements=out_placements, in_placements=in_placements, in_grad_placements=in_grad_placements,
            device_mesh=device_mesh, redistribute_inputs=redistribute_inputs,
        )  # fmt: skip

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        flat, form = tree_flatten(args)
        mesh = device_mesh
        for i, value in enumerate(flat):
            if not isinstance(value, DTensor):
                if in_placements is not None and in_placements[i] is not None:
                    raise AssertionError(
                        f"Non-DTensor input {value!r} expects None placements but received {in_placements[i]}!"
                    )
                continue
            mesh = value.device_mesh if mesh is None else mesh
            flat[i] = _part(value, i, in_placements, in_grad_placements, redistribute_inputs)
        result = func(*tree_unflatten(flat, form), **kwargs)
        return result if mesh is None else _distributed(result, mesh, out_placements)

    return call


def _part(value: DTensor, i: int, places: Any, grad_places: Any, redistribute: bool) -> Any:
    """This rank's part of an argument, which lies as it must."""
    wanted = None if places is None else places[i]
    if places is not None and wanted is None:
        raise AssertionError(f"DTensor input {i} expects placements but received None!")
    if wanted is not None and tuple(wanted) != tuple(value.placements):
        if not redistribute:
            raise ValueError(
                f"arg {i} has a mismatch between its placements {value.placements} and the required {tuple(wanted)}, and "
                "redistribute_inputs is False: pass redistribute_inputs=True to local_map"
            )
        value = value.redistribute(placements=tuple(wanted))
    return value.to_local(grad_placements=None if grad_places is None else grad_places[i])


def _distributed(result: Any, mesh: Any, places: Any) -> Any:
    """The results of all ranks as distributed tensors."""
    flat, form = tree_flatten(result)
    each = places if isinstance(places, tuple) and len(tree_leaves(result)) == len(places) else (places,) * len(flat)
    wrapped = [
        value if where is None else DTensor.from_local(value, mesh, list(where), run_check=False)
        for value, where in zip(flat, each, strict=True)
    ]
    return tree_unflatten(wrapped, form)


def register_sharding(op: Any) -> Callable[[Callable], Callable]:
    """A decorator: a function says how arguments of an operator may be cut. It is kept and not asked: the arguments of an
    operator without a rule here are gathered, and every rank computes the whole."""

    def decorate(function: Callable) -> Callable:
        for each in op if isinstance(op, (list, tuple)) else (op,):
            SHARDINGS[each] = function
        return function

    return decorate
