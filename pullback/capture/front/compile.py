"""`compile`: run a function as graphs that a backend compiled.

A Python function is interpreted once, on fakes, and what it calls on tensors is captured (`bytecode/`); the backend gets
the graph and gives a callable; later calls for which the graph's conditions hold run that. A call that fits no earlier
graph makes another. Where something cannot be captured (control flow that looks at data, printing), the graph ends, Python
executes that one step, and the next graph goes on from there; with `fullgraph=True` it is an error.
"""

from __future__ import annotations

import collections
import functools
import inspect
import types
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.events import publish, stage
from ...core.layers import above
from ...core.logs import artifacts
from ...core.logs import logger as log
from ...core.modes import ambient
from ...graph import GraphModule
from ...nn.module import Module
from ..bytecode.calls import is_ours, module_of
from ..bytecode.direct import AS_IT_IS, forward_of
from ..bytecode.driver import Driver, Opening
from ..bytecode.outside import is_compiled
from ..bytecode.segment import MISS, Entry, Wanted
from ..bytecode.signals import BREAKS
from ..fake.mode import DataDependentOutputException, DynamicOutputShapeException
from ..trace.program import Unsupported
from . import guard_manager
from .backends import BACKENDS, lookup_backend
from .boxing import stolen_names
from .config import config
from .dynamic import Sizes
from .explaining import explaining
from .guard_filter import filtered
from .observed import observed
from .optimized_module import OptimizedModule, as_function
from .stance import disabled, state
from .verify import checked


class UserError(Unsupported):
    """A program that asks for what cannot be."""

    @property
    def msg(self) -> str:
        return str(self)


class BackendCompilerFailed(RuntimeError):
    """A backend raised: which, and what (`inner_exception`)."""

    def __init__(self, backend: Callable, error: Exception):
        self.backend_name, self.inner_exception = getattr(backend, "__name__", "?"), error
        super().__init__(f"backend={self.backend_name!r} raised:\n{type(error).__name__}: {error}")


class RecompileError(RuntimeError):
    """A graph was wanted where none may be made."""


# Modes are settings of native code by name. Those that have no effect here say so when a graph is compiled (`Settings`).
MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "lite": {},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True},
}


class GuardFail(NamedTuple):
    """Why the graphs of a function did not fit a call."""

    reason: str
    orig_code: types.CodeType | None


counters: collections.defaultdict[str, collections.Counter] = collections.defaultdict(collections.Counter)


def without_filter(options: dict | None) -> tuple[dict | None, Callable | None]:
    """(the options that a backend gets, what leaves out conditions as the option `guard_filter_fn` says)."""
    keeps = (options or {}).get("guard_filter_fn")
    if options is None or keeps is None:
        return options, None
    rest = {k: v for k, v in options.items() if k != "guard_filter_fn"}
    return rest or None, functools.partial(filtered, keeps=keeps)


