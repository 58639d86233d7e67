"""Running compiled functions: from a user's arguments to their outputs, as if the function itself had run.

In: a `Joint` and its compiled graphs. A call runs the forward graph on the arguments, without recording; gives results
that have gradients a `CompiledFunctionBackward` as history; writes new values back to inputs; and makes outputs that
are views of inputs or of other outputs again, so that aliasing is what it would have been.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from ..capture.front.boxing import consumed
from ..capture.shapes.expressions import evaluate
from ..core import modes, random, tree
from ..core.arrays import copy_all_over
from ..core.modes import ambient
from ..core.node import Autograd, View, requires_grad
from ..core.storage import span_bytes, storage_of
from ..core.tensor import CUDA, Tensor, set_requires_grad
from ..graph import GraphModule
from ..ops.make.storage_sizes import resize_storage
from ..ops.system.dispatch import dispatch
from ..ops.system.inplace import check_writable
from ..ops.system.operator import Operator
from .absent import without_tangents
from .again import Again, differentiable_gradients
from .anyhow import laid_anyhow
from .callables import placeholder_values
from .config import config
from .facts import Input, Joint, Output
from .functionalize import as_strided
from .history import record, recorder
from .mutating import sources_of
from .output_facts import alias
from .replay import random_nodes
from .stacks import note_users_line


class Compiled:
    """A function compiled ahead of time, for one kind of arguments. Called with the flat list of arguments."""

    def __init__(
        self, joint: Joint, forward: Callable, backward: Callable | None, differentiate: Callable | None = None
    ):
        self.joint, self.forward, self.backward = joint, forward, backward
        self.differentiate = differentiate  # (arguments, tangents) -> gradients, itself differentiable
        self.backward_module: GraphModule | None = (
            None  # the graph that `backward` was compiled of, for those who inline it
        )
        self.compile_backward: Callable | None = None  # how a backward of fewer gradients is compiled
        self.differentiable: Callable | None = None  # (joint graph, results without gradients) -> `differentiate` of it
        self.again: Again | None = None  # the function itself, to be called again
        self.fewer: dict[tuple, Fewer | None] = {}  # by the results that got no gradient
        self.written = [(joint.first_written + k, i, joint.tensor_input(i)) for k, i in enumerate(joint.written)]
        places = {i: place for place, i, _ in self.written}
        self.misshaped = [
            i
            for i, f in enumerate(joint.inputs)
            if f is not None and f.geometry is not None and not f.recorded and not f.viewed
        ]
        self.changed = [
            (i, f, places.get(i))
            for i, f in enumerate(joint.inputs)
            if f is not None and (f.written or f.bumped or f.geometry is not None or f.nbytes is not None)
        ]
        self.replaced = {i: place for i, f, place in self.changed if place is not None and self._is_unread(i, f)}
        self.symbolic = any(
            getattr(v, "is_symbolic", False)
            for v in tree.tree_leaves(
                [[f.geometry for _, f, _ in self.changed], [[c[1] for c in o.calls] for o in joint.outputs]]
            )
        )
        self.switched_on = [i for i, f in enumerate(joint.inputs) if f is not None and f.switched_on]
        self.aliases = [o.index for o in joint.outputs if o.is_alias]
        self.plain = (
            all(o.kind == "fresh" and not (o.is_leaf and o.requires_grad) for o in joint.outputs)
            and not self.changed
            and not joint.moved
            and not self.switched_on
        )

    def _is_unread(self, i: int, fact: Input) -> bool:
        """Whether no gradient depends on the values of an input that is written: running statistics, say."""
        if (
            self.backward is None
            or self.joint.wrapping is not None
            or fact.geometry is not None
            or fact.row is not None
        ):
            return False
        return i not in self.read_by_gradients

    @cached_property
    def read_by_gradients(self) -> set[int]:
        graph = self.joint.module.graph
        read = sources_of(graph.output_node().args[0][self.joint.results :])
        return {i for i, node in enumerate(n for n in graph.nodes if n.op == "placeholder") if node in read}

    def __call__(self, args: list) -> list:
        return self._run(args, False)

    def consume(self, args: list) -> list:
        """The same, where the list is this call's to empty: arguments that nothing but the graph needs live until their last use."""
        return self._run(args, self.plain and self.backward is None)

    def _run(self, args: list, taken: bool) -> list:
        if self.misshaped:
            self._refuse_misshaped(args)
        drawn = self.states()
        result = self.masked(args, taken)
        joint = self.joint
        results = list(result[: joint.results])
        for i in self.switched_on:
            set_requires_grad(args[i], True)
        for n in self.aliases:  # the graph may give an argument itself, or one object twice: each gets its own history
            results[n] = results[n].shallow()
        if self.backward is not None and (ambient.mode & modes.GRAD or joint.records):
            record(self, args, results, result[joint.results :], drawn)
        for n in self.aliases:
            refuse_writes(n, results[n], args)
        if self.plain:
            return self._marked(results)
        changed, outputs = (self.changed, joint.outputs) if not self.symbolic else self._sized(args, results)
        self._write_back(changed, args, results)
        outs: list = []
        several: dict = {}
        late: list[int] = []  # what shows the new memory of inputs
        for n, fact in enumerate(outputs):
            if joint.moved and (fact.kind == "moved view" or fact.kind == "same" and fact.index in late):
                late.append(n)
            outs.append(output(fact, args, results, outs, several) if not late or late[-1] != n else None)
        for i in reversed(joint.moved):
            args[i].data = outs.pop()
        for n in late:
            outs[n] = output(outputs[n], args, results, outs, several)
        return self._marked(outs)

    def masked(self, args: list, taken: bool = False) -> Sequence:
        """What the forward graph gives: it has casts and history already, so nothing is cast and recorded while it runs. `taken`: the
        arguments are a list that it may empty."""
        before = ambient.change(modes.GRAD | modes.AUTOCAST)
        try:
            return consumed(self.forward, args) if taken else self.forward(*args)
        except Exception as error:
            note_users_line(error)
            raise
        finally:
            ambient.restore(before)

    def direct(self) -> Callable | None:
        """`self(list(args))` as a function of the arguments, by the shortest way; None where there is none: for results that are made of
        arguments, arguments that are written in autograd's sight or change their shape, and forwards that are not one native call."""
        recording = getattr(self.forward, "recording", None)
        if (
            recording is None
            or self.joint.moved
            or self.misshaped
            or self.aliases
            or self.symbolic
            or not self._gives_results()
        ):
            return None
        if not all(place is not None and _is_settled(f) for _, f, place in self.changed):
            return None
        run = recording(lambda *args: self.masked(list(args)))
        if run is None:
            return None
        run = run if self.backward is None else self._recorded(run)
        run = self._written(run) if self.changed else run
        return (lambda *args: self._marked(run(*args))) if self.moving_outputs else run

    def _gives_results(self) -> bool:
        """Whether the outputs are the first results of the graph, as they are."""
        facts = enumerate(self.joint.outputs)
        return all(o.kind == "fresh" and o.index == n and not (o.is_leaf and o.requires_grad) for n, o in facts)

    def _recorded(self, run: Callable) -> Callable:
        count, forced, hang = self.joint.results, self.joint.records, recorder(self)

        def call(*args):
            result = run(*args)
            results = result[:count]
            if forced or ambient.mode & modes.GRAD:
                hang(args, results, result[count:])
            return results

        def drawing(*args):
            drawn = self.states()
            result = run(*args)
            results = result[:count]
            if forced or ambient.mode & modes.GRAD:
                hang(args, results, result[count:], drawn)
            return results

        return drawing if self.draws else call

    def _written(self, run: Callable) -> Callable:
        """The same for a function that writes arguments, most often over the old values: then only their versions are left to do."""
        count, changed, write_back = len(self.joint.outputs), self.changed, self._write_back
        over = [(place, i, f.bumped) for i, f, place in changed]

        def call(*args):
            result = run(*args)
            for place, i, _ in over:
                if result[place] is not args[i]:
                    write_back(changed, args, result)
                    return result[:count]
            for _, i, bumped in over:
                if bumped:
                    args[i]._counter[0] += 1
            return result[:count]

        return call

    def operators(self, differentiable: bool) -> Callable:
        """Gradients of arguments and tangents, operator by operator, which may be differentiated or not."""
        return _operators(self.again if differentiable else None, self.joint, self.anyhow)

    @cached_property
    def anyhow(self) -> GraphModule:
        """The joint graph for gradients that lie in memory as they may."""
        return laid_anyhow(self.joint.module)

    def without(self, absent: tuple[int, ...]) -> Fewer | None:
        """What runs where these of the differentiable results got no gradient; None: zeros must stand for them."""
        if self.compile_backward is None or self.backward_module is None or self.joint.backward_written:
            return None
        if absent not in self.fewer:
            self.fewer[absent] = self._fewer(self.backward_module, self.compile_backward, absent)
        return self.fewer[absent]

    def _fewer(self, backward: GraphModule, compile: Callable, absent: tuple[int, ...]) -> Fewer | None:
        module = without_tangents(backward, absent)
        joint = None if module is None else without_tangents(self.joint.module, absent)
        return None if module is None or joint is None else Fewer(self, compile, module, joint, absent)

    def _refuse_misshaped(self, args: list) -> None:
        """Where an input gets another shape under `no_grad`, its history, and that of its views, must not matter."""
        for i in self.misshaped:
            if not requires_grad(args[i]):
                continue
            views = [
                a for a in args if isinstance(a, Tensor) and a._view_info is not None and a._view_info.base is args[i]
            ]
            if args[i]._view_info is not None or any(map(requires_grad, views)):
                raise NotImplementedError(
                    "changing the shape of an input in place, under no_grad, where it requires grad and is a view or has views "
                    "among the inputs, is not implemented"
                )

    @cached_property
    def is_plain_backward(self) -> bool:
        """Whether the backward graph takes plain tensors, and writes none."""
        joint = self.joint
        return (
            self.backward is not None
            and joint.backward_error is None
            and joint.wrapping is None
            and not joint.backward_written
        )

    @cached_property
    def draws(self) -> bool:
        """Whether the forward of a function with gradients draws random numbers."""
        return self.backward is not None and bool(random_nodes(self.joint.module))

    def states(self) -> dict | None:
        """The states of the generators, where gradients that are differentiated have to draw from them again."""
        if not self.draws or not config.double_backward or not (ambient.mode & modes.GRAD or self.joint.records):
            return None
        return random.states()

    @cached_property
    def branches(self) -> tuple | None:
        """By result, the gradients to which one of it leads; None: each leads to all."""
        if self.joint.branches is None:
            return None
        found = dict(zip(self.joint.differentiable, self.joint.branches, strict=True))
        return tuple([found.get(n, ()) for n in range(self.joint.results)])

    @cached_property
    def symbolic_dims(self) -> list[list[int]]:
        """Per saved value, the dimensions whose sizes these graphs do not depend on: those that take it need not either."""
        return [] if self.backward_module is None else symbolic_dims(placeholder_values(self.backward_module))

    @cached_property
    def moving_outputs(self) -> list[tuple[int, list[int]]]:
        """Outputs with dimensions whose sizes these graphs do not depend on, and which."""
        if self.joint.wrapping is not None or self.joint.fake_mode.shape_env is None:
            return []
        dims = symbolic_dims([n and n.meta.get("val") for n in self.joint.module.graph.output_node().args[0]])
        fresh = [(n, o.index) for n, o in enumerate(self.joint.outputs) if o.kind == "fresh"]
        return [(n, dims[index]) for n, index in fresh if dims[index]]

    def mark_saved(self, args: Sequence, saved: Sequence) -> None:
        """The same for what is saved, which hooks are given."""
        given = [*zip(saved, self.symbolic_dims, strict=False)]
        given += zip(args, symbolic_dims(self.joint.primals), strict=False)
        for value, dims in given:
            if dims and isinstance(value, Tensor):
                value.__dict__[PROPAGATED] = set(dims)

    def _marked(self, outs: list) -> list:
        """Outputs that say in which dimensions their sizes may be others next time: programs compiled for them are for those too."""
        for n, dims in self.moving_outputs:
            outs[n].__dict__[PROPAGATED] = set(dims)  # pickles hold it, which know sets
        return outs

    def _sized(self, args: list, results: list) -> tuple[list, list]:
        """What is known of inputs and outputs, with symbolic sizes as they are in these arguments and results."""
        values = self.joint.fake_mode.shape_env.bind_symbols(self.joint.primals, args)
        values |= {symbol: results[n] for symbol, n in self.joint.data_sizes.items()}

        def number(v):
            return evaluate(v.node.expr, values) if getattr(v, "is_symbolic", False) else v

        changed = [(i, replace(f, geometry=tree.tree_map(number, f.geometry)), place) for i, f, place in self.changed]
        outputs = [
            replace(o, calls=tuple((op, tree.tree_map(number, a), *rest) for op, a, *rest in o.calls))
            for o in self.joint.outputs
        ]
        return changed, outputs

    def _write_back(self, changed: list, args: Sequence, results: Sequence) -> None:
        """Give inputs their new shapes and values, in autograd's sight where the function changed them so."""
        plain: list[tuple] = []  # what `copy_` comes to, for the state of an optimizer, say
        for i, fact, place in changed:
            target = args[i]
            if fact.nbytes is not None:
                resize_storage(target, fact.nbytes)
            version = target._counter[0]
            settled = place is not None and _is_settled(fact)
            written = settled and results[place] is target  # native code has written it over the old value
            if written or settled and _is_plain_pair(target, results[place]):
                if not written:
                    plain.append((target._array, results[place]._array))
                target._counter[0] = version + 1 if fact.bumped else version
                continue
            if fact.geometry is not None:
                reshape(target, fact)
            if place is not None:
                with modes.masked(0 if fact.visible else modes.GRAD):
                    whole = target if fact.row is None else target.as_strided((fact.row,), (1,), target._offset)
                    whole.copy_(results[place])
            elif fact.recorded and fact.geometry is None:
                check_writable(target)
            if not fact.bumped:
                target._counter[0] = version
            elif target._counter[0] == version:
                target._counter[0] += 1
        copy_all_over(plain)


