"""The names of PyTorch's settings, as facts: which names a program may set that mean nothing here.

In: a place such as `torch._dynamo.config`. Out: the names of its settings in PyTorch 2.13 (`triton.cudagraphs` for one of a
group). A setting of these names that is not ours is accepted with a warning; any other name is a mistake.
"""

from __future__ import annotations

import functools

NAMES = {
    "torch._dynamo.config": """
        _autograd_backward_strict_mode_banned_ops _autograd_backward_strict_mode_conditional_banned_ops
        _custom_ops_profile _shapes_spec _unsafe_skip_fsdp_module_guards accumulated_cache_size_limit
        accumulated_recompile_limit allow_empty_graphs allow_ignore_mark_dynamic allow_rnn
        allow_unspec_int_on_nn_module allowed_functions_module_string_ignorelist
        assume_dunder_attributes_remain_unchanged assume_static_by_default automatic_dynamic_exclusion_guard
        automatic_dynamic_local_pgo automatic_dynamic_remote_pgo automatic_dynamic_shapes
        automatic_dynamic_shapes_mark_as base_dir cache_size_limit caching_precompile capture_autograd_function
        capture_dynamic_output_shape_ops capture_func_transforms capture_profiler_record_function
        capture_scalar_outputs capture_sparse_compute compiled_autograd compiled_autograd_kwargs_override
        constant_fold_autograd_profiler_enabled cprofile cudagraph_backend_keep_input_mutation
        cudagraph_backend_support_input_mutation dead_code_elimination debug_backend_override debug_dir_root
        debug_disable_compile_counter debug_dynamo_config_override debug_force_graph_break_on_leaf_return
        debug_force_nested_calls debug_inductor_config_override disable do_not_emit_runtime_asserts
        dont_skip_tracing dynamic_shapes dynamo_profiler enable_aot_compile enable_compiler_collectives
        enable_cpp_framelocals_guard_eval enable_cpp_guard_manager enable_cpp_symbolic_shape_guards
        enable_dynamo_decompositions enable_faithful_generator_behavior enable_invoke_subgraph_regional_compile
        enable_p2p_compilation enable_trace_contextlib enable_trace_load_build_class enable_trace_unittest
        error_on_dynamo_callback_in_fullgraph_compiled_code error_on_nested_fx_trace error_on_nested_jit_trace
        error_on_recompile fail_on_cache_limit_hit fail_on_recompile_limit_hit fake_tensor_cache_crosscheck_enabled
        fake_tensor_cache_enabled fake_tensor_disable_inference_mode force_compile_during_fx_trace
        force_nn_module_property_static_shapes force_parameter_static_shapes
        force_unspec_int_unbacked_size_like_on_torchrec_kjt generate_pycode graph_break_on_nn_param_ctor
        graph_deduplication_lint guard_nn_modules guard_nn_modules_using_dict_tags ignore_logger_methods
        ignore_logging_functions inject_BUILD_SET_unimplemented_TESTING_ONLY inline_inbuilt_nn_modules
        inline_invoke_subgraph inline_single_use_invoke_subgraph inline_torch_dispatch_torch_compile
        install_free_tensors install_free_tensors_for_export invalidate_compile_context_weakrefs
        issue_3_13_0_warning leaf_function_check_escaped_gradients leaf_function_validate_outputs
        log_compilation_metrics log_file_name log_graph_in_out_metadata
        max_saved_pointers_for_recursive_dict_tags_check minimum_call_count nested_graph_breaks
        nontraceable_tensor_subclasses numpy_default_complex numpy_default_float numpy_default_int
        only_allow_pt2_compliant_ops optimize_ddp optimize_ddp_lazy_compile
        prefer_deferred_runtime_asserts_over_guards prepare_freezing pt2_compile_id_prefix
        raise_on_ctx_manager_usage raise_on_unsafe_aot_autograd recompile_limit
        record_compile_time_instruction_count record_runtime_overhead reorderable_logging_functions
        replay_record_enabled replay_side_effects report_guard_failures repro_after repro_forward_only
        repro_ignore_non_fp repro_level repro_tolerance rewrite_assert_with_torch_assert run_gc_after_compile
        same_two_models_use_fp64 side_effect_replay_policy skip_code_recursive_on_cache_limit_hit
        skip_code_recursive_on_recompile_limit_hit skip_fsdp_guards skip_fwd_side_effects_in_bwd_under_checkpoint
        skip_guards_on_constant_func_defaults skip_nnmodule_hook_guards skip_no_tensor_aliasing_guards_on_parameters
        skip_tensor_guards_with_matching_dict_tags skip_torchrec skipfiles_inline_module_allowlist specialize_float
        specialize_int strict_precompile suppress_errors trace_autograd_ops trace_numpy traceable_tensor_subclasses
        track_nodes_for_deduplication use_graph_deduplication use_lamba_guard_for_object_aliasing
        use_lazy_graph_module use_numpy_random_stream use_recursive_dict_tags_for_guards verbose verify_correctness
        wrap_top_frame
    """,
    "torch._functorch.config": """
        _sync_decision_cross_ranks _test_disable_functionalization activation_memory_budget
        activation_memory_budget_runtime_estimator activation_memory_budget_solver activation_offload_cpu_gpu_bw
        activation_offload_separate_stream activation_offload_sink_wait activation_reload_prefetch
        aggressive_recomputation autograd_cache_allow_custom_autograd_functions autograd_cache_normalize_inputs
        backward_pass_autocast ban_recompute_long_fusible_chains ban_recompute_materialized_backward
        ban_recompute_not_in_allowlist ban_recompute_reductions ban_recompute_used_far_apart bundled_autograd_cache
        bypass_autograd_cache_key check_custom_op_aliasing cse custom_op_default_layout_constraint debug_assert
        debug_partitioner decompose_custom_triton_ops disable_guess_zero_tangent_for_mutated_input_subclass
        donated_buffer enable_activation_offloading enable_autograd_cache enable_complex_wrapper
        enable_remote_autograd_cache error_on_custom_op_aliasing fake_tensor_allow_meta
        fake_tensor_allow_unsafe_data_ptr_access fake_tensor_crossref fake_tensor_prefer_device_type
        fake_tensor_propagate_real_tensors force_autograd_cache
        functionalize_rng_ops generate_fake_kernels_from_real_mismatches graphsafe_rng_functionalization
        guess_tangent_strides_as_outputs joint_custom_pass max_dist_from_bw memory_budget_pareto_dir recompute_views
        remat_using_tags_for_fwd_loss_bwd_graph saved_tensors_hooks_filtering_mode selective_decompose
        static_weight_shapes strict_autograd_cache torch_compile_graph_format treat_parameters_as_free_to_save
        unlift_effect_tokens unsafe_allow_optimization_of_collectives unsafe_treat_script_objects_as_zero_size
        view_replay_for_aliased_outputs visualize_memory_budget_pareto
    """,
    "torch._inductor.config": """
        _cache_config_factory_keys _collective.auto_select _collective.one_shot_all_reduce_threshold_bytes
        _conv_default_backends _fuse_ddp_bucket_size _fuse_ddp_communication _fuse_ddp_communication_passes
        _micro_pipeline_tp _post_fusion_custom_pass _pre_fusion_custom_pass _profile_var _raise_error_for_testing
        _realize_acc_reads_threshold_default _realize_opcount_threshold_default _use_fp64_for_unbacked_floats
        add_pre_grad_passes aggressive_fusion align_random_eager alignment_asserts allow_buffer_reuse
        always_keep_tensor_constants annotate_training aot_inductor.allow_stack_allocation
        aot_inductor.aoti_shim_library aot_inductor.aoti_shim_library_path aot_inductor.autotune_per_kernel_alloc
        aot_inductor.check_lowerbound aot_inductor.compile_wrapper_opt_level aot_inductor.cross_target_platform
        aot_inductor.custom_op_libs aot_inductor.custom_ops_to_c_shims aot_inductor.debug_compile
        aot_inductor.debug_intermediate_value_printer aot_inductor.debug_symbols aot_inductor.dump_aoti_minifier
        aot_inductor.dynamic_linkage aot_inductor.embed_kernel_binary aot_inductor.emit_multi_arch_kernel
        aot_inductor.enable_frame_pointer aot_inductor.enable_line_tables aot_inductor.enable_lto
        aot_inductor.filtered_kernel_names aot_inductor.force_mmap_weights aot_inductor.link_libtorch
        aot_inductor.metadata aot_inductor.model_name_for_generated_files aot_inductor.output_path
        aot_inductor.package aot_inductor.package_constants_in_so aot_inductor.package_constants_on_disk_format
        aot_inductor.package_cpp_only aot_inductor.precompile_headers aot_inductor.presets
        aot_inductor.raise_error_on_ignored_optimization aot_inductor.repro_level aot_inductor.serialized_in_spec
        aot_inductor.serialized_out_spec aot_inductor.use_consts_asm_build
        aot_inductor.use_minimal_arrayref_interface aot_inductor.use_runtime_constant_folding
        aot_inductor.weight_use_caching_allocator aot_inductor_mode.compile_standalone apply_gumbel_max_trick
        assert_indirect_indexing assume_32bit_indexing assume_aligned_inputs assume_unaligned_fallback_output
        aten_distributed_optimizations.allow_comms_decompositions
        aten_distributed_optimizations.bucket_exposed_first aten_distributed_optimizations.bucket_mode
        aten_distributed_optimizations.bucket_only_internode_comms
        aten_distributed_optimizations.collective_bucketing aten_distributed_optimizations.collective_estimator
        aten_distributed_optimizations.compute_estimator aten_distributed_optimizations.compute_overlap_multipler
        aten_distributed_optimizations.custom_runtime_estimation
        aten_distributed_optimizations.enable_fusion_regions
        aten_distributed_optimizations.enable_low_contention_collectives
        aten_distributed_optimizations.enable_overlap_scheduling aten_distributed_optimizations.insert_overlap_deps
        aten_distributed_optimizations.log_final_collectives_estimations
        aten_distributed_optimizations.low_contention_min_bytes_per_rank
        aten_distributed_optimizations.low_contention_skip_overlap_check
        aten_distributed_optimizations.max_coll_distance aten_distributed_optimizations.max_compute_pre_fetch
        aten_distributed_optimizations.max_in_flight_gb aten_distributed_optimizations.max_memory_increase_gb
        aten_distributed_optimizations.max_memory_increase_ratio
        aten_distributed_optimizations.overlap_scheduling_autofix_cycles
        aten_distributed_optimizations.pre_bucketing_fsdp_collectives
        aten_distributed_optimizations.pre_bucketing_fsdp_collectives_bucket_cap_mb
        aten_distributed_optimizations.pre_bucketing_fsdp_collectives_max_bucket_cap_mb
        aten_distributed_optimizations.pre_bucketing_fsdp_collectives_min_bucket_cap_mb
        aten_distributed_optimizations.pre_bucketing_fsdp_collectives_saturation_calibration_multiplier
        aten_distributed_optimizations.pre_bucketing_fsdp_collectives_verbose
        aten_distributed_optimizations.prioritize_bucketing_during_scheduling
        aten_distributed_optimizations.profile_guided_estimations_profile_path
        aten_distributed_optimizations.spmd_check aten_distributed_optimizations.spmd_mismatch
        auto_chunker.amplify_ratio_threshold auto_chunker.enable auto_chunker.num_chunk
        auto_chunker.output_size_threshold autoheuristic_collect.mixed_mm autoheuristic_collect.pad_mm
        autoheuristic_log_path autoheuristic_use.mixed_mm autoheuristic_use.pad_mm autotune_fallback_to_aten
        autotune_in_subproc autotune_local_cache autotune_lookup_table autotune_multi_device
        autotune_num_choices_displayed autotune_remote_cache b2b_gemm_pass batch_fusion batch_invariant
        benchmark_combo_kernel benchmark_epilogue_fusion benchmark_fusion benchmark_harness benchmark_kernel
        bucket_all_gathers_bucket_mode bucket_all_gathers_fx bucket_all_gathers_fx_bucket_size_determinator
        bucket_all_reduces_fx bucket_all_reduces_fx_bucket_size_determinator bucket_reduce_scatters_bucket_mode
        bucket_reduce_scatters_fx bucket_reduce_scatters_fx_bucket_size_determinator
        bundle_triton_into_fx_graph_cache bundled_autotune_remote_cache bw_outputs_user_visible
        cache_sdpa_constraint can_inplace_pad_graph_input check_stack_no_cycles_TESTING_ONLY
        collective_benchmark_nruns collective_benchmark_timeout combo_kernel_allow_mixed_sizes
        combo_kernel_autotune_grouping combo_kernel_foreach_dynamic_shapes combo_kernel_max_distance
        combo_kernel_max_num_args combo_kernel_max_num_nodes combo_kernel_peak_memory_increase_gb
        combo_kernel_peak_memory_pct_threshold combo_kernel_per_subkernel_blocks combo_kernels
        combo_kernels_autotune combo_kernels_pointwise_only comment_origin compile_threads
        compile_worker_wait_timeout comprehensive_padding compute_all_bounds constant_and_index_propagation
        conv_1x1_as_mm coordinate_descent_check_all_directions coordinate_descent_search_radius
        coordinate_descent_tuning cpp.cxx cpp.descriptive_names cpp.dynamic_threads cpp.enable_concat_linear
        cpp.enable_floating_point_contract_flag cpp.enable_grouped_gemm_template cpp.enable_kernel_profile
        cpp.enable_loop_tail_vec cpp.enable_tiling_heuristics cpp.enable_unsafe_math_opt_flag
        cpp.fallback_scatter_reduce_sum cpp.force_inline_kernel cpp.gemm_cache_blocking cpp.gemm_max_k_slices
        cpp.gemm_thread_factors cpp.inject_log1p_bug_TESTING_ONLY cpp.inject_relu_bug_TESTING_ONLY cpp.march
        cpp.max_horizontal_fusion_size cpp.min_chunk_size cpp.no_redundant_loops cpp.simdlen cpp.threads
        cpp.use_constexpr_for_int_array cpp.use_decompose_tanh cpp.use_small_dequant_buffer
        cpp.use_two_step_variance_threshold cpp.vec_isa_ok cpp.weight_prepack cpp_cache_precompile_headers
        cpp_wrapper cpp_wrapper_build_separate cpu_backend cpu_gpu_bw cuda.arch cuda.binary_remote_cache_force_write
        cuda.compile_opt_level cuda.cuda_cxx cuda.cutlass_backend_min_gemm_size cuda.cutlass_dir
        cuda.cutlass_dynamic_cluster_fallback cuda.cutlass_dynamic_cluster_shape cuda.cutlass_enabled_ops
        cuda.cutlass_epilogue_fusion_enabled cuda.cutlass_hash_with_compile_cmd cuda.cutlass_instantiation_level
        cuda.cutlass_max_profiling_configs cuda.cutlass_max_profiling_swizzle_options
        cuda.cutlass_op_allowlist_regex cuda.cutlass_op_denylist_regex cuda.cutlass_prescreening
        cuda.cutlass_tma_only cuda.enable_caching_codegen cuda.enable_cuda_lto cuda.enable_debug_info
        cuda.enable_ptxas_info cuda.generate_test_runner cuda.nvgemm_max_profiling_configs
        cuda.upload_to_binary_remote_cache cuda.use_binary_remote_cache cuda.use_fast_math cuda.version cuda_backend
        cudagraph_policy cudagraph_unsafe_unbacked_ops custom_partitioner_fn custom_should_partition_ops
        cutedsl_enable_autotuning cutlass.binary_remote_cache_force_write cutlass.compile_opt_level
        cutlass.cutlass_backend_min_gemm_size cutlass.cutlass_dir cutlass.cutlass_dynamic_cluster_fallback
        cutlass.cutlass_dynamic_cluster_shape cutlass.cutlass_enabled_ops cutlass.cutlass_epilogue_fusion_enabled
        cutlass.cutlass_hash_with_compile_cmd cutlass.cutlass_instantiation_level
        cutlass.cutlass_max_profiling_configs cutlass.cutlass_max_profiling_swizzle_options
        cutlass.cutlass_op_allowlist_regex cutlass.cutlass_op_denylist_regex cutlass.cutlass_prescreening
        cutlass.cutlass_tma_only cutlass.enable_caching_codegen cutlass.enable_debug_info
        cutlass.generate_test_runner cutlass.upload_to_binary_remote_cache cutlass.use_binary_remote_cache
        cutlass.use_fast_math dce debug debug_fusion debug_index_asserts debug_ir_traceback decompose_mem_bound_mm
        dedup_reduce_scatters delay_realize_cheap_outputs deterministic developer_warnings disable_cpp_codegen
        disable_padding_cpu disable_progress disabled_passes distributed_max_autotune_gemm
        do_not_emit_runtime_assertions dynamic_scale_rblock eager_numerics.disable_ftz
        eager_numerics.division_rounding eager_numerics.use_pytorch_libdevice efficient_conv_bn_eval_fx_passes
        emulate_precision_casts emulate_precision_casts_on_saved_tensors enable_auto_functionalized_v2
        enable_autograd_for_aot enable_caching_generated_triton_templates enable_linear_binary_folding
        enabled_metric_tables epilogue_fusion epilogue_fusion_first epilogue_fusion_user_defined_triton_kernel
        epilogue_fusion_with_atomic_add estimate_op_runtime expand_dimension_for_pointwise_nodes external_matmul
        fallback_by_default fallback_embedding_bag_byte_unpack fallback_random file_lock_timeout
        force_disable_caches force_disable_cudagraph_TESTING_ONLY force_fuse_int_mm_with_mul
        force_layout_optimization force_pointwise_cat force_shape_pad freezing freezing_discard_parameters
        fx_graph_cache fx_graph_remote_cache fx_passes_numeric_check fx_wrapper generate_intermediate_hooks
        global_cache_dir graph_partition group_fusion halide.asserts halide.cpu_target halide.debug
        halide.gpu_target halide.scan_kernels halide.scheduler_cpu halide.scheduler_cuda implicit_fallbacks
        incremental_autotune inductor_choices_class inductor_default_autotune_rep inductor_default_autotune_warmup
        inplace_buffers inplace_padding inter_node_bw intra_node_bw is_nightly_or_source is_predispatch
        joint_custom_post_pass joint_custom_pre_pass joint_graph_constant_folding keep_addmm_fused_for_half_dtypes
        keep_output_stride keep_static_cubin_raw kernel_name_max_ops layout_opt_default layout_optimization
        log_tlparse lookup_table.check_src_hash lookup_table.table loop_index_inversion_in_fusion
        loop_ordering_after_fusion loop_reindexing_after_fusion max_autotune max_autotune_allow_flexible_layouts
        max_autotune_conv_backends max_autotune_conv_bwd_input_backends max_autotune_conv_bwd_weight_backends
        max_autotune_flex_search_space max_autotune_gemm max_autotune_gemm_backends max_autotune_gemm_search_space
        max_autotune_pointwise max_autotune_prune_choices_based_on_shared_mem max_autotune_report_choices_stats
        max_autotune_subproc_graceful_timeout_seconds max_autotune_subproc_result_timeout_seconds
        max_autotune_subproc_terminate_timeout_seconds max_complex_pointwise_cat_inputs
        max_epilogue_benchmarked_choices max_fusion_buffer_group_pairwise_attempts max_fusion_size
        max_fusion_unique_io_buffers max_pointwise_cat_inputs memory_planning memory_pool min_num_split
        min_overlap_ratio mixed_mm_choice mtia.disable_welford_reduction multi_kernel_hints nan_asserts
        non_blocking_remote_cache_write nvgemm_max_profiling_configs nvgemm_supplement_configs online_softmax
        optimize_scatter_upon_const_tensor pad_channels_last pad_dynamic_shapes pad_outputs padding_alignment_bytes
        padding_stride_threshold partitioned_scatter_enabled partitioned_scatter_max_partitions
        partitioned_scatter_memory_budget partitioned_scatter_min_partitions pattern_matcher permute_fusion
        pick_loop_orders pipeline_max_autotune_gemm post_grad_custom_post_pass post_grad_custom_pre_pass
        post_grad_fusion_options pre_grad_custom_pass pre_grad_fusion_options pre_grad_pass_timing
        precompilation_timeout_seconds profile_bandwidth profile_bandwidth_output profile_bandwidth_regex
        profile_bandwidth_with_do_bench_using_profiling profiler_mark_wrapper_call prologue_fusion
        quiesce_async_compile_pool quiesce_async_compile_time realize_acc_reads_size_threshold
        realize_acc_reads_threshold realize_cpu_acc_reads_threshold realize_cpu_opcount_threshold
        realize_opcount_threshold realize_reads_threshold remote_gemm_autotune_cache remove_pre_grad_passes
        reorder_for_compute_comm_overlap reorder_for_compute_comm_overlap_passes reorder_for_locality
        reorder_for_peak_memory reorder_for_peak_memory_debug reorder_prefetch_limit rocm.arch rocm.ck_dir
        rocm.ck_max_profiling_configs rocm.ck_supported_arch rocm.ck_tile_max_profiling_configs
        rocm.compile_opt_level rocm.contiguous_threshold rocm.flush_denormals rocm.generate_test_runner
        rocm.is_debug rocm.kBatch_sweep rocm.n_max_profiling_configs rocm.origami rocm.origami_topk
        rocm.print_kernel_resource_usage rocm.rocm_home rocm.save_temps rocm.split_k_threshold rocm.use_fast_math
        rocm.use_preselected_instances run_jit_post_compile_hook runtime_estimations_mms_benchmark
        runtime_triton_nan_asserts save_args scalar_asserts score_fusion_memory_threshold search_autotune_cache
        selective_decompose shape_padding size_asserts size_threshold_for_succ_based_strategy sleep_sec_TESTING_ONLY
        small_memory_access_threshold split_cat_fx_passes split_reductions static_launch_user_defined_triton_kernels
        static_weight_shapes strict_static_cuda_launcher strict_static_triton_launcher
        test_configs.assume_bucketing_reduces_latency test_configs.autotune_choice_desc_regex
        test_configs.autotune_choice_name_regex test_configs.bisect_keep_custom_backend_for_inductor
        test_configs.bisect_pre_grad_graph test_configs.distort_benchmarking_result
        test_configs.force_custom_op_decomposition test_configs.force_extern_kernel_in_multi_template
        test_configs.force_filter_reduction_configs test_configs.force_no_impl_grouping
        test_configs.graphsafe_rng_func_ignores_fallback_random test_configs.max_flex_configs
        test_configs.max_mm_configs test_configs.runtime_triton_dtype_assert
        test_configs.runtime_triton_shape_assert test_configs.static_cpp_dtype_assert
        test_configs.track_memory_lifecycle test_configs.use_libtorch torchinductor_worker_logpath tpu_backend
        trace.compile_profile trace.debug_dir trace.debug_log trace.dot_graph_shape trace.draw_orig_fx_graph
        trace.enabled trace.fx_graph trace.fx_graph_transformed trace.graph_diagram trace.graph_diagram_format
        trace.info_log trace.ir_post_fusion trace.ir_pre_fusion trace.log_autotuning_results
        trace.log_url_for_graph_xform trace.orig_fx_graph_diagram_format trace.output_code
        trace.provenance_tracking_level trace.save_real_tensors trace.upload_tar triton.autotune_at_compile_time
        triton.autotune_cublasLt triton.autotune_pointwise triton.autotune_with_sample_inputs
        triton.coalesce_tiling_analysis triton.codegen_upcast_to_fp32 triton.cooperative_reductions
        triton.cudagraph_capture_sizes triton.cudagraph_dynamic_shape_warn_limit triton.cudagraph_min_partition_size
        triton.cudagraph_or_error triton.cudagraph_partition_memory_budget triton.cudagraph_skip_dynamic_graphs
        triton.cudagraph_support_input_mutation triton.cudagraph_trees triton.cudagraph_trees_history_recording
        triton.cudagraph_trees_objgraph triton.cudagraph_unexpected_rerecord_limit triton.cudagraphs
        triton.debug_dump_kernel_inputs triton.debug_sync_graph triton.debug_sync_kernel
        triton.decompose_k_threshold triton.decompose_sort_ops triton.dense_indexing triton.descriptive_names
        triton.disallow_failing_autotune_kernels_TESTING_ONLY triton.divisible_by_16
        triton.dynamic_disable_pipelining triton.emit_pointer_range_32 triton.enable_pdl
        triton.enable_persistent_tma_matmul triton.enable_template_tma_store
        triton.enable_tma_load_for_template_epilogue triton.fast_path_cudagraph_asserts
        triton.force_cooperative_reductions triton.force_cudagraph_sync triton.force_cudagraphs_warmup
        triton.inject_relu_bug_TESTING_ONLY triton.max_kernel_dump_occurrences triton.max_tiles
        triton.min_split_scan_rblock triton.mix_order_reduction triton.mix_order_reduction_allow_multi_stages
        triton.mix_order_reduction_autotune_split_size triton.mix_order_reduction_initial_xblock
        triton.mix_order_reduction_max_reads triton.mix_order_reduction_non_strict_mode
        triton.mix_order_reduction_split_size triton.multi_kernel triton.native_matmul triton.nested_reduction
        triton.num_decompose_k_splits triton.persistent_reductions triton.prefer_nd_tiling triton.proton_group_by_sm
        triton.proton_output_dir triton.proton_per_cta_occupancy triton.proton_profiling
        triton.proton_split_invocations triton.reorder_for_reducing_graph_partitions triton.skip_cudagraph_warmup
        triton.skip_l1_cache triton.slow_path_cudagraph_asserts triton.spill_threshold triton.store_cubin
        triton.tile_reductions triton.tiling_prevents_pointwise_fusion triton.tiling_prevents_reduction_fusion
        triton.transpose_discontiguous_tensor_descriptor triton.unique_kernel_names triton.unique_user_kernel_names
        triton.use_block_ptr triton.use_tensor_descriptor triton.use_two_step_variance_min_numel
        triton.use_two_step_variance_threshold triton_disable_device_detection
        triton_kernel_default_layout_constraint unbacked_symint_fallback unroll_reductions_threshold
        unsafe_ignore_unsupported_triton_autotune_args unsafe_marked_cacheable_functions
        unsafe_skip_cache_dynamic_shape_guards use_dce use_experimental_benchmarker use_fast_math
        use_fast_triton_launcher use_joint_graph_passes use_launch_metadata_schema use_mixed_mm use_post_grad_passes
        use_pre_grad_passes use_static_cuda_launcher use_static_triton_launcher use_torch_profiler_benchmarker
        verbose_progress warn_mix_layout worker_log_path worker_start_method worker_suppress_logging
        wrap_inductor_compiled_regions write_are_deterministic_algorithms_enabled xpu.arch
        xpu.binary_remote_cache_force_write xpu.compile_opt_level xpu.cutlass_backend_min_gemm_size xpu.cutlass_dir
        xpu.cutlass_dynamic_cluster_fallback xpu.cutlass_dynamic_cluster_shape xpu.cutlass_enabled_ops
        xpu.cutlass_epilogue_fusion_enabled xpu.cutlass_hash_with_compile_cmd xpu.cutlass_instantiation_level
        xpu.cutlass_max_profiling_configs xpu.cutlass_max_profiling_swizzle_options xpu.cutlass_op_allowlist_regex
        xpu.cutlass_op_denylist_regex xpu.cutlass_prescreening xpu.cutlass_tma_only xpu.enable_caching_codegen
        xpu.enable_debug_info xpu.generate_test_runner xpu.oneapi_root xpu.upload_to_binary_remote_cache
        xpu.use_binary_remote_cache xpu.use_fast_math xpu.version xpu_backend
    """,
}


@functools.cache
def names_of(where: str) -> frozenset[str]:
    """The names of the settings of a place; those of a group where it is one (`torch._inductor.config.triton`)."""
    if where in NAMES:
        return frozenset(NAMES[where].split())
    outer, _, group = where.rpartition(".")
    inside = names_of(outer) if outer in NAMES else frozenset()
    return frozenset(n.removeprefix(f"{group}.") for n in inside if n.startswith(f"{group}."))


def groups_of(where: str) -> frozenset[str]:
    """The groups of settings inside a place."""
    return frozenset(n.partition(".")[0] for n in names_of(where) if "." in n)
