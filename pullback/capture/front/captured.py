"""One program, captured: the graph a backend compiled of it, and when it may be used.

`Capture.run` calls a function on fakes of its arguments inside a `ProgramTrace` and hands the graph to the backend; a
`Captured` runs the result on real arguments and gives outputs in the program's structure. Nothing of the function's
surroundings is changed by capturing it: what it assigns to modules is undone, and refused.
"""

from __future__ import annotations

import types
from collections.abc import Callable

from ...core import modes, tree
from ...core.modes import ambient
from ...core.tensor import FAKE, NoData, Tensor
from ...graph import GraphModule
from ...ops.system.operator import NoShapeRule
from ..fake.mode import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
from ..shapes.errors import GuardOnDataDependentSymNode
from ..trace.program import ProgramTrace, Unsupported
from ..trace.subclasses import in_class
from .boxing import boxed, stolen_lists
from .config import config
from .dynamic import Sizes
from .guards import DEPTH, LEAVES, SIMPLE, Guards, source_names
from .surroundings import Lifted, Surroundings

NO_FAKES = (UnsupportedFakeTensorException, UnsupportedOperatorException, NoShapeRule)  # layouts and operators without


class Captured:
    """A compiled graph with its conditions. Called with the flat arguments of the function."""

    def __init__(self, guards: Guards, surroundings: Surroundings, around: tuple, lifted: Lifted, graph: GraphModule):
        self.guards, self.surroundings, self.around, self.lifted = guards, surroundings, around, lifted
        self.graph = graph
        self.run: Callable = graph
        self.places: list[int] = []  # the arguments that are inputs of the graph; lifted tensors follow them
        self.outputs: list[tuple] = []  # (place among the graph's results, class) or (None, constant)
        self.spec = None
        self.grad_mode_after: int | None = None  # how the program leaves recording, where not as it found it
        self.stolen = 0  # how many of the first inputs are given in a list that the graph empties

    def hold(self, flat: list, spec) -> bool:
        """Whether the graph is one of this call."""
        return self.guards.hold(flat, spec) and self.surroundings.now() == self.around and self.lifted.hold()

    def why_not(self, flat: list, spec) -> str:
        """Why it is not, in words."""
        if self.surroundings.now() != self.around:
            return self.surroundings.difference(self.around)
        return self.guards.why_not(flat, spec) or self.lifted.why_not() or "nothing changed"

    def __call__(self, flat: list, stolen: list[list] | None = None):
        """The function's results; `stolen`: lists among the arguments that are the graph's to empty, and so is `flat`."""
        before, count = ambient.mode & modes.GRAD, self.stolen
        given = [flat[i] for i in self.places]
        if count:
            given[:count] = (given[:count],)
            for values in (flat, *(stolen or ())):
                values.clear()
        try:
            result = self.run(*given, *self.lifted.tensors)
        except BaseException:
            ambient.switch(modes.GRAD, before)  # the graph may have been inside a no_grad of the program's
            raise
        if self.grad_mode_after is not None:
            ambient.switch(modes.GRAD, self.grad_mode_after)
        leaves = [constant if place is None else as_given(result[place], constant) for place, constant in self.outputs]
        return tree.tree_unflatten(leaves, self.spec)


def as_given(result, cls: type | None):
    """A result of a graph in the class that it has in the program."""
    return result if cls is None or not isinstance(result, Tensor) else in_class(result, cls)


