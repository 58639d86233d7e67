"""The joint graph of a function: its forward and its backward in one pure graph, traced in one pass.

In: a flat function and example arguments. Out: a `Joint`. The function is called once, on fakes, under functionalization
and a trace; then the engine runs over the history that the call left, in the same trace. What the function did to its
inputs and how its outputs alias them is read off the fakes afterwards.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from ..amp.autocast import autocast, casting
from ..autograd.calls import grad
from ..autograd.dependencies import dependencies
from ..autograd.engine import needed_for
from ..autograd.saved import unhooked
from ..capture.fake.mode import FakeTensorMode
from ..capture.front.inputs import stand_in
from ..capture.shapes.numbers import wrap
from ..capture.trace.graph_trace import GraphTrace
from ..capture.trace.make_fx import finish
from ..capture.trace.program import Unsupported
from ..capture.trace.subclasses import fake_of_subclass, is_wrapper, layout_of, parts_of, rebuilt
from ..core import modes, tree
from ..core.modes import ambient
from ..core.node import FreedError, MissingError, ModifiedError, Node, edge_of, requires_grad
from ..core.tensor import FAKE, META, Tensor
from ..ops.family.formats import dense_strides
from .config import config
from .facts import Input, Joint, Output
from .functionalize import Functionalization, geometry, shows_twice
from .output_facts import OutputFacts, strides_when_dense
from .subclasses import Wrapping, flat, tangent_layout, wraps


class AliasedWrite(Exception):
    """A write to memory that several inputs show in different ways: the function must be traced over their common base."""

    is_expected = True

    def __init__(self, inputs: list[int]):
        super().__init__("write to memory shared by inputs")
        self.inputs = inputs  # which ones


class MovedAndWritten(NotImplementedError, AssertionError):
    """An input that is given other memory, and written so that its history matters. Callers know it as either class."""


def _as_it_came(value):
    """An input's fake apart from the one that the function gets, which may give that another shape (`unsqueeze_`)."""
    if not isinstance(value, Tensor):
        return value
    twin = value.shallow()
    twin.__dict__.update(value.__dict__)
    return twin


