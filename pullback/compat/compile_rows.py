"""Where PyTorch's private names of capture and ahead-of-time autograd live here."""

from __future__ import annotations

_AOT = "pullback.joint.aot"
_AOT_FUNCTIONS = (
    "aot_function", "aot_module", "aot_module_simplified", "compiled_function", "compiled_module", "make_boxed_func", "nop",
)  # fmt: skip
_AOT_CONTEXT = ("get_aot_compilation_context", "get_aot_graph_name", "get_graph_being_compiled")
_COMPILERS = ("make_boxed_compiler", "memory_efficient_fusion", "nnc_jit", "print_compile")
_COMPILE = "pullback.capture.front.compile"

# Modules that are objects here.
OBJECTS = {
    "torch._dynamo.config": "pullback.capture.front.config:config",
    "torch._functorch.config": "pullback.joint.config:config",
    "torch.utils.serialization.config": "pullback.serialization.options:config",
    "torch._inductor.config": "pullback.capture.front.config:native",
    "torch.compiler.config": "pullback.capture.front.config:config",
    "torch.fx.experimental._config": "pullback.capture.shapes.config:config",
}

# Names of private modules that are variables: read anew each time, and assigned to at their home.
VARIABLES = {
    "torch._dynamo.compiled_autograd": ("compiled_autograd_enabled", "COMPILE_COUNTER"),
    "torch._dynamo.guards": ("guard_manager_testing_hook_fn",),
    "torch._tensor_str": ("PRINT_OPTS",),
    "torch._functorch.aot_autograd": ("AOT_COUNTER",),
    "torch.utils.data._utils": ("python_exit_status",),
    "torch._functorch.vmap": ("_process_batched_inputs", "_create_batched_inputs", "_unwrap_batched"),
}

_DECORATORS = {
    **{
        name: f"pullback.surface.compiler:{name}"
        for name in ("allow_in_graph", "assume_constant_result", "disable", "graph_break", "substitute_in_graph")
    },
    **{
        name: f"pullback.surface.compiler_decorators:{name}"
        for name in (
            "dont_skip_tracing",
            "error_on_graph_break",
            "nonstrict_trace",
            "patch_dynamo_config",
            "set_stance",
        )
    },
    **{
        name: f"pullback.capture.front.dynamic:{name}"
        for name in ("mark_dynamic", "mark_static", "mark_static_address", "mark_unbacked", "maybe_mark_dynamic")
    },
}

