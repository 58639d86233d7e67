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
    automatic_dynamic_shapes_mark_as="dynamic",  # or "unbacked": sizes that changed are symbols that may be 0 or 1 too
    dynamic_sources="",  # places, "L['x'], L['y']", or expressions that match their names: sizes and numbers there are symbols
    unbacked_sources="",  # the same, for symbols of which nothing is known
    assume_static_by_default=True,
    trace_autograd_ops=True,  # backward() inside a function is part of its graph
    nested_graph_breaks=False,  # a graph may end inside a function that the program calls, and go on from there
    capture_scalar_outputs=False,
    capture_dynamic_output_shape_ops=False,
    error_on_recompile=False,
    enable_trace_unittest=False,  # True: functions of `unittest` are captured like the program's own
    reorderable_logging_functions=set(),  # functions such as print: graphs go on past them, and they are called afterwards
    ignore_logging_functions=set(),  # functions that graphs leave out
    do_not_emit_runtime_asserts=False,  # True: graphs do not check what the program says of its numbers
    suppress_errors=False,  # True: a graph for which a backend raises runs as it is, with a warning
    compiled_autograd=False,
    compiled_autograd_create_graph=False,  # True: also gradients that are differentiated again; their history is one node
    compiled_autograd_kwargs_override={},
    inert=dict(
        dynamic_shapes=True,
        specialize_int=True,
        specialize_float=True,
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
        enable_dynamo_decompositions=True,
        force_compile_during_fx_trace=False,
        error_on_nested_fx_trace=True,
        caching_precompile=False,
        use_recursive_dict_tags_for_guards=False,
        skip_tensor_guards_with_matching_dict_tags=True,
        skip_nnmodule_hook_guards=False,
        skip_fwd_side_effects_in_bwd_under_checkpoint=False,
        install_free_tensors=False,
        graph_break_on_nn_param_ctor=True,
        enable_trace_load_build_class=False,
        enable_aot_compile=False,
        capture_profiler_record_function=False,
        track_nodes_for_deduplication=False,
        use_graph_deduplication=False,
        enable_faithful_generator_behavior=True,
        verify_correctness=False,
        rewrite_assert_with_torch_assert=True,
        allow_unspec_int_on_nn_module=False,
        traceable_tensor_subclasses=set(),
        nontraceable_tensor_subclasses=set(),
        use_numpy_random_stream=False,
        prepare_freezing=False,
        debug_force_nested_calls=False,
        allow_empty_graphs=False,
        assume_dunder_attributes_remain_unchanged=False,
        enable_cpp_symbolic_shape_guards=False,
        accumulated_recompile_limit=256,
    ),
)

native = Settings(
    "torch._inductor.config",
    # functions of a graph, called before and after a forward or backward graph is compiled
    post_grad_custom_pre_pass=None,
    post_grad_custom_post_pass=None,
    max_fusion=True,  # False: a loop nest for each operator
    deterministic=False,  # True: no fused multiply-add; for eager bits, see `use_deterministic_algorithms`
    size_limit=8,  # sets of sizes of one graph with symbolic sizes that get native code each; further ones run by operators
    raise_rule_errors=False,  # True: an error in a lowering rule is raised; False: a warning, and the operator runs as it is
    cpp=Settings("torch._inductor.config.cpp", threads=-1),  # -1: as many as `get_num_threads()`
    # native: whether graphs on a CUDA device get kernels of our own; False: they run operator by operator
    # graphs: whether runs of them that come again with the same addresses are launched as one CUDA graph
    cuda=Settings("torch._inductor.config.cuda", native=True, graphs=True),
    layout_optimization=True,  # whether convolutions of a graph on a CUDA device are computed in channels-last order
    enable_auto_functionalized_v2=True,  # operators that write arguments copy their bases; False: each argument
    # cudagraphs=True: a graph that cannot be launched as a CUDA graph (see `cuda.graphs`) is counted, and the reason is logged; those that
    # can keep the memory they work in and that of results nobody has any more, so that every run is a launch of a graph
    triton=Settings("torch._inductor.config.triton", cudagraphs=False),
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

# Settings of ahead-of-time autograd. `inert` ones are read by nothing here: their values say what is done.
ahead = Settings(
    "torch._functorch.config",
    double_backward=True,  # False: differentiating a compiled backward raises, as it does in PyTorch
    ban_recompute_reductions=True,
    ban_recompute_used_far_apart=True,
    ban_recompute_long_fusible_chains=True,
    ban_recompute_materialized_backward=True,
    ban_recompute_not_in_allowlist=True,
    aggressive_recomputation=False,
    activation_memory_budget=1.0,
    treat_parameters_as_free_to_save=True,
    functionalize_rng_ops=False,  # True: exporting refuses; random operators are never made functional here
    force_non_lazy_backward_lowering=False,  # True: backwards are compiled with their forwards, and not when they first run
    debug_assert=False,  # True: a compiled function checks that its arguments are as it was compiled for
    fake_tensor_propagate_real_tensors=False,  # True: exporting runs the program on the example too, to know what data decides
    fake_tensor_allow_meta=True,  # False: a fake mode made now refuses fakes on the device without data
    # Autocast in a backward: "off", as where backward() is called outside of it; "same_as_forward", as where the function
    # was compiled; or a list of the arguments of autocast contexts.
    backward_pass_autocast="off",
    inert=dict(
        fake_tensor_allow_unsafe_data_ptr_access=False,
        view_replay_for_aliased_outputs=True,
        donated_buffer=False,
        static_weight_shapes=True,
        enable_autograd_cache=False,
        check_custom_op_aliasing=False,  # results of custom operators are checked where they run, compiled or not
    ),
)
