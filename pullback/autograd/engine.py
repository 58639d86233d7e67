"""The engine: walks the graph from roots to leaves, newest node first.

A heap orders ready nodes by sequence number (leaves' sinks first). A node runs when all gradients that can reach it
have arrived; what it returns is checked against the metadata of the node it goes to (shape, dtype) and added up there.
"""

from __future__ import annotations

from heapq import heappop, heappush

from ..core import modes, node as nodes
from ..core.modes import ambient
from ..core.node import AccumulateGrad, Node, edge_of
from ..core.tensor import SPARSE, Tensor


def run_graph(roots: list, grads: list, keep_graph: bool, create_graph: bool, inputs: list | None = None) -> dict:
    """Send `grads` into `roots` (edges) and let them flow. With `inputs` (edges), only what leads to them runs, and the
    gradients that arrive at them are returned, keyed by edge."""
    needed = _needed(roots, inputs) if inputs is not None else None
    captured: dict = {}
    wanted = set(inputs) if inputs is not None else ()
    before = ambient.mode
    ambient.mode = before & ~modes.GRAD | (modes.GRAD if create_graph else 0)
    try:
        _walk(_Task(roots, grads, needed, wanted, captured, keep_graph))
    finally:
        ambient.mode = before
    return captured


class _Task:
    """One backward: what has arrived where, and which nodes are ready.

    `records` has, per node, [gradients it still waits for, metadata of its outputs, which sums are ours to write into (a bit
    per output), one gradient per output ...].
    """

    __slots__ = ("records", "heap", "ready", "sinks", "needed", "wanted", "captured", "keep_graph")

    def __init__(self, roots: list, grads: list, needed: dict | None, wanted, captured: dict, keep_graph: bool):
        self.records = _dependencies(roots, needed)
        self.heap: list[int] = []  # negated sequence numbers of ready nodes
        self.ready: dict[int, Node] = {}
        self.sinks: list[AccumulateGrad] = []  # ready leaves: they run before anything else
        self.needed, self.wanted, self.captured, self.keep_graph = needed, wanted, captured, keep_graph
        for (root, number), g in zip(roots, grads, strict=True):
            record = self.records[root]
            have = record[number + _FIRST]
            record[number + _FIRST] = g if have is None else have + g
        for root in dict.fromkeys(e[0] for e in roots):
            if not self.records[root][0]:
                _enqueue(self, root)


_FIRST = 3  # where gradients start in a record


def _enqueue(task: _Task, node: Node) -> None:
    if node.__class__ is AccumulateGrad:
        task.sinks.append(node)
    else:
        task.ready[-node.sequence] = node
        heappush(task.heap, -node.sequence)


def _walk(task: _Task) -> None:
    """Run ready nodes until none is left."""
    heap, ready, sinks, records = task.heap, task.ready, task.sinks, task.records
    keep_graph, wanted = task.keep_graph, task.wanted
    in_place = not ambient.mode & modes.GRAD
    while heap or sinks:
        node = sinks.pop() if sinks else ready.pop(heappop(heap))
        gs = records.pop(node)[_FIRST:]
        if node.hooked and node.has_pre_hooks:
            gs = run_pre_hooks(node, gs)
        if wanted and not _capture(task, node, gs):
            continue
        results = node.run(gs)
        if node.hooked and node.post_hooks is not None:
            results = run_post_hooks(node, results, gs)
        edges = node.edges
        if not keep_graph:
            node.release()
        if len(results) != len(edges):
            raise RuntimeError(f"{node.name()} returned an incorrect number of gradients (expected {len(edges)}, got {len(results)})")
        for edge, g in zip(edges, results):  # noqa: B905 - lengths are checked above
            if edge is None:
                continue
            target, number = edge
            record = records.get(target)
            if record is None:  # not on a path to what was asked for
                continue
            if g is not None:
                shape, dtype, _ = record[1][number]
                if g.dtype is not dtype or g.array.shape != shape:
                    g = validate(node, target, number, g)
                have = record[number + 3]
                if have is None:
                    record[number + 3] = g
                elif in_place and record[2] >> number & 1 and not (have.keys or g.keys):
                    have.add_(g)
                else:
                    record[number + 3] = have + g
                    record[2] |= 1 << number
            record[0] = left = record[0] - 1
            if not left:
                _enqueue(task, target)


