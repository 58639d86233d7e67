"""What the graph of a backward calls: the engine's own steps, as functions of values; and the task they run in.

In: gradients, hooks and other values of this run, and the place in the schedule of the node that a step belongs to. Out:
gradients. Where a step calls the user's Python, the backward's task (`Running`) says what the engine's would there:
which node runs, which nodes have run and are freed, which hooks are still registered.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection

from ..autograd import accumulation, engine, hook_calls
from ..autograd.methods import RemovableHandle
from ..capture.bytecode.native import Callback
from ..core import modes
from ..core.modes import ambient
from ..core.node import AccumulateGrad, Node
from ..core.tensor import Tensor


class Running(engine.Task):
    """A compiled backward while it runs: what the engine's questions ask of a task, and where in the schedule it is."""

    __slots__ = ("needed", "place", "nodes", "released", "calls", "snapshot")

    def __init__(self, roots: list, needed: dict | None, wanted: Collection, keep_graph: bool, place: dict[Node, int]):
        super().__init__(roots, wanted, keep_graph)
        self.needed, self.place, self.nodes = needed, place, list(place)
        self.released = 0  # nodes before this place are freed
        self.calls: list[tuple[int, int]] = [
            (RemovableHandle.next_id, -1)
        ]  # (next hook's number, place) of calls so far
        self.snapshot: tuple = (None, ())

    def at(self, place: int) -> Node:
        """The user's Python is about to be called for the node at this place: those before it have run."""
        self.node = node = self.nodes[place]
        if not ambient.mode & modes.CAPTURE:  # a trace runs nothing
            self.calls.append((RemovableHandle.next_id, place))
            if not self.keep_graph:
                self.release(place)
        return node

    def release(self, end: int) -> None:
        """Free what the nodes before a place have saved."""
        needed = self.needed
        for i in range(self.released, end):
            node = self.nodes[i]
            if needed is None or needed.get(node):
                node.release()
        self.released = max(self.released, end)

    def registered(self, hook: Callable, hooks: dict | None, which: tuple) -> bool:
        """Whether a hook was still there when the node's hooks of this kind began to run."""
        if self.snapshot[0] != which:
            self.snapshot = which, tuple((hooks or {}).values())
        return any(h is users(hook) for h in self.snapshot[1])

    def finish(self) -> None:
        """The backward is done: free what is left, and refuse hooks that came too late to be in the graph."""
        self.node = None
        if not self.keep_graph:
            self.release(len(self.nodes))
        if RemovableHandle.next_id != self.calls[0][0]:
            self._refuse_late_hooks()

    def _refuse_late_hooks(self) -> None:
        first = self.calls[0][0]
        for place, node in enumerate(self.nodes):
            if not node.hooked or self.needed is not None and not self.needed.get(node):
                continue
            before = (node.pre_hooks, *(node.tensor_pre_hooks or {}).values())
            late = [key for hooks in before for key in hooks or () if key >= first and self._registered_at(key) < place]
            late += [key for key in node.post_hooks or () if key >= first and self._registered_at(key) < place]
            if late:
                raise RuntimeError(
                    f"a hook was registered on {node.name()} while a compiled backward was on its way there; its graph was made "
                    "before, so the hook did not run. Register hooks before backward(), or run this backward with "
                    "compiled_autograd disabled"
                )

    def _registered_at(self, key: int) -> int:
        """The place at which the user's Python registered a hook."""
        return self.calls[bisect_right(self.calls, (key, len(self.nodes))) - 1][1]


def users(hook: Callable) -> Callable:
    """A hook as its user registered it: in a capture it is one that comes back to the machine."""
    return hook.function if isinstance(hook, Callback) else hook


def at(place: int) -> tuple[Running, Node] | None:
    """(the task, the node at a place of it); None where the graph is called by itself."""
    task = ambient.tasks[-1] if ambient.tasks else None
    return (task, task.at(place)) if isinstance(task, Running) else None


def at_node(node: Node) -> None:
    """The user's code is about to be called for a node, whichever backward it is in."""
    task = ambient.tasks[-1] if ambient.tasks else None
    if isinstance(task, Running) and node in task.place:
        task.at(task.place[node])


class NodeName:
    """Stands for a node in messages."""

    def __init__(self, text: str):
        self.text = text

    def name(self) -> str:
        return self.text


