"""`make_fx`: call a function once and keep the graph of all operators it called, below autograd.

In: a function and example arguments (tensors, numbers, any pytree). Out: a `GraphModule` that takes the same arguments.
`tracing_mode`: "real" runs on the data given; "fake" on fakes of it; "symbolic" on fakes whose sizes are symbols, so
that the graph serves other sizes too.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from ...core import modes, tree
from ...core.modes import ambient
from ...core.tensor import Tensor
from ...graph import GraphModule
from ...graph.tree_codegen import _PyTreeCodeGen, _PyTreeInfo
from ..fake.mode import FakeTensorMode, fake_mode_of
from ..front.config import ahead as config
from .graph_trace import GraphTrace
from .origins import Origins
from .program import ProgramTrace

MODES = ("real", "fake", "symbolic")


def make_fx(
    f: Callable,
    decomposition_table: dict | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False,
    _disable_torch_fn_metadata_mode: bool = False,
    **options,
) -> Callable[..., GraphModule]:
    """A function that, called with example arguments, returns the graph of `f` on them. With `record_module_stack`, where `f` has
    the module that it runs as `_orig_mod`, nodes know in which submodules, and by which functions, they were made."""
    if tracing_mode not in MODES:
        raise ValueError(f"make_fx: tracing_mode must be one of {', '.join(map(repr, MODES))}, got {tracing_mode!r}")

    @functools.wraps(f)
    def traced(*args) -> GraphModule:
        along = config.fake_tensor_propagate_real_tensors or not _error_on_data_dependent_ops
        result = Tracing(f, args, decomposition_table or {}, tracing_mode, pre_dispatch, _allow_non_fake_inputs, along)
        result.trace.refuses_data = _error_on_data_dependent_ops
        root = getattr(f, "_orig_mod", None) if record_module_stack else None
        with nullcontext() if root is None else Origins(root, not _disable_torch_fn_metadata_mode), untraced():
            return result.run()

    return traced


@contextmanager
def untraced() -> Iterator[None]:
    """A block that the traces around it do not see."""
    before = ambient.dispatch_modes
    ambient.dispatch_modes = [m for m in before if not isinstance(m, GraphTrace)]
    try:
        with modes.masked(modes.DISPATCH if not ambient.dispatch_modes else 0):
            yield
    finally:
        ambient.dispatch_modes = before


def get_isolated_graphmodule(
    func: Callable, args: tuple, kwargs: dict, tracing_mode: str = "real", decomposition_table: dict | None = None
) -> GraphModule:
    """The graph of a call, of the list of its leaves; traces that are running do not see that it is made."""
    leaves, spec = tree.tree_flatten((args, kwargs))

    def flat(values):
        given, named = tree.tree_unflatten(list(values), spec)
        return func(*given, **named)

    with untraced():
        return make_fx(flat, decomposition_table, tracing_mode)(leaves)


class Tracing:
    """One call of a function made by `make_fx`."""

    def __init__(
        self, f, args: tuple, decompositions: dict, mode: str, pre_dispatch: bool, allow_real: bool, along: bool = False
    ):
        self.f, self.args, self.mode = f, args, mode
        self.flat, self.spec = tree.tree_flatten(args)
        self.sources: list[str] = []
        self.fake_mode = self._fake_mode(allow_real)
        if pre_dispatch and self.fake_mode is None:  # above autograd, data plays no part, but where it is to decide
            self.fake_mode = self._made(along, True, static=True)
        if pre_dispatch:
            self.trace: GraphTrace = ProgramTrace(self.fake_mode, closed=True)
        else:
            self.trace = GraphTrace(fake_mode=self.fake_mode, decompositions=by_operator(decompositions))

    def _fake_mode(self, allow_real: bool) -> FakeTensorMode | None:
        if self.mode == "real":
            return None
        given = fake_mode_of(self.flat)
        if given is not None:
            return given
        return self._made(config.fake_tensor_propagate_real_tensors, allow_real, static=self.mode == "fake")

    @staticmethod
    def _made(along: bool, allow_real: bool, static: bool) -> FakeTensorMode:
        """A fake mode, of fakes that carry the real tensors (`along`) or not; of sizes that are symbols, unless `static`."""
        if along:
            from ..fake.real import AnsweringEnv, RealTensorMode

            return RealTensorMode(allow_non_fake_inputs=allow_real, shape_env=AnsweringEnv(), static_shapes=static)
        if static:
            return FakeTensorMode(allow_non_fake_inputs=allow_real)
        from ..shapes import ShapeEnv

        return FakeTensorMode(allow_non_fake_inputs=allow_real, shape_env=ShapeEnv(), static_shapes=False)

    def run(self) -> GraphModule:
        trace = self.trace
        inputs = [
            self._input(value, name) for value, name in zip(self.flat, input_names(self.f, self.args), strict=True)
        ]
        f, args = self.f, tree.tree_unflatten(inputs, self.spec)
        with self.fake_mode or nullcontext(), trace:
            out = f(*args)
        leaves, out_spec = tree.tree_flatten(out)
        if isinstance(trace, ProgramTrace):
            trace.finish_grad_mode(ambient.mode & modes.GRAD)
        results = [trace.argument(v) for v in leaves]
        nested = any(isinstance(a, (tuple, list, dict)) for a in self.args)
        trace.graph.output(results if nested else tree.tree_unflatten(results, out_spec))
        if nested:
            in_spec = tree.tree_flatten((self.args, {}))[1]
            info = _PyTreeInfo(parameter_names(f, len(self.args)), in_spec, out_spec)
            trace.graph.set_codegen(_PyTreeCodeGen(info))
        return finish(trace, getattr(f, "__name__", None) or type(f).__name__)

    def _input(self, value, name: str):
        trace = self.trace
        node = trace.graph.placeholder(name)
        source = f"input{len(self.sources)}"  # symbols are named after it
        if isinstance(value, (Tensor, int)):
            self.sources.append(source)
        if isinstance(value, Tensor):
            if self.fake_mode is not None:
                value = self.fake_mode.from_tensor(value, source=source)
            else:
                value = value.shallow(value._autograd) if value._autograd is not None else value.shallow()
                value._view_info = None
        elif self.mode == "symbolic" and type(value) is int and self.fake_mode is not None:
            value = self.fake_mode.shape_env.create_symint(value, source=source)
        trace.track(value, node)
        return value


def finish(trace: GraphTrace, name: str) -> GraphModule:
    """The module of a trace that has its output: dead code dropped, constants as attributes."""
    trace.graph.eliminate_dead_code()
    root: dict[str, Any] = dict(trace.constants)
    result = GraphModule(root, trace.graph, class_name=name if name.isidentifier() else "GraphModule")
    result.shape_env = trace.fake_mode.shape_env if trace.fake_mode is not None else None
    return result


def input_names(f, args: tuple) -> list[str]:
    """Names for the graph's inputs: the function's parameters, `_1` appended; parts of nested ones are numbered on."""
    names: list[str] = []
    known = parameter_names(f, len(args))
    for name, arg in zip(known, args, strict=True):
        names += [f"{name}_{i + 1}" for i in range(len(tree.tree_leaves(arg)))]
    return names


def parameter_names(f, count: int) -> list[str]:
    """The names of the first `count` positional parameters; those of `*args` are numbered."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [plain[i] if i < len(plain) else f"arg{i}" for i in range(count)]


def by_operator(table: dict) -> dict:
    """A decomposition table keyed by overloads; a packet stands for all of its overloads."""
    out = {}
    for key, rule in table.items():
        if hasattr(key, "overloads"):
            for overload in key._overloads().values():
                out[overload] = rule
        else:
            out[key] = rule
    return out
