"""`compile`: run a function as graphs that a backend compiled.

The function is called once, on fakes of its arguments, and what it calls is captured (`program.py`); the backend gets
the graph and gives a callable; later calls whose arguments and surroundings fit the guards run that. Each set of
arguments that fits no earlier graph makes another. Where a program cannot be captured whole (its control flow looks at
data, say), it runs as it is, and a warning says so once; with `fullgraph=True` it is an error.
"""

from __future__ import annotations

import collections
import functools
import warnings
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from ..core import modes, tree
from ..core.modes import ambient
from ..core.tensor import FAKE, Tensor
from ..graph import GraphModule
from ..nn.module import Module
from .backends import lookup_backend
from .config import config
from .dynamic import Sizes
from .fake import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)
from .guards import Guards, Surroundings, source_names
from .program import ProgramTrace, Unsupported
from .shapes.errors import GuardOnDataDependentSymNode


class UserError(Unsupported):
    """A program that asks for what cannot be."""


class BackendCompilerFailed(RuntimeError):
    """A backend raised."""


class RecompileError(RuntimeError):
    """A graph was wanted where none may be made."""


STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")


class State:
    """What is shared by all compiled functions."""

    def __init__(self) -> None:
        self.functions: weakref.WeakSet[CompiledFunction] = weakref.WeakSet()
        self.disabled = 0
        self.stance = "default"


state = State()
counters: collections.defaultdict[str, collections.Counter] = collections.defaultdict(collections.Counter)


class disabled:
    """Compiled functions run uncompiled inside."""

    def __enter__(self) -> None:
        state.disabled += 1

    def __exit__(self, *exc) -> None:
        state.disabled -= 1


class Entry:
    """One compiled graph: when it may be used, and how."""

    grad_mode_after: int | None = None  # how the program leaves recording, where not as it found it

    def __init__(
        self, guards: Guards, run: Callable, places: list[int], lifted: list, outputs, spec, graph: GraphModule
    ):
        self.guards, self.run, self.graph = guards, run, graph
        self.places, self.lifted = places, lifted  # the inputs: arguments by their places, then tensors from outside
        self.outputs, self.spec = outputs, spec

    def __call__(self, flat: list):
        made = self.run(*[flat[i] for i in self.places], *self.lifted)
        if self.grad_mode_after is not None:
            ambient.switch(modes.GRAD, self.grad_mode_after)
        leaves = [made[place] if place is not None else constant for place, constant in self.outputs]
        return tree.tree_unflatten(leaves, self.spec)