def _capture(task: _Task, node: Node, gs: list) -> bool:
    """Keep gradients that were asked for; whether the node must run as well."""
    for i, g in enumerate(gs):
        if (node, i) in task.wanted:
            task.captured[node, i] = g
    return bool(task.needed is None or task.needed.get(node))


def run_pre_hooks(node: Node, gs: list) -> list:
    """Hooks on the gradients that arrive at a node: tensor hooks, then node pre-hooks, then retained gradients."""
    gs = list(gs)
    for number, hooks in (node.tensor_pre_hooks or {}).items():
        for hook in list(hooks.values()):
            if gs[number] is not None:
                made = hook(gs[number])
                gs[number] = gs[number] if made is None else made
    for hook in list((node.pre_hooks or {}).values()):
        made = hook(tuple(gs))
        if made is not None:
            gs = list(made) if isinstance(made, (tuple, list)) else [made]
    for number, keep in (node.retain_grad_hooks or {}).items():
        if gs[number] is not None:
            keep(gs[number])
    return gs


def run_post_hooks(node: Node, results, gs: list):
    for hook in list(node.post_hooks.values()):
        made = hook(tuple(results), tuple(gs))
        if made is not None:
            results = made if isinstance(made, (tuple, list)) else (made,)
    return results


def _needed(roots: list, inputs: list) -> dict:
    """Nodes on a path from a root to an input: True where the node must run, False where it is only captured."""
    targets = {e[0] for e in inputs}
    state: dict = {}
    for root, _ in roots:
        stack = [(root, iter(root.edges))]
        seen_here = {root}
        if root in state:
            continue
        state[root] = False
        while stack:
            node, edges = stack[-1]
            for edge in edges:
                if edge is None:
                    continue
                child = edge[0]
                if child not in state:
                    state[child] = False
                    seen_here.add(child)
                    stack.append((child, iter(child.edges)))
                    break
                if state[child] or child in targets:
                    state[node] = True
            else:
                stack.pop()
                if stack and (state[node] or node in targets):
                    state[stack[-1][0]] = True
    return {n: runs for n, runs in state.items() if runs or n in targets}


def _dependencies(roots: list, needed: dict | None) -> dict:
    """A record (see `_Task`) for every node that can run: how many gradients it waits for, room for them."""
    records: dict = {}
    stack = []
    for root, _ in roots:
        if root not in records:
            outputs = root.outputs
            records[root] = [0, outputs, 0, *[None] * len(outputs)]
            stack.append(root)
    while stack:
        node = stack.pop()
        if needed is not None and not needed.get(node):
            continue
        for edge in node.edges:
            if edge is not None:
                child = edge[0]
                record = records.get(child)
                if record is not None:
                    record[0] += 1
                elif needed is None or child in needed:
                    outputs = child.outputs
                    records[child] = [1, outputs, 0, None] if len(outputs) == 1 else [1, outputs, 0, *[None] * len(outputs)]
                    stack.append(child)
    return records


def validate(node: Node, target: Node, number: int, g: Tensor) -> Tensor:
    """A gradient as the node it goes to expects it: summed to its shape, real where it is real, in its dtype."""
    shape, dtype, device = target.outputs[number]
    if g.array.shape != shape:
        g = reduce_to(node, g, shape)
    if g.dtype is not dtype:
        if g.dtype.is_complex and not dtype.is_complex:
            g = g.real
        if g.dtype is not dtype:
            g = g.to(dtype)
    return g