# ---- gradients
def total(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """The sum of two gradients, either of which may be absent."""
    if a is None or b is None:
        return b if a is None else a
    return accumulation.total(a, b)


def checked(results: tuple, index: int, expected: tuple, name: str) -> Tensor | None:
    """A gradient that a node (`name`) gave, as the node it goes to expects it."""
    g = results[index]
    if g is None:
        return None
    shape, dtype, _ = expected
    if isinstance(g, Tensor) and g.dtype is dtype and tuple(g._array.shape) == tuple(shape):
        return g
    return accumulation.validate(NodeName(name), index, tuple(expected), g)


def box(g: Tensor | None) -> list:
    """A gradient on its way to a leaf, in a list of which the leaf takes it: then only the list holds it, however many
    frames hold the list."""
    return [g]


def accumulate_grad(variable: Tensor, boxed: list, watchers: int, place: int) -> tuple:
    """Add a gradient to `.grad` of a leaf; gives the gradient where hooks (`watchers`) are to see it."""
    here = at(place)
    if not boxed:
        raise RuntimeError("accumulate_grad: the gradient was taken before: a graph of a backward runs once")
    if watchers:
        seen = (boxed[0],)
        accumulation.accumulate(variable, boxed, 1)
        return seen
    accumulation.accumulate(variable, boxed, 0)
    if here is not None and isinstance(here[1], AccumulateGrad) and here[1].post_hooks:
        hook_calls.run_post_hooks(here[1], (), [None])  # they came while the gradient was added, and see nothing of it
    return ()


def replace_grad(variable: Tensor, boxed: list, place: int) -> None:
    """Make a gradient, in which an old one is contained, that of a leaf; an old tensor is written in place."""
    at(place)
    own, g = variable._autograd, boxed.pop()
    if own.grad is None:
        own.grad = g
    else:
        own.grad.copy_(g)


# ---- hooks
def removed(hook: Callable, kind: str, place: int, number: int = 0) -> bool:
    """Whether a hook, about to be called for the node at a place, was taken away before those of its kind began to run."""
    here = at(place)
    if here is None:
        return False
    task, node = here
    if kind == "tensor":
        return not task.registered(hook, (node.tensor_pre_hooks or {}).get(number), (place, kind, number))
    return not task.registered(hook, node.pre_hooks if kind == "pre" else node.post_hooks, (place, kind))


def is_of_many_calls(place: int) -> bool:
    """Whether the node at a place stands for many calls: one of them without a gradient has nothing to hear of."""
    here = at(place)
    return here is not None and here[1].of_many_calls


def tensor_hook(hook: Callable, g: Tensor | None, place: int, number: int) -> Tensor | None:
    """A hook of a tensor, on its gradient."""
    if removed(hook, "tensor", place, number):
        return g
    if g is None and is_of_many_calls(place):
        return g
    with hook_calls.users_code():
        result = hook(g)
    return hook_calls.checked(result, g, hook)


def retain_grad(keep: Callable, g: Tensor | None) -> Tensor | None:
    """Keep a gradient that is to be retained."""
    return g if g is None else keep(g)


def pre_hook(hook: Callable, gs: list, place: int) -> list:
    """A node's pre-hook, on all gradients that arrived."""
    if removed(hook, "pre", place):
        return gs
    with hook_calls.users_code():
        result = hook(tuple(gs))
    return gs if result is None else list(result) if isinstance(result, (tuple, list)) else [result]


def post_hook(hook: Callable, results: tuple, gs: list, place: int) -> tuple:
    """A node's post-hook, on the gradients of its inputs and outputs."""
    if removed(hook, "post", place):
        return results
    return _after(hook, results, gs)


def late_post_hooks(results: tuple, gs: list, known: list, place: int) -> tuple:
    """Post-hooks that came while the node's own hooks and unpacking ran: without others, they see no gradients that arrived."""
    here = at(place)
    for hook in list(here[1].post_hooks.values()) if here is not None and here[1].post_hooks else ():
        if not any(hook is users(k) for k in known):
            results = _after(hook, results, gs)
    return results


def _after(hook: Callable, results: tuple, gs: list) -> tuple:
    with hook_calls.users_code():
        result = hook(tuple(results), tuple(gs))
    if result is None:
        return results
    result = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if len(result) != len(results):
        raise RuntimeError(
            f"hook has returned an incorrect number of values (got {len(result)}, but expected {len(results)})"
        )
    return result


# ---- what nodes hold
def unpack_saved(unpack: Callable, place: int) -> Tensor:
    """A saved tensor that hooks packed, unpacked."""
    at(place)
    return unpack()


def run_node(node: Node, gs: list, **how) -> tuple:
    """A node that is run itself."""
    at_node(node)
    results = tuple(node.run(list(gs), **how))
    if len(results) != len(node.edges):
        raise RuntimeError(
            f"{node.name()} returned an incorrect number of gradients (expected {len(node.edges)}, got {len(results)})"
        )
    return results