class CompiledFunction:
    """A function with its graphs."""

    def __init__(
        self, fn: Callable, backend: Callable, *, fullgraph: bool = False, dynamic: bool | None = None, options: dict | None = None,
        on_guard_failure: Callable | None = None,
    ):  # fmt: skip
        self.fn, self.backend, self.fullgraph, self.dynamic, self.options = fn, backend, fullgraph, dynamic, options
        self.on_guard_failure = on_guard_failure  # called with (reason, function) when a further graph is made
        self.surroundings = Surroundings(fn)
        self.sizes = Sizes(dynamic)
        self.entries: list[Entry] = []
        self.uncapturable: dict[tuple, str] = {}  # kinds of arguments that cannot be captured, and why
        functools.update_wrapper(self, fn, updated=())
        state.functions.add(self)

    def forget(self) -> None:
        """Drop all graphs."""
        self.entries.clear()
        self.uncapturable.clear()
        self.sizes = Sizes(self.dynamic)

    def __call__(self, *args, **kwargs):
        if (
            state.disabled
            or state.stance == "force_eager"
            or ambient.mode & (modes.TRANSFORM | modes.FUNCTION | modes.DISPATCH | modes.CAPTURE | modes.FORWARD)
        ):
            return self.fn(*args, **kwargs)
        flat, spec = tree.tree_flatten((args, kwargs))
        around = self.surroundings.now()
        for entry in self.entries:
            if entry.guards.hold(flat, spec, around):
                return entry(flat)
        return self._first_call(flat, spec, around, args, kwargs)

    def _first_call(self, flat: list, spec, around: tuple, args: tuple, kwargs: dict):
        guards = Guards(flat, spec, around, source_names(self.fn, args, kwargs))
        if guards.key in self.uncapturable:
            return self.fn(*args, **kwargs)
        counters["frames"]["total"] += 1
        if self.entries and not self._may_recompile(flat, spec, around):
            return self.fn(*args, **kwargs)
        try:
            entry = self._capture(flat, spec, guards)
        except Unsupported as error:
            if self.fullgraph:
                raise
            self.uncapturable[guards.key] = str(error)
            counters["graph_break"][str(error)] += 1
            warnings.warn(
                f"compile: {getattr(self.fn, '__qualname__', self.fn)} runs uncompiled: {error}",
                RuntimeWarning,
                stacklevel=4,
            )
            return self.fn(*args, **kwargs)
        self.entries.append(entry)
        return entry(flat)

    def _may_recompile(self, flat: list, spec, around: tuple) -> bool:
        """Whether another graph may be made; where not, the function runs uncompiled, and says so."""
        why = self.entries[-1].guards.why_not(flat, spec, around)
        if self.on_guard_failure is not None:
            self.on_guard_failure((why, self.fn))
        if state.stance == "eager_on_recompile":
            return False
        if state.stance == "fail_on_recompile" or config.error_on_recompile:
            raise RecompileError(f"compile: {self.__qualname__} would be compiled again: {why}")
        limit = min(config.recompile_limit, config.cache_size_limit)
        if len(self.entries) < limit:
            return True
        if config.fail_on_recompile_limit_hit:
            raise RecompileError(
                f"compile: {self.__qualname__} has {limit} graphs, the limit (config.recompile_limit); another would be made because {why}"
            )
        warnings.warn(
            f"compile: {self.__qualname__} has {limit} graphs, the limit (config.recompile_limit), and runs uncompiled for other "
            f"arguments; the last reason: {why}",
            RuntimeWarning, stacklevel=5,
        )  # fmt: skip
        return False

    def _capture(self, flat: list, spec, guards: Guards) -> Entry:
        contexts = self.sizes.contexts(flat)
        fake_mode = self._fake_mode(contexts)
        trace = ProgramTrace(fake_mode)
        at_start = ambient.mode & modes.GRAD
        fakes: dict[int, Tensor] = {}  # id of an argument -> what stands for it, once for each tensor
        places = []
        for i, a in enumerate(flat):
            if isinstance(a, Tensor) and id(a) not in fakes:
                fakes[id(a)] = trace.input(a, f"arg{i}", guards.names[i], contexts.get(i))
                places.append(i)
        given = [fakes[id(a)] if isinstance(a, Tensor) else a for a in flat]
        examples = trace.examples
        out = self._call_on_fakes(trace, fake_mode, *tree.tree_unflatten(given, spec))
        left = ambient.mode & modes.GRAD  # a program may leave recording switched
        ambient.switch(modes.GRAD, at_start)
        leaves, out_spec = tree.tree_flatten(out)
        trace.finish_grad_mode(at_start)
        results, outputs = [], []
        for leaf in leaves:
            if isinstance(leaf, Tensor) or getattr(leaf, "is_symbolic", False):
                outputs.append((len(results), None))
                results.append(trace.outside(leaf))
            else:
                outputs.append((None, leaf))
        trace.graph.output(tuple(results))
        trace.graph.eliminate_dead_code()
        module = GraphModule(dict(trace.constants), trace.graph)
        counters["stats"]["unique_graphs"] += 1
        run = self._compile(module, examples)
        if not callable(run):
            raise TypeError(f"compile: the backend must return a callable, it returned {type(run).__name__}")
        if fake_mode.shape_env is not None:
            guards.relax(contexts, dict(zip(places, examples, strict=False)), fake_mode.shape_env)
        entry = Entry(guards, run, places, trace.lifted_tensors, outputs, out_spec, module)
        entry.grad_mode_after = None if left == at_start else left
        return entry

    def _fake_mode(self, contexts: dict) -> FakeTensorMode:
        """Fakes with symbolic sizes where some are wanted, or where numbers that depend on data may be symbols."""
        if not (contexts or config.capture_scalar_outputs or config.capture_dynamic_output_shape_ops):
            return FakeTensorMode(allow_non_fake_inputs=True)
        from .shapes import ShapeEnv

        env = ShapeEnv(
            allow_scalar_outputs=config.capture_scalar_outputs,
            allow_dynamic_output_shape_ops=config.capture_dynamic_output_shape_ops,
        )
        return FakeTensorMode(allow_non_fake_inputs=True, shape_env=env, static_shapes=False)

    def _compile(self, module: GraphModule, examples: list) -> Callable:
        """Hand a graph to the backend."""
        options = {"options": self.options} if self.options else {}
        try:
            return self.backend(module, examples, **options)
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise Unsupported(f"its gradient depends on the data of a tensor ({error})") from error

    def _call_on_fakes(self, trace: ProgramTrace, fake_mode: FakeTensorMode, args: tuple, kwargs: dict):
        """Call the function inside the trace; what shows that it cannot be captured becomes `Unsupported`."""
        before = self.surroundings.attributes()
        try:
            with fake_mode, trace:
                out = self.fn(*args, **kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise Unsupported(f"it depends on the data of a tensor ({error})") from error
        except (UnsupportedFakeTensorException, GuardOnDataDependentSymNode) as error:
            raise Unsupported(str(error)) from error
        finally:
            changed = self.surroundings.restore(before)
        if changed:
            raise Unsupported(f"it changes Python state: {changed}")
        return out


class OptimizedModule(Module):
    """A module whose calls are compiled. Everything else is the module's own."""

    def __init__(self, mod: Module, make: Callable[[Callable], CompiledFunction]):
        super().__init__()
        self._modules["_orig_mod"] = mod
        self.__dict__["compiled_call"] = make(mod)

    def __call__(self, *args, **kwargs):
        return self.compiled_call(*args, **kwargs)

    forward = __call__

    def __getitem__(self, key):
        return self._modules["_orig_mod"][key]

    def __len__(self) -> int:
        return len(self._modules["_orig_mod"])

    def __iter__(self):
        return iter(self._modules["_orig_mod"])

    def __getattr__(self, name: str):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._modules["_orig_mod"], name)

    def __setattr__(self, name: str, value) -> None:
        if (
            name in ("_orig_mod", "_modules", "_parameters", "_buffers")
            or name not in self.__dict__.get("_modules", {})
            and not hasattr(self, "_modules")
        ):
            super().__setattr__(name, value)
        elif name == "training":
            object.__setattr__(self, name, value)
            if "_orig_mod" in self._modules:
                self._modules["_orig_mod"].training = value
        else:
            setattr(self._modules["_orig_mod"], name, value)