class CompiledFunction:
    """A function with its graphs: what is common to both ways of capturing it, and what they may do."""

    def __init__(
        self, fn: Callable, backend: Callable, *, fullgraph: bool = False, dynamic: bool | None = None, options: dict | None = None,
        on_guard_failure: Callable | None = None, sizes: dict | None = None,
    ):  # fmt: skip
        self.fn, self.backend, self.fullgraph, self.dynamic = fn, backend, fullgraph, dynamic
        self.options, self.fewer = without_filter(options)
        self.on_guard_failure = on_guard_failure  # called with a `GuardFail` when a further graph is made
        self.new_sizes = functools.partial(Sizes, dynamic, **sizes or {})
        functools.update_wrapper(self, fn, updated=())
        self.name = getattr(fn, "__qualname__", None) or type(inspect.unwrap(fn)).__name__
        self.is_disabled = getattr(
            fn, "_torchdynamo_disable", False
        )  # it is never captured, only what it differentiates
        self.has_run = False  # whether it was called in a stance in which the first call is not compiled
        self.compile_backward: Callable | None = None  # how backwards inside are compiled, where they are
        self.direct: list[Callable] = []  # short ways to graphs that were run, `direct(args, kwargs)` each; tried first
        self.front: Callable = Segments(fn, self)
        state.functions.add(self)

    def forget(self) -> None:
        """Drop all graphs."""
        self.direct.clear()
        self.front.forget()

    def __call__(self, /, *args, **kwargs):
        for direct in self.direct:
            out = direct(args, kwargs)
            if out is not MISS:
                return out
        if self.compile_backward is None:
            return self.call(args, kwargs)
        with above.backwards_compiled_by(
            self.compile_backward, not config.assume_static_by_default if self.dynamic is None else self.dynamic
        ):
            return self.call(args, kwargs)

    def call(self, args: tuple, kwargs: dict):
        """Run graphs of the function that fit the arguments, or make them."""
        if state.disabled or self.is_disabled or state.stance.name == "force_eager" or ambient.mode & AS_IT_IS:
            if any(getattr(trace.fake_mode, "export", False) for trace in ambient.captures):
                warnings.warn("torch.compile is ignored when called inside torch.export region", stacklevel=3)
            return self.fn(*args, **kwargs)
        if state.stance.name == "eager_then_compile" and not self.has_run:
            self.has_run = True
            return self.fn(*args, **kwargs)
        if config.verify:
            return checked(self.fn, lambda: self.front(args, kwargs), args, kwargs, self.name, disabled())
        return self.front(args, kwargs)

    # ---- what the front ends ask
    def compile(self, graph: GraphModule, examples: list) -> Callable:
        """Hand a graph to the backend."""
        options = {"options": self.options} if self.options else {}
        counters["stats"]["unique_graphs"] += 1
        counters["stats"]["calls_captured"] += sum(n.op.startswith("call_") for n in graph.graph.nodes)
        publish("captured", function=self, graph=graph)
        if artifacts["graph_code"]:
            log("graph_code").debug("TRACED GRAPH of %s\n%s", self.name, graph.print_readable(False))
        if artifacts["graph"]:
            log("graph").debug("TRACED GRAPH of %s\n%s", self.name, graph.graph)
        forced = state.stance.backend
        backend = self.backend if forced is None else lookup_backend(forced)
        try:
            with stage("backend"):
                run = backend(graph, examples, **options)
        except (Unsupported, DataDependentOutputException, DynamicOutputShapeException):
            raise
        except Exception as error:
            publish("refused", function=self, error=error)
            if config.suppress_errors:
                warnings.warn(f"compile: {self.name} runs a graph as it is: its backend raised {error!r}", RuntimeWarning, stacklevel=2)  # fmt: skip
                return graph.run
            if backend in BACKENDS.values() or getattr(error, "is_expected", False):  # some are signals to the caller
                raise
            raise BackendCompilerFailed(backend, error) from error
        if not callable(run):
            raise TypeError(f"compile: the backend must return a callable, it returned {type(run).__name__}")
        return run.run if isinstance(run, GraphModule) else run

    def is_whole(self) -> bool:
        """Whether a graph that ends early is an error."""
        return self.fullgraph if BREAKS.error is None else BREAKS.error

    def broke(self, reason: str, where: str | None) -> None:
        """A graph ended before the program did."""
        publish("broke", function=self, reason=reason, where=where)
        if self.is_whole():
            raise Unsupported(f"{reason}{f' ({where})' if where else ''}")
        counters["graph_break"][reason] += 1
        log("graph_breaks").debug("a graph of %s ends%s: %s", self.name, f" at {where}" if where else "", reason)

    def captured(self, entry: Entry, frames: list) -> None:
        """A graph was made, with conditions of its own."""
        if artifacts["guards"]:
            log("guards").debug("GUARDS of %s\n%s", self.name, "\n".join(entry.conditions))
        if artifacts["bytecode"]:
            log("bytecode").debug("what runs a graph of %s\n%s", self.name, entry.text)
        guard_manager.tell(entry, frames)

    def escaped(self, error: Exception) -> None:
        """The program raises on the way: with one whole graph, there is nothing else to be had."""
        if getattr(error, "is_of_capture", False):
            raise error
        found = self._refused(observed(error))
        if self.is_whole():
            raise found

    def uncaptured(self, reason: str) -> None:
        """Nothing can be captured: an error, or a warning once."""
        publish("broke", function=self, reason=reason, where=None)
        if self.is_whole():
            raise Unsupported(reason)
        counters["graph_break"][reason] += 1
        warnings.warn(f"compile: {self.name} runs uncompiled: {reason}", RuntimeWarning, stacklevel=5)

    def _refused(self, error: Exception) -> Exception:
        publish("refused", function=self, error=error)
        return error

    def may_recompile(self, graphs: int, why: str, warn: bool = True) -> bool:
        """Whether another graph may be made; where not, the function runs uncompiled, and says so."""
        if self.on_guard_failure is not None:
            self.on_guard_failure(GuardFail(why, getattr(self.fn, "__code__", None)))
        publish("recompiled", function=self, reason=why)
        log("recompiles").debug("%s is compiled again: %s", self.name, why)
        if state.stance.name == "eager_on_recompile":
            return False
        if state.stance.name == "fail_on_recompile" or config.error_on_recompile:
            raise self._refused(RecompileError(f"compile: {self.name} would be compiled again: {why}"))
        limit = min(config.recompile_limit, config.cache_size_limit)
        if graphs < limit:
            return True
        if config.fail_on_recompile_limit_hit:
            words = f"compile: {self.name} has {limit} graphs, the limit (config.recompile_limit); another would be made because {why}"
            raise self._refused(RecompileError(words))
        if warn:
            warnings.warn(
                f"compile: {self.name} has {limit} graphs, the limit (config.recompile_limit), and runs uncompiled for "
                f"other arguments; the last reason: {why}",
                RuntimeWarning,
                stacklevel=6,
            )
        return False


