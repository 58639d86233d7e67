"""Tools for looking at and acting on the backward graph: edges, hooks over several tensors, saved tensors."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Sequence

from ..core import modes
from ..core import node as nodes
from ..core.modes import ambient
from ..core.node import GradientEdge, accumulator_of, edge_of
from ..core.tensor import Tensor
from .engine import current_graph_task_id, will_execute
from .function import BackwardCFunction
from .methods import RemovableHandle
from .saved import allow_mutation_on_saved_tensors, disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from .versions import increment_version


class Node(metaclass=ABCMeta):  # noqa: B024 - nothing is made of it: other classes count as its own
    """What every vertex of the graph is; the classes of nodes are not derived from this one but count as its own."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> bool:
        return True if cls is Node and issubclass(subclass, nodes.Node) else NotImplemented

    def name(self) -> str:
        """The name of the kind of node."""
        raise NotImplementedError

    @property
    def next_functions(self) -> tuple:
        """The edges to the nodes of the inputs."""
        raise NotImplementedError

    def metadata(self) -> dict:
        """What users have attached."""
        raise NotImplementedError

    def register_hook(self, fn: Callable) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after the node has run."""
        raise NotImplementedError

    def register_prehook(self, fn: Callable) -> RemovableHandle:
        """Call `fn(grad_outputs)` before the node runs."""
        raise NotImplementedError


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of a tensor arrives; it can stand for the tensor in `grad` and `backward`."""
    edge = edge_of(tensor)
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    token = None
    if isinstance(edge[0], BackwardCFunction):
        with modes.masked(0, modes.GRAD):
            token = tensor.view_as(tensor).grad_fn
    return GradientEdge(*edge, token)


def _node_of(t: Tensor | GradientEdge) -> nodes.Node:
    if isinstance(t, GradientEdge):
        return t.node
    return accumulator_of(t) if t.requires_grad and t.grad_fn is None else t.grad_fn


class _MultiHandle(RemovableHandle):
    """Removes several hooks at once."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple[RemovableHandle, ...]:
        return self.handles

    def __setstate__(self, state: tuple[RemovableHandle, ...]) -> None:
        self.handles = state


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all") -> RemovableHandle:
    """Call `fn` once in each backward: with all gradients once the last has come ("all"), or with the first ("any")."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of {('all', 'any')} but got {mode}")
    if mode == "any":
        hook = _first_only(fn)
        return _MultiHandle(tuple(t.register_hook(hook) for t in tensors if t.requires_grad))
    arrived = _Arrivals(fn, [_node_of(t) for t in tensors])
    return _MultiHandle(tuple(t.register_hook(arrived.hook(i)) for i, t in enumerate(tensors)))


def _task() -> int:
    task = current_graph_task_id()
    if task == -1:
        raise AssertionError("expected this hook to be called inside a backward call")
    return task


def _first_only(fn: Callable) -> Callable:
    done: set[int] = set()

    def hook(grad: Tensor) -> None:
        task = _task()
        if task not in done:
            done.add(task)
            fn(grad)

    return hook


class _Arrivals:
    """Gradients of several tensors, collected separately for each backward."""

    def __init__(self, fn: Callable, watched: list[nodes.Node]) -> None:
        self.fn, self.watched = fn, watched
        self.tasks: dict[int, list] = {}  # task -> [gradients still to come, gradients]

    def hook(self, i: int) -> Callable:
        def arrived(grad: Tensor) -> None:
            task = _task()
            if task not in self.tasks:
                self.tasks[task] = [sum(map(will_execute, self.watched)), [None] * len(self.watched)]
            state = self.tasks[task]
            state[0] -= 1
            state[1][i] = grad
            if state[0] == 0:
                del self.tasks[task]
                self.fn(state[1])

        return arrived


def region_activation_memory_budget(budget: float):
    """How much of its activations a compiled region may keep."""
    name = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{name}: expects a float, got {type(budget).__name__}")
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    raise RuntimeError(f"{name} can only be used inside a torch.compile region; it has no effect in eager mode.")


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Whether to warn of gradients from another stream: on the CPU there is only one."""
    ambient.warn_on_stream_mismatch = bool(enabled)


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Whether to run on the current stream where a captured one is gone: on the CPU there is only one."""
    ambient.override_stale_stream = bool(enabled)


__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "region_activation_memory_budget", "register_multi_grad_hook", "save_on_cpu",
    "saved_tensors_hooks", "set_override_stale_capture_stream", "set_warn_on_accumulate_grad_stream_mismatch",
]  # fmt: skip