def compile(
    model: Callable | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    guard_fail_fn: Callable | None = None,
) -> Callable:
    """Compile a function or module: it gives the same results, through graphs that `backend` compiled."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable,
            guard_fail_fn=guard_fail_fn,
        )  # fmt: skip
    if not callable(model):
        raise RuntimeError(f"compile: expected a function or a module, got {type(model).__name__}")
    if disable:
        return model
    chosen = lookup_backend(backend)

    def make(fn) -> CompiledFunction:
        return CompiledFunction(
            fn, chosen, fullgraph=fullgraph, dynamic=dynamic, options=options, on_guard_failure=guard_fail_fn
        )

    if isinstance(model, Module):
        return OptimizedModule(model, make)
    return as_function(model, make(model))


def optimize(
    backend: str | Callable = "inductor",
    *,
    nopython: bool = False,
    dynamic: bool | None = None,
    guard_fail_fn: Callable | None = None,
    **options,
):
    """`compile` by its older form: `optimize(backend)(fn)`."""
    return functools.partial(compile, backend=backend, fullgraph=nopython, dynamic=dynamic, guard_fail_fn=guard_fail_fn)


def export(f: Callable, *, aten_graph: bool = False, **options) -> Callable:
    """`export(f)(*args)`: (graph, guards) of one call: the graph takes the arguments of `f` and holds its parameters."""

    def run(*args, **kwargs):
        made = CompiledFunction(f, lookup_backend("eager"), fullgraph=True)
        flat, spec = tree.tree_flatten((args, kwargs))
        entry = made._capture(flat, spec, Guards(flat, spec, made.surroundings.now(), source_names(f, args, kwargs)))
        return ExportResult(standalone(entry), entry.guards)

    return run


class ExportResult(NamedTuple):
    """What `export` gives."""

    graph_module: GraphModule
    guards: Guards


def standalone(entry: Entry) -> GraphModule:
    """A captured graph with the tensors it reached as attributes, and outputs in the program's structure."""
    module = entry.graph
    graph = module.graph
    for t, node in zip(
        reversed(entry.lifted), reversed([n for n in graph.nodes if n.op == "placeholder"]), strict=False
    ):
        name = node.name
        setattr(module, name, t)
        with graph.inserting_before(node):
            read = graph.get_attr(name)
        read.meta = node.meta
        node.replace_all_uses_with(read)
        graph.erase_node(node)
    out = graph.output_node()
    leaves = [out.args[0][place] if place is not None else constant for place, constant in entry.outputs]
    out.args = (tree.tree_unflatten(leaves, entry.spec),)
    module.recompile()
    return module


def as_function(fn: Callable, compiled: CompiledFunction) -> Callable:
    """A plain function (so that it binds as a method) around the compiled one."""

    @functools.wraps(fn)
    def call(*args, **kwargs):
        return compiled(*args, **kwargs)

    call._torchdynamo_orig_callable = fn
    call.compiled = compiled
    return call


__all__ = ["FAKE", "compile"]
