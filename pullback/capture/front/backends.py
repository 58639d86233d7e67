"""What compiles captured graphs, by name: `backend(module, example_inputs) -> callable`."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ...core.layers import above
from ...core.logs import logger
from ...core.tensor import Tensor
from ...ops.network.recurrent import whole_layers
from .config import native
from .layouts import turned

BACKENDS: dict[str, Callable] = {}
default_backend = "inductor"


def register_backend(compiler_fn: Callable | None = None, name: str | None = None, tags=()):
    """Make a backend known by name; also as a decorator."""

    def register(fn: Callable) -> Callable:
        key = name or fn.__name__
        if key in BACKENDS:
            raise ValueError(f"register_backend: a backend named {key!r} exists already")
        BACKENDS[key] = fn
        return fn

    return register if compiler_fn is None else register(compiler_fn)


def list_backends(exclude_tags=("debug", "experimental")) -> list[str]:
    """The names of all backends."""
    return sorted(BACKENDS)


def lookup_backend(backend: str | Callable | None) -> Callable:
    """A backend by name; a callable is its own."""
    if backend is None:
        backend = default_backend
    if not isinstance(backend, str):
        if not callable(backend):
            raise TypeError(f"compile: backend must be a name or a callable, got {type(backend).__name__}")
        return backend
    if backend not in BACKENDS:
        raise ValueError(
            f"Invalid backend: {backend!r}: it must be one of {', '.join(map(repr, list_backends()))}, or a callable"
        )
    return BACKENDS[backend]


@register_backend
def eager(module, example_inputs, **options) -> Callable:
    """Run the captured graph as it is."""
    return module


@register_backend
def aot_eager(module, example_inputs, **options) -> Callable:
    """Trace forward and backward ahead of time, and run both graphs operator by operator."""
    return _ahead_of_time(module, example_inputs, "default_partition")


@register_backend
def aot_eager_decomp_partition(module, example_inputs, **options) -> Callable:
    """As `aot_eager`, with the partition that recomputes cheap values in the backward."""
    return _ahead_of_time(module, example_inputs, "min_cut_rematerialization_partition")


@register_backend
def inductor(module, example_inputs, options: dict | None = None) -> Callable:
    """Native code: both graphs as fused loops, each called once (see `codegen`). `options`: settings of `native` for this
    graph."""
    with native.patch(options or {}):
        if native.triton.cudagraphs and (reason := why_no_cuda_graph(module, example_inputs)):
            skip_cuda_graph(reason)
        if native.layout_optimization and native.cuda.native:
            turned(module)
    compiler = functools.partial(native_code, options=options or {})
    with whole_layers:
        return _ahead_of_time(module, example_inputs, "min_cut_rematerialization_partition", compiler)


def lowered_only(module, example_inputs, **options) -> Callable:
    """As `inductor` up to the loops, without their code: the graphs run operator by operator, and listeners learn what
    would have to."""
    with whole_layers:
        return _ahead_of_time(
            module, example_inputs, "min_cut_rematerialization_partition", lambda m, inputs: _without_code(m)
        )


def _without_code(module) -> Callable:
    from ..higher_order.rng import without_states

    return above.lower_native(without_states(module))


def why_no_cuda_graph(module, example_inputs) -> str | None:
    """Why a graph for which a CUDA graph was asked runs without; None where one is made when calls come again."""
    if not native.cuda.native or not native.cuda.graphs:
        return "torch._inductor.config.cuda has them turned off"
    values = (*example_inputs, *[n.meta.get("val") for n in module.graph.nodes])
    kinds = {t.device.type for t in values if isinstance(t, Tensor)}
    if "cuda" not in kinds:
        return "nothing of it is on a CUDA device"
    return "some of it is on the CPU" if "cpu" in kinds else None


def skip_cuda_graph(reason: str) -> None:
    """Say and count that a graph for which a CUDA graph was asked runs without."""
    from .compile import counters

    counters["inductor"]["cudagraph_skips"] += 1
    logger("perf_hints").info("skipping cudagraphs: %s", reason)


def native_code(module, inputs, options: dict) -> Callable:
    """A graph, after the user's passes, as native code: by the layer above, which is loaded when a graph first asks for it."""
    from ..higher_order.rng import without_states

    with native.patch(options):
        module = with_custom_passes(module, inputs)
        return above.compile_native(without_states(module))


def with_custom_passes(module, inputs):
    """A graph after the user's passes."""
    for custom in (native.post_grad_custom_pre_pass, native.post_grad_custom_post_pass):
        if custom is not None:
            custom(module.graph)
            module.recompile()
    return module


def unchanged(module, inputs):
    return module


def _ahead_of_time(module, example_inputs, partition: str, compiler: Callable = unchanged) -> Callable:
    """By the layer above, which owns ahead-of-time autograd and is loaded when a graph first asks for it."""
    return above.compile_ahead(module, example_inputs, compiler, partition)