OWN_HISTORY = (
    "Output {} of a compiled function is a view of an argument and is being modified inplace. A custom function made it, or hooks were "
    "registered on it inside the function, so the argument's history cannot follow the write. Write to a copy: `out.clone()`"
)
PROPAGATED = "_dynamo_propagated_dynamic_indices"  # on tensors: the dimensions that were symbols where they were made


def symbolic_dims(values: list) -> list[list[int]]:
    """Of each value, the dimensions whose sizes are symbols."""
    shapes = [v.shape if isinstance(v, Tensor) else () for v in values]
    return [[d for d, s in enumerate(shape) if getattr(s, "is_symbolic", False)] for shape in shapes]


class FlatCall:
    """A compiled function of the flat list of its arguments: what `call` makes of them before and after `compiled` runs."""

    def __init__(self, call: Callable[[list], Sequence], compiled: Compiled):
        self.call, self.compiled, self.joint = call, compiled, compiled.joint
        self.offsets: tuple | None = None  # where its arguments must begin in their memory, where that matters

    def __call__(self, args: list) -> Sequence:
        return self.call(args)

    def consume(self, args: list) -> Sequence:
        """The same, where the list is this call's to empty."""
        return consumed(self.call, args) if self.call is self.compiled else self.call(args)

    def called_by(self, call: Callable[[list], Sequence]) -> FlatCall:
        """The same function, called another way."""
        return FlatCall(call, self.compiled)