class JointTrace:
    """One function being traced."""

    def __init__(self, f: Callable, args: list, *, fake_mode: FakeTensorMode, decompositions: dict, backward: bool):
        self.f, self.fake_mode, self.backward = f, fake_mode, backward
        self.trace = GraphTrace(fake_mode=fake_mode, decompositions=decompositions)
        self.trace.partitioned = backward
        self.functional = Functionalization()
        self.leaves: list[Tensor | None] = []  # what gradients are taken of
        self.moved: dict[int, Tensor] = {}  # inputs that were given other memory, by number: tensors on that
        self.counts = [0, 0]  # placeholders for inputs and for tangents so far
        self.args = [self._input(a) for a in args]
        self.layouts = [layout_of(a) for a in self.args]
        self.primals = [_as_it_came(leaf) for leaf in flat(self.leaves)]
        self.parts = [parts_of(a) if is_wrapper(a) else [] for a in self.args]
        self.part_places = [[geometry(p) for p in parts] for parts in self.parts]
        self.before = [
            (geometry(a), edge_of(a) if requires_grad(a) else None, a._counter[0]) if isinstance(a, Tensor) else None
            for a in self.args
        ]
        self.functional.fixed = [a for a in flat(self.args) if isinstance(a, Tensor)]
        self.functional.movable = [a for a in self.args if isinstance(a, Tensor) and not is_wrapper(a)]
        self.functional.guard_memories(self._shared())

    def _placeholder(self):
        i, self.counts[0] = self.counts[0], self.counts[0] + 1
        return self.trace.graph.placeholder(f"primals_{i + 1}" if self.backward else f"arg{i}_1")

    def _input(self, value):
        if is_wrapper(value):
            leaf, arg = stand_in(fake_of_subclass(self.fake_mode, value), value)
            for part in parts_of(leaf):
                self.trace.track(part, self._placeholder())
            self.leaves.append(leaf)
            return arg
        node = self._placeholder()
        if not isinstance(value, Tensor):
            self.trace.track(value, node)
            self.leaves.append(value)
            return value
        leaf, arg = stand_in(self.fake_mode.from_tensor(value, source=node.name), value)
        self.trace.track(leaf, node)
        if arg is not leaf:
            self.trace.track(arg, node)
        self.leaves.append(leaf)
        return arg

    def _shared(self) -> dict:
        """Memories that several inputs show: the history of one that is written may be that of others too."""
        seen: dict = {}
        for i, a in enumerate(self.args):
            for part in parts_of(a):
                if isinstance(part, Tensor) and part._memory is not None:
                    seen.setdefault(part._memory, []).append(i)
        return {memory: AliasedWrite(showing) for memory, showing in seen.items() if len(showing) > 1}

    # ---- the pass
    def run(self) -> Joint:
        with unhooked(), self.fake_mode, self.trace, self.functional:  # hooks are for what is saved when the graph runs
            out = self.f(*self.args)
            self._refuse_gradients()
            self._refuse_writes()
            leaves, spec = tree.tree_flatten(out)
            self._refuse_inner_leaves(leaves)
            self.moved = self._moved(leaves)
            leaves += self.moved.values()
            facts = self._facts(leaves)
            results = self._results(leaves, facts)
            joint = Joint(
                inputs=self.inputs, outputs=facts, results=len(results), written=self.written,
                first_written=self.fresh, out_spec=spec, fake_mode=self.fake_mode, primals=self.primals,
                data_sizes=self.data_sizes, moved=list(self.moved),
            )  # fmt: skip
            nodes = [self._node(p) for p in flat(results)]
            before = [self._writes(t) for t in (*self.args, *results)]
            joint.cut = self.functional.cut
            gradients = self._backward(joint, results) if self.backward else []
            nodes += [None if g is None else self._node(g) for g in flat(gradients)]
            joint.wrapping = self._wrapping(joint, results, gradients)
            nodes += self._written_by_backward(joint, before, results)
        joint.offsets_matter = self.functional.offsets_matter
        self.trace.graph.output(tuple(nodes))
        joint.module = finish(self.trace, "GraphModule")
        return joint

    def _moved(self, outs: list) -> dict[int, Tensor]:
        """The inputs that `set_()` or `.data` gave other memory, by number, each as a tensor on that memory; they lie where they came again."""
        found: dict[int, Tensor] = {}
        for i, a in enumerate(self.args):
            before = self.before[i]
            if id(a) not in self.functional.moved or before is None:
                continue
            where, edge, _ = before
            if a._memory is self.functional.moved[id(a)][1]._memory and geometry(a) == where:
                continue
            reshaped = geometry(a)[0] != where[0] and any(isinstance(o, Tensor) and requires_grad(o) for o in outs)
            if requires_grad(a) and (edge_of(a) != edge or reshaped):
                raise MovedAndWritten(
                    f"set_() or an assignment to .data gives input {i} other memory, but the input has other mutations that we cannot "
                    "keep in the graph: it requires grad, and is written in autograd's sight or gets another shape"
                )
            found[i] = self.functional.move_back(a)
        return found

    def _writes(self, a) -> int:
        """How often the memory of a tensor was written."""
        parts = [p for p in parts_of(a) if isinstance(p, Tensor)]
        return sum(s.writes for s in map(self.functional.state, parts) if s is not None)

    def _written_by_backward(self, joint: Joint, before: list[int], results: list) -> list[Node]:
        """The new values of inputs that the backward wrote: of a tensor that a custom function keeps, say."""
        counts = zip((*self.args, *results), before, strict=True)
        written = [k for k, (t, writes) in enumerate(counts) if self._writes(t) > writes]
        joint.backward_written = [k for k in written if k < len(self.args)]
        if written and joint.wrapping is not None:
            raise NotImplementedError("a backward that writes an input is not implemented with tensor subclasses")
        fresh = [k - len(self.args) for k in written if k >= len(self.args)]
        if any(n < self.fresh or n >= self.fresh + len(self.written) for n in fresh):
            raise NotImplementedError("a backward that writes a result of its forward is not implemented")
        return [self._node(self.args[i]) for i in joint.backward_written]

    def _refuse_inner_leaves(self, outs: list) -> None:
        """A leaf that the function makes is no input: what depends on it would lose its way to it."""
        result = [o for o in outs if isinstance(o, Tensor) and requires_grad(o) and not any(o is a for a in self.args)]
        inner = [edge_of(o) for o in result if o.is_leaf and o._view_info is None]
        roots = [edge_of(o) for o in result if not o.is_leaf]
        lost = modes.is_grad_enabled() and not any(isinstance(t, Tensor) and requires_grad(t) for t in self.leaves)
        if roots and (lost or inner and any(node in needed_for(roots, inner) for node, _ in inner)):
            raise Unsupported("it makes a tensor that requires grad, and returns what depends on it")

    def _refuse_gradients(self) -> None:
        """A backward() inside the function would have added to `.grad` of its inputs, which a graph does not do."""
        for i, leaf in enumerate(self.leaves):
            if isinstance(leaf, Tensor) and leaf._autograd is not None and leaf._autograd.grad is not None:
                raise RuntimeError(
                    f"the function to compile calls backward(), which adds to .grad of its input {i}: return gradients of "
                    "autograd.grad() instead"
                )

    def _refuse_writes(self) -> None:
        """A write to a tensor that the function reached without being given it: the graph would not carry it out."""
        for memory in self.functional.memories:
            state = memory.__dict__.get("written", {}).get(self.functional)
            if state is not None and state.writes and not state.root._keys & FAKE:
                raise RuntimeError(
                    f"the function to compile writes to a tensor of shape {list(state.root.shape)} that is not one of its "
                    "inputs, which a graph cannot do: make it an input"
                )

    def _wrapping(self, joint: Joint, results: list, gradients: list) -> Wrapping | None:
        """How values are built of those of the graph, where some are wrappers."""
        result, taken = [layout_of(r) for r in results], [layout_of(g) for g in gradients]
        tangents = [layout_of(t) for t in joint.tangents]
        if not any(map(wraps, (self.layouts, result, taken))):
            return None
        joint.tangents = flat(joint.tangents)
        return Wrapping(self.layouts, result, tangents, taken, joint.tangents)

    def _node(self, value):
        if isinstance(value, Tensor):
            with self.functional.stepped_aside():
                value = self.functional.value(value)
        return self.trace.argument(value)

    def _facts(self, outs: list) -> list[Output]:
        self.inputs = [
            self._input_fact(i, a, leaf, before)
            for i, (a, leaf, before) in enumerate(zip(self.args, self.leaves, self.before, strict=True))
        ]
        self.written = [i for i, fact in enumerate(self.inputs) if fact is not None and fact.written]
        for memory in self.functional.memories:  # a backward reads what the function read before it took memory away
            if (state := memory.__dict__.get("written", {}).get(self.functional)) is not None:
                state.nbytes = None
        facts = OutputFacts(self, outs)
        self.bases = facts.bases
        return facts.read()

    def _input_fact(self, i: int, a, leaf, before) -> Input | None:
        if not isinstance(a, Tensor):
            return None
        where, edge, version = before
        fact = Input(requires_grad(leaf), a is leaf)
        state = self.functional.state(a)
        fact.written = state is not None and state.writes > 0 or self._parts_written(i)
        if state is not None and state.nbytes is not None:
            fact.nbytes = state.nbytes
            fact.written = fact.written and state.nbytes > 0  # there is nothing left to hold the new value
        fact.bumped = a._counter[0] != version
        switched = requires_grad(a) != (edge is not None) and (edge is not None or a.is_leaf)
        fact.switched_on = switched and edge is None and a is leaf
        if switched and not (fact.switched_on and geometry(a) == where and not fact.written):
            raise NotImplementedError(
                f"the function to compile changes whether its input {i} requires grad (requires_grad_(), detach_()), and not "
                "only by letting it require grad: that is not implemented"
            )
        if fact.written or fact.bumped or geometry(a) != where:
            now = edge_of(a) if requires_grad(a) else None
            viewed = a.__dict__.get("view_edge")
            fact.viewed = viewed is not None
            unseen = [e[0] for e in (edge, viewed) if e is not None]
            fact.recorded = now is not None and all(now[0] is not node for node in unseen)
            fact.visible = fact.written and fact.recorded
            shape, stride, offset = geometry(a)
            fact.geometry = (shape, stride, offset - where[2]) if (shape, stride, offset) != where else None
            fact.row = state.row if fact.written and state is not None else None
            if fact.row is not None and fact.visible and shows_twice(a):
                raise NotImplementedError(
                    "a write that autograd follows, to an input that shows an element twice, is not implemented"
                )
            if fact.row is not None and fact.geometry is not None:
                raise NotImplementedError(
                    "writing the memory between an input's elements, and changing its shape in place, are not implemented together"
                )
        return fact

    def _parts_written(self, i: int) -> bool:
        """Whether an input that is a wrapper has parts that were written, or other parts than before."""
        before = self.parts[i]
        if not before:
            return False
        now = parts_of(self.args[i])
        if [geometry(p) for p in before] != self.part_places[i] or len(now) != len(before):
            raise RuntimeError(
                "Metadata mutations are currently not allowed on tensor subclasses: the function changes the shapes or the number of "
                f"the parts of a {type(self.args[i]).__name__} in place"
            )
        states = [self.functional.state(p) for p in before]
        if any(p is not b for p, b in zip(now, before, strict=True)):
            return True
        return any(s is not None and s.writes > 0 for s in states)

    def _new_value(self, i: int) -> Tensor:
        """A written input; with what lies between its elements, where that was written too."""
        a, fact = self.args[i], self.inputs[i]
        if fact is None or fact.row is None:
            return a
        with modes.masked(0 if fact.visible else modes.GRAD):
            return a.as_strided((fact.row,), (1,), a._offset)

    def _results(self, outs: list, facts: list[Output]) -> list:
        """The tensors (and numbers) that the forward graph gives: fresh outputs, written inputs, bases."""
        results: list = []
        for o, fact in zip(outs, facts, strict=True):
            if fact.kind in ("fresh", "number"):
                fact.index = len(results)
                results.append(o)
        self.fresh = len(results)
        results += [self._new_value(i) for i in self.written]
        first_base = len(results)
        for fact in facts:
            if fact.kind == "view" and fact.value is not None:
                fact.index = first_base + fact.value
        results += self.bases
        for fact in facts:  # views of a fresh output
            if fact.kind == "view of output":
                fact.kind, fact.index = "view", facts[fact.index].index
        shown = symbols_of([[*p.shape] for p in self.primals if isinstance(p, Tensor)])
        wanted = [s for s in symbols_of([[c[1] for c in f.calls] for f in facts]) if s.is_unbacked and s not in shown]
        self.data_sizes = {symbol: len(results) + k for k, symbol in enumerate(wanted)}
        return [*results, *[wrap(symbol, self.fake_mode.shape_env) for symbol in self.data_sizes]]

    # ---- the backward
    def _backward(self, joint: Joint, results: list) -> list:
        """Gradients of the inputs, from tangents of every result that has a history."""
        visible = {self.fresh + k: i for k, i in enumerate(self.written)}
        first_base = self.fresh + len(self.written)
        followed = {  # bases to which gradients of some output lead
            fact.index
            for fact in joint.outputs
            if fact.kind == "view" and fact.requires_grad and all(recorded for *_, recorded in fact.calls)
        }
        wanted = []
        for n, t in enumerate(results):
            if (
                isinstance(t, Tensor)
                and not t.is_leaf
                and requires_grad(t)
                and (n not in visible or joint.tensor_input(visible[n]).visible)
                and (n < first_base or n in followed)
            ):
                wanted.append(n)
        joint.differentiable = wanted
        joint.tangents = [self._tangent(results[n]) for n in wanted]
        joint.gradients = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, Tensor) and requires_grad(leaf)]
        if not wanted:
            return [None] * len(joint.gradients)

        inputs = [self.leaves[i] for i in joint.gradients]
        joint.branches = branches([results[n] for n in wanted], inputs)
        try:
            with modes.masked(modes.GRAD), backward_autocast():
                found = grad([results[n] for n in wanted], inputs, joint.tangents, allow_unused=True)
                return [lying_as(g, leaf) for g, leaf in zip(found, inputs, strict=True)]
        except (ModifiedError, FreedError, MissingError) as error:  # the forward is right, as in eager mode
            joint.backward_error = error
            return [None] * len(inputs)

    def _tangent(self, t: Tensor) -> Tensor:
        parts = [self._tangent_part(p) for p in parts_of(t)]
        return rebuilt(tangent_layout(layout_of(t), strides_when_dense), iter(parts))

    def _tangent_part(self, t: Tensor) -> Tensor:
        self.counts[1] += 1
        node = self.trace.graph.placeholder(f"tangents_{self.counts[1]}")
        result = self.fake_mode.make(tuple(t._array.shape), dense_strides(t), t.dtype, t.device)
        self.trace.track(result, node)
        return result