def reduce_to(node: Node, g: Tensor, shape: tuple) -> Tensor:
    """Undo broadcasting."""
    if g.keys & SPARSE:
        return g
    lead = g.array.ndim - len(shape)
    fits = lead >= 0 and all(s == 1 or s == n for s, n in zip(shape, g.array.shape[lead:], strict=True))
    if not fits:
        raise RuntimeError(f"Function {node.name()} returned an invalid gradient at index 0 - got {list(g.array.shape)} but expected shape compatible with {list(shape)}")
    return g.sum_to_size(shape)


def accumulate(variable: Tensor, g: Tensor | None) -> None:
    """`variable.grad += g`; the first gradient is taken over, not copied, where nobody else can see it."""
    if g is None:
        return
    a = variable.autograd
    if a.hooks:
        for hook in list(a.hooks.values()):
            made = hook(g)
            g = g if made is None else made
    recording = ambient.mode & modes.GRAD
    if a.grad is None:
        a.grad = g if recording or g.keys & SPARSE else own(g)
    elif recording:
        a.grad = a.grad + g
    else:
        a.grad.add_(g)
    if a.post_accumulate_hooks:
        for hook in list(a.post_accumulate_hooks.values()):
            hook(variable)


def own(g: Tensor) -> Tensor:
    """The gradient itself if its memory is its own, else a copy."""
    return g if g.memory is None and g.view_info is None and g.autograd is None and not g.keys else g.detach().clone()


nodes.accumulate = accumulate


def implicit_gradients(outputs: list, grads) -> list:
    """Cotangents of the outputs, ones for scalars where none is given; shapes are checked."""
    from ..ops.factories import ones_like

    given = [None] * len(outputs) if grads is None else list(grads)
    made = []
    for i, (out, g) in enumerate(zip(outputs, given, strict=True)):
        if g is None:
            if out.requires_grad and out.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            g = ones_like(out) if out.requires_grad else None
        elif tuple(g.shape) != tuple(out.shape):
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {out.shape}."
            )
        made.append(g)
    return made


def _roots(outputs: list) -> list:
    edges = []
    for i, out in enumerate(outputs):
        edge = edge_of(out)
        if edge is None:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        edges.append(edge)
    return edges


def _as_list(x) -> list:
    return [x] if isinstance(x, Tensor) else list(x)


def backward(tensors, grad_tensors=None, retain_graph: bool | None = None, create_graph: bool = False, inputs=None) -> None:
    """Compute gradients of the leaves that `tensors` depend on, and add them to their `.grad`."""
    outputs = _as_list(tensors)
    grads = implicit_gradients(outputs, None if grad_tensors is None else _as_list(grad_tensors))
    keep = create_graph if retain_graph is None else retain_graph
    edges = _roots(outputs)
    if inputs is None:
        run_graph(edges, grads, keep, create_graph)
        return
    targets = _as_list(inputs)
    got = run_graph(edges, grads, keep, create_graph, [edge_of(t) for t in targets])
    for t in targets:
        accumulate(t, got.get(edge_of(t)))


def grad(outputs, inputs, grad_outputs=None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple:  # fmt: skip
    """Gradients of `outputs` with respect to `inputs`, returned."""
    outputs, targets = _as_list(outputs), _as_list(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    grads = implicit_gradients(outputs, None if grad_outputs is None else _as_list(grad_outputs))
    keep = create_graph if retain_graph is None else retain_graph
    edges = _roots(outputs)
    for t in targets:
        if not t.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    wanted = [edge_of(t) for t in targets]
    got = run_graph(edges, grads, keep, create_graph, wanted)
    result = tuple(got.get(e) for e in wanted)
    if materialize_grads:
        result = tuple(t.new_zeros(t.shape) if g is None else g for g, t in zip(result, targets, strict=True))
    elif not allow_unused and any(g is None for g in result):
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."
        )
    return result