class Capture:
    """One capture of a function."""

    def __init__(self, fn: Callable, compile: Callable, sizes: Sizes, stolen: list[list] | None = None):
        self.fn, self.compile, self.sizes = fn, compile, sizes
        self.stolen = {id(t) for values in stolen or () for t in values}
        self.surroundings = Surroundings(fn)

    def run(self, flat: list, spec, guards: Guards) -> Captured:
        for a in flat:
            if isinstance(a, (types.FunctionType, types.MethodType)):
                self.surroundings.visit(a)
        contexts = self.sizes.contexts(flat)
        self.fake_mode = fake_mode_for(contexts or self.sizes.numbers)
        self.trace = trace = ProgramTrace(self.fake_mode)
        at_start, around = ambient.mode & modes.GRAD, self.surroundings.now()
        try:
            places, given = self._inputs(flat, guards, contexts)
        except UnsupportedFakeTensorException as error:
            raise Unsupported(str(error)) from error
        examples = list(trace.examples)
        out = self._call_on_fakes(*tree.tree_unflatten(given, spec))
        left = ambient.mode & modes.GRAD  # a program may leave recording switched
        ambient.switch(modes.GRAD, at_start)
        trace.finish_grad_mode(at_start)
        outputs, out_spec = self._outputs(out)
        module = GraphModule(dict(trace.constants), trace.graph)
        result = Captured(
            guards, self.surroundings, around, Lifted(trace.lifted_tensors, self.surroundings.modules), module
        )
        result.places, result.outputs, result.spec = places, outputs, out_spec
        result.grad_mode_after = None if left == at_start else left
        compiled = [*trace.examples]
        if self.stolen:
            result.stolen = next((k for k, i in enumerate(places) if id(flat[i]) not in self.stolen), len(places))
            result.graph = module = boxed(module, result.stolen)
            compiled[: result.stolen] = [compiled[: result.stolen]]
        result.run = self._compile(module, compiled)
        if self.fake_mode.shape_env is not None:
            guards.relax(contexts, dict(zip(places, examples, strict=True)), self.fake_mode.shape_env)
        return result

    def _inputs(self, flat: list, guards: Guards, contexts: dict) -> tuple[list[int], list]:
        """(which arguments are inputs, all arguments with fakes for tensors): a tensor given twice is one input."""
        fakes: dict[int, Tensor] = {}
        places, given = [], []
        for i, a in enumerate(flat):
            if isinstance(a, Tensor) and id(a) not in fakes:
                fakes[id(a)] = self.trace.input(a, f"arg{i}", guards.names[i], contexts.get(i))
                places.append(i)
            elif type(a) is int and self.sizes.numbers and self.fake_mode.shape_env is not None:
                a = number(self.fake_mode.shape_env, a, guards.names[i])
                if type(a) is not int:
                    self.trace.input(a, f"arg{i}")
                    places.append(i)
            given.append(fakes[id(a)] if isinstance(a, Tensor) else a)
        return places, given

    def _outputs(self, out) -> tuple[list[tuple], object]:
        """What the function gives: results of the graph, and constants."""
        leaves, spec = tree.tree_flatten(out)
        results, outputs = [], []
        for leaf in leaves:
            if isinstance(leaf, Tensor) or getattr(leaf, "is_symbolic", False):
                cls = type(leaf) if isinstance(leaf, Tensor) and type(leaf) is not Tensor else None
                outputs.append((len(results), cls))
                results.append(self.trace.outside(leaf))
            else:
                refuse_hidden(leaf)
                outputs.append((None, leaf))
        self.trace.graph.output(tuple(results))
        self.trace.graph.eliminate_dead_code()
        return outputs, spec

    def _compile(self, module: GraphModule, examples: list) -> Callable:
        """Hand a graph to the backend."""
        try:
            return self.compile(module, examples)
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise Unsupported(f"its gradient depends on the data of a tensor ({error})") from error
        except NO_FAKES as error:
            raise Unsupported(f"its gradient has no shape rule: {error}") from error

    def _call_on_fakes(self, args: tuple, kwargs: dict):
        """Call the function inside the trace; what shows that it cannot be captured becomes `Unsupported`."""
        before, given = self.surroundings.attributes(), tree.tree_flatten((args, kwargs))
        try:
            with self.fake_mode, self.trace:
                out = self.fn(*args, **kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise Unsupported(f"it depends on the data of a tensor ({error})") from error
        except (*NO_FAKES, GuardOnDataDependentSymNode, NoData) as error:
            raise Unsupported(str(error)) from error
        finally:
            changed = self.surroundings.restore(before)
        changed = changed or self.trace.changed_attribute()
        leaves, spec = tree.tree_flatten((args, kwargs))
        if spec != given[1] or any(a is not b for a, b in zip(leaves, given[0], strict=True)):
            changed = "a container among its arguments"
        if changed:
            raise Unsupported(f"it changes Python state: {changed}")
        return out


class Straight:
    """The front end for functions without Python of their own: one call on fakes gives the whole graph."""

    def __init__(self, fn: Callable, policy):
        self.fn, self.policy = fn, policy
        self.forget()

    def forget(self) -> None:
        """Drop all graphs."""
        self.entries: list[Captured] = []
        self.uncapturable: set[tuple] = set()  # kinds of arguments that cannot be captured
        self.sizes = self.policy.new_sizes()

    def __call__(self, args: tuple, kwargs: dict):
        flat, spec = tree.tree_flatten((args, kwargs))
        stolen = stolen_lists(self.fn, args)
        for entry in self.entries:
            if entry.hold(flat, spec):
                return entry(flat, stolen)
        guards = Guards(flat, spec, source_names(self.fn, args, kwargs))
        if guards.key in self.uncapturable:
            return self.fn(*args, **kwargs)
        if self.entries and not self.policy.may_recompile(len(self.entries), self.entries[-1].why_not(flat, spec)):
            return self.fn(*args, **kwargs)
        try:
            entry = self.capture(flat, spec, guards, stolen)
        except Unsupported as error:
            self.policy.uncaptured(str(error))
            self.uncapturable.add(guards.key)
            return self.fn(*args, **kwargs)
        self.entries.append(entry)
        return entry(flat, stolen)

    def capture(self, flat: list, spec, guards: Guards, stolen: list[list] | None = None) -> Captured:
        """A graph of the function for arguments like these."""
        return Capture(self.fn, self.policy.compile, self.sizes, stolen).run(flat, spec, guards)


def refuse_hidden(value) -> None:
    """Refuse an output that is no tensor, number or container of them, but holds tensors of the trace."""
    if not isinstance(value, SIMPLE) and holds_fakes(value, DEPTH):
        raise Unsupported(
            f"it returns a {type(value).__name__} that holds tensors: return tensors in tuples, lists or dicts"
        )


def holds_fakes(value, depth: int) -> bool:
    if isinstance(value, Tensor):
        return bool(value.keys & FAKE)
    if depth == 0:
        return False
    inner = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, (list, tuple, set))
        else vars(value).values()
        if hasattr(value, "__dict__")
        else ()
    )
    if isinstance(value, types.GeneratorType):
        return True
    return any(holds_fakes(v, depth - 1) for v in list(inner)[:LEAVES])


def number(env, value: int, source: str):
    """An int argument as a symbol; 0 and 1 stay what they are."""
    from ..shapes.contexts import DimDynamic

    return env.create_symintnode(
        env.create_symbol(value, source, DimDynamic.DUCK, positive=None), hint=value, source=source
    )


def fake_mode_for(symbolic) -> FakeTensorMode:
    """Fakes with symbolic sizes where some are wanted, or where numbers that depend on data may be symbols."""
    if not (symbolic or config.capture_scalar_outputs or config.capture_dynamic_output_shape_ops):
        return FakeTensorMode(allow_non_fake_inputs=True)
    from ..shapes import ShapeEnv

    env = ShapeEnv(
        allow_scalar_outputs=config.capture_scalar_outputs,
        allow_dynamic_output_shape_ops=config.capture_dynamic_output_shape_ops,
    )
    return FakeTensorMode(allow_non_fake_inputs=True, shape_env=env, static_shapes=False)
