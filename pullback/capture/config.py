"""Settings of `compile`."""

from __future__ import annotations

from ..core.settings import Settings

config = Settings(
    "capture",
    recompile_limit=8,  # graphs per function; a further one runs uncompiled, with a warning
    cache_size_limit=8,  # the older name of the same
    fail_on_recompile_limit_hit=False,
    automatic_dynamic_shapes=True,
    assume_static_by_default=True,
    dynamic_shapes=True,
    specialize_int=True,
    specialize_float=True,
    capture_scalar_outputs=False,
    capture_dynamic_output_shape_ops=False,
    suppress_errors=False,
    verbose=False,
    error_on_recompile=False,
    guard_nn_modules=True,
    inline_inbuilt_nn_modules=True,
    compiled_autograd=False,
    record_runtime_overhead=True,
    compiled_autograd_kwargs_override={},
    optimize_ddp=False,
    allow_rnn=True,
    enable_trace_contextlib=True,
    trace_numpy=True,
    test_subclass_skip_fake_tensor=False,
    force_parameter_static_shapes=True,
    force_nn_module_property_static_shapes=True,
    raise_on_ctx_manager_usage=True,
    enable_cpp_guard_manager=True,
)

native = Settings(
    "native",
    fallback_random=False,
    fx_graph_cache=False,
    triton_unique_kernel_names=True,
    cpp_wrapper=False,
    freezing=False,
    max_autotune=False,
    compile_threads=1,
    # functions of a graph, called before and after a forward or backward graph is compiled
    post_grad_custom_pre_pass=None,
    post_grad_custom_post_pass=None,
    enable_auto_functionalized_v2=False,  # True raises where an operator that writes its arguments is met: it is not built
    # CUDA graphs are not built: with `cudagraphs`, each graph that is run without one is counted
    triton=Settings("native.triton", cudagraphs=False),
)