ROWS: dict[str, dict[str, str]] = {
    "torch._dynamo": {
        "config": "pullback.capture.front.config:config",
        "reset": "pullback.surface.compiler:reset",
        "run": "pullback.surface.compiler_decorators:run",
        "optimize": f"{_COMPILE}:optimize",
        "optimize_assert": f"{_COMPILE}:optimize_assert",
        "is_compiling": "pullback.surface.compiler:is_compiling",
        "is_dynamo_supported": "pullback.compat.private_names:is_dynamo_supported",
        "export": "pullback.export.functions:export",
        "explain": "pullback.capture.front.explain:explain",
        "list_backends": "pullback.capture.front.backends:list_backends",
        "lookup_backend": "pullback.capture.front.backends:lookup_backend",
        "register_backend": "pullback.capture.front.backends:register_backend",
        "OptimizedModule": "pullback.capture.front.optimized_module:OptimizedModule",
        "utils": "torch._dynamo.utils:",
        "compiled_autograd": "torch._dynamo.compiled_autograd:",
        "exc": "torch._dynamo.exc:",
        "backends": "torch._dynamo.backends:",
        "decorators": "torch._dynamo.decorators:",
        "eval_frame": "torch._dynamo.eval_frame:",
        "guards": "torch._dynamo.guards:",
        "comptime": "torch._dynamo.comptime:",
        **_DECORATORS,
    },
    "torch._dynamo.decorators": _DECORATORS,
    "torch._dynamo.comptime": {
        name: f"pullback.capture.bytecode.comptime:{name}" for name in ("ComptimeContext", "ComptimeVar", "comptime")
    },
    "torch._dynamo.device_interface": {
        "get_interface_for_device": "pullback.compat.dynamo_names:get_interface_for_device",
    },
    "torch._dynamo.guards": {
        name: f"pullback.capture.front.guard_manager:{name}"
        for name in ("GuardManagerWrapper", "RootGuardManager", "guard_manager_testing_hook_fn")
    },
    "torch._dynamo.utils": {
        "ifdynstaticdefault": "pullback.compat.dynamo_names:ifdynstaticdefault",
        "range_iterator": "pullback.compat.dynamo_names:range_iterator",
        "disable_cache_limit": "pullback.compat.dynamo_names:disable_cache_limit",
        "istype": "pullback.compat.dynamo_names:istype",
        "counters": f"{_COMPILE}:counters",
        "is_compile_supported": "pullback.compat.private_names:is_compile_supported",
        "detect_fake_mode": "pullback.capture.fake.mode:detect_fake_mode",
        "set_locals_to_steal": "pullback.capture.front.boxing:set_locals_to_steal",
        "same": "pullback.testing.comparison:same",
        "clone_input": "pullback.compat.dynamo_names:clone_input",
        "clone_inputs": "pullback.compat.dynamo_names:clone_inputs",
        **{
            name: f"pullback.capture.front.metrics:{name}"
            for name in (
                "CompilationMetrics",
                "DEFAULT_COMPILATION_METRICS_LIMIT",
                "_compilation_metrics",
                "clear_compilation_metrics",
                "get_compilation_metrics",
                "set_compilation_metrics_limit",
            )
        },
    },
    "torch._dynamo.testing": {
        **{
            name: f"pullback.compat.recording_backends:{name}"
            for name in (
                "AotEagerAndRecordGraphs",
                "CompileCounter",
                "CompileCounterWithBackend",
                "EagerAndRecordGraphs",
                "InductorAndRecordGraphs",
                "check_dynamic_shape_capture",
                "collect_results",
                "empty_line_normalizer",
                "expectedFailureDynamic",
                "expectedFailureDynamicWrapper",
                "make_test_cls_with_patches",
                "normalize_gm",
                "rand_strided",
                "reduce_to_scalar_loss",
                "remove_trailing_space",
                "requires_bwd_pass",
                "reset_rng_state",
                "standard_test",
                "strip_comment",
            )
        },
        "same": "pullback.testing.comparison:same",
        "optimize_assert": f"{_COMPILE}:optimize_assert",
    },
    **{
        name: {
            "TestCase": "pullback.compat.unittest_cases:CompiledTestCase",
            "run_tests": "pullback.compat.unittest_cases:run_compiled_tests",
        }
        for name in ("torch._dynamo.test_case", "torch._inductor.test_case")
    },
    "torch.testing._internal.common_utils": {
        **{
            name: f"pullback.compat.unittest_cases:{name}"
            for name in (
                "IS_LINUX",
                "IS_MACOS",
                "IS_WINDOWS",
                "SEED",
                "TemporaryDirectoryName",
                "TemporaryFileName",
                "TestCase",
                "freeze_rng_state",
                "instantiate_parametrized_tests",
                "noncontiguous_like",
                "parametrize",
                "run_tests",
                "set_rng_seed",
                "subtest",
            )
        },
        "set_default_dtype": "pullback.compat.unittest_cases:default_dtype",
        "make_tensor": "pullback.testing:make_tensor",
        "gradcheck": "pullback.autograd:gradcheck",
        "gradgradcheck": "pullback.autograd:gradgradcheck",
    },
    "torch._dynamo.output_graph": {"config": "pullback.capture.front.config:config"},
    "torch._dynamo.debug_utils": {"same_two_models": "pullback.compat.dynamo_names:same_two_models"},
    "torch._inductor.utils": {"fresh_cache": "pullback.compat.dynamo_names:fresh_cache"},
    "torch._dynamo.exc": {
        "Unsupported": f"{_COMPILE}:Unsupported",
        "UserError": f"{_COMPILE}:UserError",
        "BackendCompilerFailed": f"{_COMPILE}:BackendCompilerFailed",
        "TorchDynamoException": f"{_COMPILE}:Unsupported",
        "RecompileError": f"{_COMPILE}:RecompileError",
        "UncapturedHigherOrderOpError": "pullback.capture.trace.program:UncapturedHigherOrderOpError",
        "TorchRuntimeError": "builtins:RuntimeError",  # what an operator raises in a captured program is raised as it is
        "FailOnRecompileLimitHit": f"{_COMPILE}:RecompileError",
    },
    "torch._dynamo.compiled_autograd": {
        "_enable": "pullback.backward.compiled:enable",
        "_disable": "pullback.backward.compiled:disable",
        "reset": "pullback.backward.compiled:reset",
        "compiled_autograd_enabled": "pullback.backward.switch:compiled_autograd_enabled",
        "COMPILE_COUNTER": "pullback.backward.switch:COMPILE_COUNTER",
    },
    "torch._C._dynamo": {"compiled_autograd": "torch._C._dynamo.compiled_autograd:"},
    "torch._C._dynamo.compiled_autograd": {
        "set_autograd_compiler": "pullback.backward.compiled:set_autograd_compiler",
        "set_verbose_logger": "pullback.backward.switch:set_verbose_logger",
        "clear_cache": "pullback.backward.switch:clear_cache",
    },
    "torch._dynamo.backends": {n: f"torch._dynamo.backends.{n}:" for n in ("common", "debugging", "registry")},
    "torch._dynamo.backends.common": {
        **{name: f"pullback.joint.compilers:{name}" for name in ("AotAutograd", "aot_autograd")},
        **{name: f"pullback.compat.dynamo_names:{name}" for name in ("device_from_inputs", "dtype_from_inputs")},
    },
    "torch._dynamo.backends.registry": {
        "lookup_backend": "pullback.capture.front.backends:lookup_backend",
        "register_backend": "pullback.capture.front.backends:register_backend",
        "list_backends": "pullback.capture.front.backends:list_backends",
    },
    "torch._dynamo.eval_frame": {
        "OptimizedModule": "pullback.capture.front.optimized_module:OptimizedModule",
        "is_dynamo_supported": "pullback.compat.private_names:is_dynamo_supported",
        "innermost_fn": "pullback.compat.dynamo_names:innermost_fn",
        "unsupported": "pullback.compat.dynamo_names:unsupported",
        "_debug_get_cache_entry_list": "pullback.compat.dynamo_names:_debug_get_cache_entry_list",
    },
    "torch._logging": {name: f"pullback.core.logs:{name}" for name in ("set_logs", "getArtifactLogger")},
    "torch._dynamo.backends.debugging": {
        name: f"pullback.capture.front.backends:{name}" for name in ("eager", "aot_eager", "aot_eager_decomp_partition")
    },
    "torch._inductor": {
        "compile": "pullback.capture.front.backends:inductor",
        "list_mode_options": "pullback.compat.dynamo_names:list_mode_options",
        "config": "pullback.capture.front.config:native",
    },
    "torch._functorch": {
        "config": "pullback.joint.config:config",
        **{
            n: f"torch._functorch.{n}:"
            for n in ("aot_autograd", "apis", "autograd_function", "eager_transforms", "make_functional", "vmap")
        },
    },
    "torch._functorch.aot_autograd": {
        **{name: f"{_AOT}:{name}" for name in ("AOT_COUNTER", *_AOT_FUNCTIONS)},
        **{name: f"pullback.joint.context:{name}" for name in _AOT_CONTEXT},
        "make_boxed_compiler": "pullback.joint.compilers:make_boxed_compiler",
        "_aot_export_function": "pullback.joint.export:aot_export_function",
        "aot_export_joint_simple": "pullback.joint.export:aot_export_joint_simple",
        "aot_export_module": "pullback.joint.export:aot_export_module",
        "create_functional_call": "pullback.joint.export:create_functional_call",
        "setup_stacktrace_preservation_hooks": "pullback.joint.stacks:setup_stacktrace_preservation_hooks",
    },
    "functorch.compile": {
        **{name: f"{_AOT}:{name}" for name in _AOT_FUNCTIONS},
        **{name: f"pullback.joint.context:{name}" for name in _AOT_CONTEXT},
        **{name: f"pullback.joint.compilers:{name}" for name in _COMPILERS},
        **{
            name: f"pullback.joint.partition:{name}"
            for name in ("default_partition", "min_cut_rematerialization_partition")
        },
        "draw_graph": "pullback.joint.picture:draw_graph",
        "default_decompositions": "pullback.compat.functorch_decompositions:default_decompositions",
        "config": "pullback.joint.config:config",
    },
    "torch._functorch.compilers": {
        **{name: f"pullback.joint.compilers:{name}" for name in (*_COMPILERS, "boxed_nop")},
        "default_decompositions": "pullback.compat.functorch_decompositions:default_decompositions",
        "DebugInterpreter": "pullback.joint.checked_run:DebugInterpreter",
        "nop": f"{_AOT}:nop",
    },
    "torch.fx.experimental.proxy_tensor": {
        "make_fx": "pullback.capture.trace.make_fx:make_fx",
        "get_isolated_graphmodule": "pullback.capture.trace.make_fx:get_isolated_graphmodule",
        "DecompositionInterpreter": "pullback.capture.trace.decomposing:DecompositionInterpreter",
        **{n: f"pullback.capture.trace.proxy_mode:{n}" for n in ("PythonKeyTracer", "ProxyTorchDispatchMode")},
        "get_proxy_mode": "pullback.compat.private_names:get_proxy_mode",
        "maybe_disable_fake_tensor_mode": "pullback.capture.fake.mode:unset_fake_temporarily",
    },
}