class Fewer:
    """The backward of a compiled function where some results got no gradient."""

    def __init__(
        self, whole: Compiled, compile: Callable, module: GraphModule, joint: GraphModule, absent: tuple[int, ...]
    ):
        self.whole, self.compile, self.absent = whole, compile, absent
        self.backward_module, self.joint_module = module, joint

    @cached_property
    def backward(self) -> Callable:
        return self.compile(self.backward_module)

    def operators(self, differentiable: bool) -> Callable:
        return _operators(self.whole.again if differentiable else None, self.whole.joint, self.anyhow, self.absent)

    @cached_property
    def anyhow(self) -> GraphModule:
        return laid_anyhow(self.joint_module)

    @cached_property
    def differentiate(self) -> Callable | None:
        differentiable = self.whole.differentiable
        return None if differentiable is None else differentiable(self.joint_module, self.absent)


def _operators(again: Again | None, joint: Joint, module: GraphModule, absent: tuple[int, ...] = ()) -> Callable:
    if again is not None:
        return differentiable_gradients(again, joint, module, absent)
    return lambda *args: module(*args)[joint.results :]


def _is_settled(fact: Input) -> bool:
    """Whether writing an input is giving it a new value, and nothing more."""
    return not fact.visible and fact.geometry is None and fact.row is None and fact.nbytes is None