class Segments:
    """The front end for Python functions: their bytecode, in as many graphs as it takes (`bytecode/`)."""

    def __init__(self, fn: Callable, policy: CompiledFunction):
        self.fn, self.policy = fn, policy
        self.module = fn if isinstance(fn, Module) else None  # with hooks, its whole call is the program
        self._enter()
        self.whole = Driver(type(fn).__call__, policy) if isinstance(fn, Module) else self.driver

    def _enter(self) -> None:
        self.policy.direct.clear()
        self.forward = None if self.module is None else forward_of(self.module)
        self.first, function = entry_function(self.fn)
        wanted = Wanted(stolen_names(self.fn), isinstance(self.fn, GraphModule))
        self.driver = Driver(function, self.policy, wanted, Opening(self.first, self.module))

    def __call__(self, args: tuple, kwargs: dict):
        module = self.module
        if module is not None:
            if module._is_hooked():
                return self.whole((module, *args), kwargs)
            if forward_of(module) is not self.forward:  # it was given another
                self._enter()
        return self.driver((*self.first, *args), kwargs)

    def forget(self) -> None:
        self.driver.segments.clear()
        self.whole.segments.clear()

    def entries(self) -> list[Entry]:
        """The graphs, with what they depend on, in the order in which they are tried."""
        segments = [
            *self.driver.segments.values(),
            *(self.whole.segments.values() if self.whole is not self.driver else ()),
        ]
        return [entry for segment in segments for entry in segment.entries]

    def conditions(self) -> list[str]:
        """What the graphs depend on, in words."""
        return [line for entry in self.entries() for line in entry.conditions]


def entry_function(fn: Callable) -> tuple[tuple, types.FunctionType]:
    """(first arguments, Python function): what calling `fn` comes down to."""
    fn = fn.forward if isinstance(fn, Module) else fn
    is_module = isinstance(getattr(fn, "__self__", None), Module)
    first, function = ((fn.__self__,), fn.__func__) if isinstance(fn, types.MethodType) else ((), fn)
    if is_compiled(function):  # before: what it is made of is
        inner, function = entry_function(function._torchdynamo_orig_callable)
        return (*inner, *first), function
    if isinstance(function, types.FunctionType) and (is_module or not is_ours(module_of(function))):
        return first, function

    def call(*args, **kwargs):
        return fn(*args, **kwargs)

    return (), call


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
    explain: bool = False,
) -> Callable:
    """Compile a function or module: it gives the same results, through graphs that `backend` compiled.

    With `explain`, what comes back has a method of that name: `compiled.explain("report.html")` says what became of the program.

    >>> @torch.compile
    ... def f(x):
    ...     return (x.sin() ** 2).sum()
    >>> f(torch.tensor([0.0, 1.0]))
    tensor(0.7081)
    """
    if explain:
        how = dict(fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable)
        if model is None:
            return functools.partial(compile, **how, guard_fail_fn=guard_fail_fn, explain=True)  # type: ignore[arg-type]
        return explaining(compile(model, **how, guard_fail_fn=guard_fail_fn))  # type: ignore[arg-type]
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
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
    if mode is not None and chosen is BACKENDS["inductor"]:
        options = MODES[mode]

    def make(fn, **sizes) -> CompiledFunction:
        result = CompiledFunction(
            fn,
            chosen,
            fullgraph=fullgraph,
            dynamic=dynamic,
            options=options,
            on_guard_failure=guard_fail_fn,
            sizes=sizes,
        )
        if config.compiled_autograd and not sizes:
            how = {
                "fullgraph": fullgraph,
                "dynamic": dynamic,
                "options": options,
                **config.compiled_autograd_kwargs_override,
            }
            result.compile_backward = functools.partial(compile, backend=backend, **how)
        return result

    if hasattr(model, "compile_with"):  # a graph that says itself what of it can be compiled
        return model.compile_with(make, fullgraph)
    if isinstance(model, Module):
        how = dict(fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=None if mode else options)
        return OptimizedModule(model, make, functools.partial(compile, **how))  # type: ignore[arg-type]
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


def optimize_assert(backend: str | Callable = "inductor", *, dynamic: bool | None = None, **options):
    """`optimize` of one whole graph."""
    return optimize(backend, nopython=True, dynamic=dynamic)
