"""The engine: walks the graph from roots to leaves, newest node first.

A heap orders ready nodes by sequence number; sinks of leaves go before everything else. A node runs when all gradients
that can reach it have arrived; what it returns is checked against the metadata of the node it goes to (shape, dtype) and
added up there. The order at a node is: hooks of its output tensors, retained gradients, node pre-hooks, the rule, node
post-hooks. Each backward is a task on its thread's stack, so a backward inside a backward is just another task; past
`MAX_DEPTH` of them a new thread takes over, since Python's own stack is bounded.

Where the extension is built and nobody looks at each step, the same walk runs in C (`core/native_walks.h`).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection
from heapq import heappop, heappush
from typing import TypeVar

from ..core import modes
from ..core.arrays import LARGE, library
from ..core.device import cpu
from ..core.events import listeners, publish
from ..core.layers import above
from ..core.modes import ambient
from ..core.node import AccumulateGrad, Node
from ..core.objects import native_walk
from ..ops.eager.functions import choose
from .accumulation import accumulate, total, validate
from .dependencies import FIRST, branching, dependencies
from .hook_calls import run_late_hooks, run_post_hooks, run_pre_hooks, run_tensor_hooks, users_code

MAX_DEPTH = 20
_next_task = itertools.count().__next__


AnyTask = TypeVar("AnyTask", bound="Task")
Result = TypeVar("Result")


class Task:
    """One backward on the stack of its thread: what may be asked of it while it runs, by whichever means it runs."""

    __slots__ = ("id", "roots", "wanted", "keep_graph", "callbacks", "node", "overrides")

    needed: dict | None  # what `needed_for` says; None: all nodes run

    def __init__(self, roots: list, wanted: Collection, keep_graph: bool):
        self.id = _next_task()
        self.roots, self.wanted, self.keep_graph = roots, wanted, keep_graph
        self.callbacks: list[Callable[[], object]] = []
        self.node: Node | None = None  # the one that runs now
        self.overrides = (0, 0)  # `function_disabled` and the function bit of the mode, as they were outside


class Walk(Task):
    """A backward that the engine walks: for these inputs (edges), which may run as well; None: for all leaves."""

    __slots__ = ("inputs", "run_inputs", "_needed")

    def __init__(self, roots: list, inputs: list | None, run_inputs: bool, keep_graph: bool):
        super().__init__(roots, () if inputs is None else inputs, keep_graph)
        self.inputs, self.run_inputs = inputs, run_inputs
        self._needed: dict | None = None

    @property
    def needed(self) -> dict | None:  # type: ignore[override]  # found when it is first asked for
        if self._needed is None and self.inputs is not None:
            self._needed = needed_for(self.roots, self.inputs, self.run_inputs)
        return self._needed


class Progress:
    """What has arrived where, and which nodes are ready.

    `records` has, per node, [gradients it still waits for, metadata of its outputs, which sums are ours to write into (a bit
    per output), one gradient per output ...].
    """

    __slots__ = ("records", "heap", "ready", "sinks")

    def __init__(self, roots: list, grads: list, needed: dict | None):
        self.records = dependencies(roots, needed)
        self.heap: list[int] = []  # negated sequence numbers of ready nodes
        self.ready: dict[int, Node] = {}
        self.sinks: list[AccumulateGrad] = []
        for (root, number), g in zip(roots, grads, strict=True):
            record = self.records[root]
            have = record[number + FIRST]
            record[number + FIRST] = g if have is None else total(have, g)
        for first in dict.fromkeys([e[0] for e in roots]):
            if not self.records[first][0]:
                self.push(first)

    def push(self, node: Node) -> None:
        if node.__class__ is AccumulateGrad:
            self.sinks.append(node)
        else:
            self.ready[-node.sequence] = node
            heappush(self.heap, -node.sequence)

    def pop(self) -> Node | None:
        """The node that is to run next; None where none is ready."""
        if self.sinks:
            return self.sinks.pop()
        return self.ready.pop(heappop(self.heap)) if self.heap else None


def run_graph(
    roots: list,
    grads: list,
    keep_graph: bool,
    create_graph: bool,
    inputs: list | None = None,
    accumulate_inputs: bool = False,
) -> list:
    """Send `grads` into `roots` (edges) and let them flow. With `inputs` (edges), only what leads to them runs, and the
    gradients that arrive at them are returned, one for each (or, with `accumulate_inputs`, go to the leaves' `.grad`)."""
    if ambient.mode & modes.CAPTURE:
        ambient.captures[-1].refuse("it differentiates inside (other than by autograd.grad or backward)")
    if len(ambient.tasks) >= MAX_DEPTH:
        return _in_new_thread(run_graph, roots, grads, keep_graph, create_graph, inputs, accumulate_inputs)
    if ambient.backward_compiler is not None:
        needed = None if inputs is None else needed_for(roots, inputs, accumulate_inputs)
        result = above.run_compiled(roots, grads, keep_graph, create_graph, inputs, accumulate_inputs, needed)
        if result is not None:
            return result
    task = Walk(roots, inputs, accumulate_inputs, keep_graph)
    if listeners:
        publish("walked", nodes=_order_of(task))
    return run_task(task, create_graph, lambda task: _walk(task, grads))


def run_task(task: AnyTask, create_graph: bool, work: Callable[[AnyTask], Result]) -> Result:
    """Do the work of a backward as the innermost task of its thread, in its grad mode; then what was queued meanwhile.
    Rules are ours: what users override is not called from them."""
    before = ambient.enter_backward(task, create_graph)
    task.overrides = before[1], before[0] & modes.FUNCTION
    try:
        result = work(task)
        while task.callbacks:
            with users_code():
                task.callbacks.pop(0)()
    finally:
        ambient.leave_backward(*before)
    return result


def _in_new_thread(function, *args):
    """Run a deeply nested backward on a fresh stack, with this thread's ambient state."""
    state = {k: v for k, v in vars(ambient).items() if k != "tasks"}
    outcome: list = []

    def work() -> None:
        vars(ambient).update(state)
        ambient.tasks = []
        try:
            outcome.append((True, function(*args)))
        except BaseException as e:  # noqa: BLE001 - handed to the caller, whatever it is
            outcome.append((False, e))

    thread = threading.Thread(target=work, name="pullback-reentrant")
    thread.start()
    thread.join()
    ok, value = outcome[0]
    if not ok:
        raise value
    return value


def _walk(task: Walk, grads: list) -> list:
    """Run ready nodes until none is left; gives what has arrived at the inputs that were asked for."""
    if quick_walk is not None and not ambient.mode & ~modes.GRAD:  # somebody who listens hears of every sum
        in_place = not ambient.mode
        found = quick_walk(
            task, task.roots, grads, task.inputs, task.run_inputs, task.keep_graph, in_place, branching.exists
        )
        if found is not NotImplemented:
            return found
    return _walk_in_python(task, grads)


def _walk_in_python(task: Walk, grads: list) -> list:
    progress, needed, wanted = Progress(task.roots, grads, task.needed), task.needed, set(task.wanted)
    targets = {e[0] for e in wanted}
    captured: dict = {}
    in_place = not ambient.mode & modes.GRAD
    watched = ambient.mode & (modes.ANOMALY | modes.PROFILE)
    while (node := progress.pop()) is not None:
        task.node = node
        gs = progress.records.pop(node)[FIRST:]
        # a root from which no target can be reached has a record, and does not run
        if needed is not None and (node in targets or not needed.get(node)) and not _capture(task, node, gs, captured):
            continue
        if node.__class__ is AccumulateGrad and not (watched or node.hooked):
            accumulate(node.variable, gs)
            continue
        edges = None if needed is None or len(node.edges) == 1 else needed_edges(node.edges, needed)
        if node.hooked:
            results = run_hooked(node, gs, edges, task.keep_graph)
        else:
            results = _run(node, gs, edges)
            if not task.keep_graph:
                node.release()
            check_count(node, results)
            if node.hooked:
                results = run_late_hooks(node, results)
        for target in deliver(node, results, progress.records, in_place):
            progress.push(target)
        del results  # a sink that runs next may take a gradient over if nobody else holds it
    task.node = None
    return [captured.get(e) for e in task.wanted]


def _run(node: Node, gs: list, edges: tuple | None):
    """`node.run(gs)` for all edges or for these, whoever looks: anomaly mode, and around it the profiler."""
    if not ambient.mode & (modes.ANOMALY | modes.PROFILE):
        return node.run(gs) if edges is None else node.run_for(gs, edges)
    return run_watched(node, gs)


def run_hooked(node: Node, gs: list, edges: tuple | None, keep_graph: bool):
    """Run a node among its hooks; takes the gradients out of the list, since a sink makes one its own that nobody else holds."""
    own = gs[:]
    gs.clear()
    given = gs = run_pre_hooks(node, run_tensor_hooks(node, own))
    del own
    post_hooks = node.post_hooks
    if post_hooks:
        given = list(gs)  # a sink takes its gradient out of the list
    results = _run(node, given, edges)
    if not keep_graph:
        node.release()
    check_count(node, results)
    if not post_hooks:
        return run_late_hooks(node, results)
    return run_post_hooks(node, results, gs) if node.post_hooks else results


def check_count(node: Node, results) -> None:
    if len(results) != len(node.edges):
        raise RuntimeError(
            f"{node.name()} returned an incorrect number of gradients (expected {len(node.edges)}, got {len(results)})"
        )


def deliver(node: Node, results, records: dict, in_place: bool) -> list[Node]:
    """Add what a node returned to the records of the nodes its edges go to; gives those that now wait for nothing more.
    With `in_place`, sums that only the engine holds are written into."""
    ready = []
    for i, (edge, g) in enumerate(zip(node.edges, results)):  # noqa: B905 - the caller compares the lengths
        if edge is None:
            continue
        target, number = edge
        record = records.get(target)
        if record is None:  # not on a path to what was asked for
            continue
        if g is not None:
            shape, dtype, _ = record[1][number]
            if g.dtype is not dtype or g._array.shape != shape:
                g = validate(node, i, record[1][number], g)
            have = record[number + FIRST]
            if have is None:
                record[number + FIRST] = g
            elif in_place and record[2] >> number & 1 and not (have._keys or g._keys):
                have.add_(g)
            else:
                record[number + FIRST] = total(have, g)
                record[2] |= 1 << number
        record[0] = left = record[0] - 1
        if not left:
            ready.append(target)
    return ready


def run_watched(node: Node, gs: list):
    """`node.run(gs)` with somebody looking: anomaly mode, and around it the profiler."""
    run = above.run_checked if ambient.mode & modes.ANOMALY else run_node
    return above.run_profiled(node, gs, run) if ambient.mode & modes.PROFILE else run(node, gs)


def run_node(node: Node, gs: list):
    """`node.run(gs)`, but for the gradients that the backward has no use for."""
    needed = ambient.tasks[-1].needed
    return node.run(gs) if needed is None else node.run_for(gs, needed_edges(node.edges, needed))


def needed_edges(edges: tuple, needed: dict) -> tuple:
    """Edges of a node that lead to what was asked for; None for each of the others."""
    return tuple([edge if edge is not None and edge[0] in needed else None for edge in edges])


def _capture(task: Walk, node: Node, gs: list, captured: dict) -> bool:
    """Keep gradients that were asked for; whether the node must run as well."""
    runs = bool(task.needed and task.needed.get(node))
    if not runs and node.hooked:
        gs = run_tensor_hooks(node, gs)
    for i, g in enumerate(gs):
        captured[node, i] = g
    return runs


# ---- which nodes run
def needed_for(roots: list, inputs: list, run_inputs: bool = False) -> dict:
    """Nodes on a path from a root to an input: True where the node must run, False where it is only captured. With
    `run_inputs`, inputs that are reached run as well."""
    targets = {e[0] for e in inputs}
    parents_of: dict[Node, list[Node]] = {root: [] for root, _ in roots}  # the nodes with an edge to one
    reached = list(parents_of)
    for node in reached:
        for edge in node.edges:
            if edge is None:
                continue
            child = edge[0]
            parents = parents_of.get(child)
            if parents is None:
                parents_of[child] = [node]
                reached.append(child)
            else:
                parents.append(node)
    needed = {n: run_inputs for n in targets if n in parents_of}
    waiting, led = list(needed), set()
    while waiting:
        for parent in parents_of[waiting.pop()]:
            if parent not in led:
                led.add(parent)
                needed[parent] = True
                waiting.append(parent)
    return needed


_native_walk = native_walk(
    validate, total, library(cpu).add, LARGE, accumulate, run_hooked, run_late_hooks, run_tensor_hooks
)
quick_walk = _native_walk


def _choose_sums(plain: bool) -> None:
    global quick_walk
    quick_walk = _native_walk if plain else None


choose(_choose_sums, "add.Tensor", "add_.Tensor")


# ---- questions while a backward runs
def current_graph_task_id() -> int:
    """The number of the backward that runs on this thread, or -1."""
    return ambient.tasks[-1].id if ambient.tasks else -1


def current_node() -> Node | None:
    """The node that runs on this thread now."""
    return ambient.tasks[-1].node if ambient.tasks else None


def queue_callback(callback) -> None:
    """Call `callback()` when the current backward is done."""
    if not ambient.tasks:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    ambient.tasks[-1].callbacks.append(callback)


def will_execute(node: Node) -> bool:
    """Whether the current backward runs a node."""
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    if not ambient.tasks:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    task = ambient.tasks[-1]
    if task.needed is not None:
        if isinstance(node, AccumulateGrad) and any(n is node for n, _ in task.wanted) and not task.needed.get(node):
            raise RuntimeError(
                "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is currently not supported."
            )
        return bool(task.needed.get(node)) or any(n is node for n, _ in task.wanted)
    return node in dependencies(task.roots, None)


def execution_order() -> list:
    """The nodes that the current backward runs, in order."""
    if not ambient.tasks:
        raise RuntimeError("_current_graph_task_execution_order should only be called during the backward pass")
    if ambient.multithreading:
        raise RuntimeError(
            "_current_graph_task_execution_order expects the current backward to be executed with multithreading disabled, e.g. by running:\n\n"
            ">>> with torch.autograd.set_multithreading_enabled(False):\n...     torch.autograd.grad(loss, inputs)\n"
        )
    return _order_of(ambient.tasks[-1])


def _order_of(now: Task) -> list[Node]:
    """The nodes of a backward in the order in which it runs them, found by a walk without gradients."""
    dry = Progress(now.roots, [None] * len(now.roots), now.needed)
    order: list[Node] = []
    while (node := dry.pop()) is not None:
        order.append(node)
        if now.needed is not None and not now.needed.get(node):
            continue
        for edge in node.edges:
            record = dry.records.get(edge[0]) if edge is not None else None
            if record is not None:
                record[0] -= 1
                if not record[0]:
                    dry.push(edge[0])
    return order