def _is_plain_pair(target: Tensor, source: Tensor) -> bool:
    """Whether writing one tensor to the other is copying an array: dense tensors of one dtype and shape."""
    if target._keys != source._keys or target._keys & ~CUDA or target.dtype is not source.dtype:
        return False
    a, b = target._array, source._array
    if a.shape != b.shape or not a.flags.c_contiguous:
        return False
    return a.flags.writeable if not target._keys else b.flags.c_contiguous and target.device is source.device


def reshape(target: Tensor, fact: Input) -> None:
    """Give an input the shape that the function gives it; the memory grows first where it must."""
    assert fact.geometry is not None, "the function leaves the shape of this input as it is"
    shape, stride, moved = fact.geometry
    offset = target._offset + moved
    if not target._keys and span_bytes(shape, stride, offset, target.dtype.itemsize) > storage_of(target).length:
        with modes.masked(modes.GRAD):
            target.resize_(shape)
    with modes.masked(0 if fact.recorded else modes.GRAD):
        target.as_strided_(shape, stride, offset)


def output(fact: Output, args: list, results: list, outs: list, several: dict):
    """One output of the function. `several`: see `made_again`."""
    kind = fact.kind
    if kind in ("fresh", "number"):
        result = results[fact.index]
        if fact.is_leaf and fact.requires_grad:  # a view, made where recording was off, of what requires grad
            result._autograd = Autograd(True)
        return result
    if kind == "input":
        return args[fact.index]
    if kind == "same":
        return outs[fact.index]
    if kind == "constant":
        return fact.value
    source = args[fact.index] if kind in ("input view", "moved view") else results[fact.index]
    before = ambient.mode
    try:
        result = made_again(source, fact.calls, fact.requires_grad, several)
    finally:
        ambient.restore(before)
    if fact.requires_grad and not requires_grad(source):  # it is the view that was let require grad
        set_requires_grad(result, True)
    return result.detach() if not fact.requires_grad and requires_grad(result) else result


