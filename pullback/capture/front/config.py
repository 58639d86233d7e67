"""Settings of `compile` (`config`) and of native code (`native`).

`inert` are settings that programs of PyTorch's name and nothing here reads: their values say what is done here.
"""

from __future__ import annotations

from ...core.settings import Settings

config = Settings(
    "torch._dynamo.config",
    verify=False,  # True: each compiled call is also made uncompiled, on copies, and compared
    recompile_limit=8,  # graphs per function; a further one runs uncompiled, with a warning
    cache_size_limit=8,  # the older name of the same
    fail_on_recompile_limit_hit=False,
    automatic_dynamic_shapes=True,
    assume_static_by_default=True,
    trace_autograd_ops=True,  # backward() inside a function is part of its graph
    nested_graph_breaks=False,  # a graph may end inside a function that the program calls, and go on from there
    capture_scalar_outputs=False,
    capture_dynamic_output_shape_ops=False,
    error_on_recompile=False,
    compiled_autograd=False,
    compiled_autograd_create_graph=False,  # True: also gradients that are differentiated again; their history is one node
    compiled_autograd_kwargs_override={},
    inert=dict(
        dynamic_shapes=True,
        specialize_int=True,
        specialize_float=True,
        suppress_errors=False,
        verbose=False,
        guard_nn_modules=True,
        inline_inbuilt_nn_modules=True,
        record_runtime_overhead=True,
        optimize_ddp=False,
        allow_rnn=True,
        enable_trace_contextlib=True,
        trace_numpy=True,
        test_subclass_skip_fake_tensor=False,
        force_parameter_static_shapes=True,
        force_nn_module_property_static_shapes=True,
        raise_on_ctx_manager_usage=True,
        enable_cpp_guard_manager=True,
    ),
)

native = Settings(
    "torch._inductor.config",
    # functions of a graph, called before and after a forward or backward graph is compiled
    post_grad_custom_pre_pass=None,
    post_grad_custom_post_pass=None,
    max_fusion=True,  # False: a loop nest for each operator
    deterministic=False,  # True: products and sums are rounded one by one, as single operators round them
    size_limit=8,  # sets of sizes of one graph with symbolic sizes that get native code each; further ones run by operators
    raise_rule_errors=False,  # True: an error in a lowering rule is raised; False: a warning, and the operator runs as it is
    cpp=Settings("torch._inductor.config.cpp", threads=-1),  # -1: as many as `get_num_threads()`
    # native=True: graphs on a CUDA device get kernels of our own; False: they run operator by operator
    cuda=Settings("torch._inductor.config.cuda", native=False),
    enable_auto_functionalized_v2=True,  # operators that write arguments copy their bases; False: each argument
    # CUDA graphs are not built: a graph that is compiled while they are asked for is counted as one that went without
    triton=Settings("torch._inductor.config.triton", inert=dict(cudagraphs=False)),
    inert=dict(
        fallback_random=False,
        fx_graph_cache=False,
        triton_unique_kernel_names=True,
        cpp_wrapper=False,
        freezing=False,
        max_autotune=False,
        compile_threads=1,
    ),
)