def symbols_of(values: list) -> list:
    """The symbols of symbolic numbers in a nest, each once."""
    numbers = [v for v in tree.tree_leaves(values) if getattr(v, "is_symbolic", False)]
    return list(dict.fromkeys(s for v in numbers for s in getattr(v.node.expr, "symbols", ())))


def lying_as(g: Tensor | None, leaf: Tensor | None) -> Tensor | None:
    """A gradient on a device in the row-major order of its input, as it is accumulated: turned in the graph, where that is one loop more."""
    if (
        g is None
        or leaf is None
        or g._keys & ~(FAKE | META)
        or g.device.type != "cuda"
        or g.is_contiguous()
        or not leaf.is_contiguous()
    ):
        return g
    return g.contiguous()


def branches(results: list, inputs: list) -> list[tuple[int, ...]] | None:
    """For each result the inputs, by number, to which its history leads; None where each leads to all."""
    nodes = [edge_of(t)[0] for t in inputs]
    reached = [dependencies([edge_of(t)], None) for t in results]
    found = [tuple([i for i, node in enumerate(nodes) if node in records]) for records in reached]
    return None if all(len(f) == len(nodes) for f in found) else found


def backward_autocast() -> contextlib.AbstractContextManager:
    """Autocast as the setting wants it in a backward."""
    chosen = config.backward_pass_autocast
    if isinstance(chosen, str):
        if chosen not in ("off", "same_as_forward"):
            raise ValueError(
                f"config.backward_pass_autocast must be 'off', 'same_as_forward' or a list of dicts, got {chosen!r}"
            )
        return casting(ambient.autocast) if chosen == "same_as_forward" else modes.masked(modes.AUTOCAST)
    contexts = contextlib.ExitStack()
    contexts.enter_context(casting({name: s._replace(enabled=False) for name, s in ambient.autocast.items()}))
    for arguments in chosen:
        contexts.enter_context(autocast(**arguments))
    return contexts