def refuse_writes(n: int, out: Tensor, args: list) -> None:
    """Let no write go through a result that has a history of its own on the memory of an argument: the argument's would not know."""
    shared = (a for a in args if isinstance(a, Tensor) and a._memory is not None and a._memory is out._memory)
    source = next(shared, None)
    if source is not None and requires_grad(out):
        base = source if source._view_info is None else source._view_info.base
        out._view_info = View(base, None, alias, (), out._counter[0], OWN_HISTORY.format(n))


def made_again(source: Tensor, calls: tuple, wanted: bool, several: dict) -> Tensor:
    """A view made again, by the calls that made it in the function, each seen by autograd if it was seen there.

    Where gradients of the result are wanted, a view that was made with recording off is a leaf of them. A call that gives
    many views is made once for all that are not given out yet (`several`).
    """
    mode = ambient.mode
    recording = wanted or not requires_grad(source)
    for op, args, index, recorded in calls:
        ambient.restore(mode if recording and recorded else mode & ~modes.GRAD)
        if op is as_strided:  # its offset is counted from where the source begins
            args = (*args[:2], args[2] + source._offset)
        source = dispatch(op, (source, *args)) if index is None else one_of(source, op, args, index, several)
        if wanted and not recorded and not requires_grad(source):
            source._autograd = Autograd(True)
    return source


def one_of(source: Tensor, op: Operator, args: tuple, index: int, several: dict) -> Tensor:
    """Result number `index` of a call that gives many: each is given out once, as an object of its own."""
    key = (id(source), op, args, ambient.mode)
    result = several.get(key)
    if result is None or result[1][index] is None:
        result = several[key] = (source, list(dispatch(op, (source, *args))))  # the source stays alive, and so its id
    out, result[1][index] = result[1][index], None
    return out
