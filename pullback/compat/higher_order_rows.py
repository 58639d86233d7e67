"""Where the names of PyTorch's higher-order operators live here."""

from __future__ import annotations

_HOME = "pullback.capture.higher_order"


def _rows(module: str, *names: str, **renamed: str) -> dict[str, str]:
    """Names that a module of ours has too, and names it has under others."""
    home = f"{_HOME}.{module}" if module else _HOME
    return {n: f"{home}:{n}" for n in names} | {n: f"{home}:{own}" for n, own in renamed.items()}


_CONTROL = {
    **_rows("cond", "cond", "cond_op"),
    **_rows("while_loop", "while_loop", "while_loop_op"),
    **_rows("scan", "scan", "scan_op"),
    **_rows("map", "map", "map_impl"),
    **_rows("associative_scan", "associative_scan"),
}
_WRAPS = _rows(
    "wrap", "wrap", "wrap_with_set_grad_enabled", "wrap_with_autocast", "dynamo_bypassing_wrapper",
)  # fmt: skip
_CHECKPOINT = _rows("checkpoint", "tag_activation_checkpoint", "wrap_activation_checkpoint")

_TRANSFORMS = ("grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap", "linearize")
_FUNCTIONAL = (
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "make_functional",
    "make_functional_with_buffers",
)  # fmt: skip

ROWS: dict[str, dict[str, str]] = {
    "torch._higher_order_ops": {
        **_CONTROL,
        **_rows(
            "flex_attention", flex_attention="flex_attention_op", flex_attention_backward="flex_attention_backward_op"
        ),
        **_rows("auto_functionalized", "auto_functionalized"),
        **_rows("auto_functionalized_v2", "auto_functionalized_v2"),
    },
    "torch._higher_order_ops.cond": _rows("cond", "cond", "cond_op", _merge_output="merge_output"),
    "torch._higher_order_ops.while_loop": {
        **_rows("while_loop", "while_loop", "while_loop_op"),
        **_rows("while_loop_stack_output", "while_loop_stack_output_op"),
    },
    # Outside of graphs both are loops, so what PyTorch holds them to in its tests is themselves.
    "torch._higher_order_ops.scan": _rows(
        "scan", "scan", "scan_op", "generic_scan", "wrap_combine_fn_flat", _fake_scan="scan"
    ),
    "torch._higher_order_ops.map": _rows("map", "map", "map_impl", _fake_map="map"),
    "torch._higher_order_ops.associative_scan": _rows("associative_scan", "associative_scan", "associative_scan_op"),
    "torch._higher_order_ops.out_dtype": _rows("out_dtype", "out_dtype"),
    "torch._higher_order_ops.effects": {
        "_register_effectful_op": "pullback.library.effects:register_effectful_op",
        "_EffectType": "pullback.library.effects:EffectType",
    },
    "torch._library.effects": {"EffectType": "pullback.library.effects:EffectType"},
    "torch._higher_order_ops.schema": _rows("schema", "HopSchemaGenerator", HopSchema="CallSchema"),
    "torchgen": {"gen_schema_utils": "torchgen.gen_schema_utils:"},
    "torchgen.gen_schema_utils": _rows("schema", TypeGen="ValueType", FunctionSchemaGen="CallSchema"),
    "torch._higher_order_ops.wrap": {**_WRAPS, **_CHECKPOINT},
    "torch._higher_order_ops.hints_wrap": _rows("hints", "hints_wrapper", HintsWrapper="HintsWrapper"),
    "torch._higher_order_ops.flex_attention": _rows(
        "flex_attention", flex_attention="flex_attention_op", flex_attention_backward="flex_attention_backward_op"
    ),
    "torch._higher_order_ops.auto_functionalize": {
        **_rows("auto_functionalized", "auto_functionalized"),
        **_rows("auto_functionalized_v2", "auto_functionalized_v2"),
    },
    "torch._higher_order_ops.utils": _rows("base", "autograd_not_implemented"),
    "torch._prims": {},
    "torch._prims.rng_prims": _rows("rng", "run_and_save_rng_state", "run_with_rng_state"),
    "torch._dynamo._trace_wrapped_higher_order_op": {
        **_rows("trace_wrapped", "trace_wrapped", "_trace_wrapped_op"),
        **_rows("flex_attention", "TransformGetItemToIndex"),
    },
    "functorch": {
        **{
            name: f"pullback.compat.functorch_names:{name}"
            for name in (*_TRANSFORMS, "functionalize")
            if name != "linearize"
        },
        **{name: f"pullback.func.functional_modules:{name}" for name in _FUNCTIONAL},
        **{name: f"pullback.compat.functorch_names:{name}" for name in _FUNCTIONAL if name[0].islower()},
        "linearize": "pullback.func:linearize",
        "make_fx": "pullback.capture.trace.make_fx:make_fx",
        "compile": "functorch.compile:",
        "einops": "functorch.einops:",
        "experimental": "functorch.experimental:",
    },
    "torch.autograd.function": {"_SingleLevelFunction": "pullback.autograd.function:Function"},
    "torch._functorch.utils": {
        "enable_single_level_autograd_function": "pullback.batching.interpreters:single_level_functions"
    },
    "torch._functorch.deprecated": {
        name: f"pullback.compat.functorch_names:{name}"
        for name in (*_TRANSFORMS, "functionalize", *(n for n in _FUNCTIONAL if n[0].islower()))
        if name != "linearize"
    },
    "functorch.einops": {"rearrange": "pullback.func.rearrange:rearrange"},
    "functorch.experimental": {
        "chunk_vmap": "pullback.func:chunk_vmap",
        "functionalize": "pullback.func:functionalize",
        "hessian": "pullback.func:hessian",
        "jacfwd": "pullback.func:jacfwd",
        "jvp": "pullback.func:jvp",
        "replace_all_batch_norm_modules_": "pullback.func:replace_all_batch_norm_modules_",
        "control_flow": "functorch.experimental.control_flow:",
    },
    "torch._functorch.eager_transforms": {
        **{name: f"pullback.func:{name}" for name in _TRANSFORMS if name != "vmap"},
        "functionalize": "pullback.func:functionalize",
        "_slice_argnums": "pullback.func.arguments:slice_argnums",
    },
    "torch._vmap_internals": {
        "vmap": "pullback.compat.legacy_vmap:vmap",
        "_vmap": "pullback.compat.legacy_vmap:vmap_without_warning",
    },
    "torch._functorch.vmap": {
        "vmap": "pullback.func:vmap",
        "Tensor": "pullback:Tensor",
        "_process_batched_inputs": "pullback.batching.vmap:process_inputs",
        "_create_batched_inputs": "pullback.batching.vmap:batch_inputs",
        "_unwrap_batched": "pullback.batching.vmap:unwrap_outputs",
        "_maybe_remove_batch_dim": "pullback.batching.vmap:unwrap_output",
        "restore_vmap": "pullback.batching.vmap:restore_vmap",
        "_add_batch_dim": "pullback.batching.batched:make_batched",
        "_remove_batch_dim": "pullback.batching.vmap:remove_batch_dim",
        "_get_name": "pullback.batching.vmap:name_of",
        **{
            name: f"pullback.utils.pytree:{name}"
            for name in ("tree_flatten", "tree_unflatten", "tree_map_", "_broadcast_to_and_flatten", "TreeSpec")
        },
    },
    "torch._functorch.autograd_function": {
        "CtxWithSavedTensors": "pullback.func.custom:CtxWithSavedTensors",
        "VmapInfo": "pullback.func.custom:VmapInfo",
        "reductify_leaf": "pullback.func.custom:reduced_gradient",
    },
    "torch._functorch.apis": {
        name: f"pullback.func:{name}" for name in ("vmap", "grad", "grad_and_value", "chunk_vmap")
    },
    "torch._functorch.functional_call": {
        name: f"pullback.func:{name}" for name in ("functional_call", "stack_module_state")
    },
    "torch._functorch.make_functional": {
        name: f"pullback.func.functional_modules:{name}"
        for name in (*_FUNCTIONAL, "functional_init", "functional_init_with_buffers")
    },
    "functorch.experimental.control_flow": {
        **_rows("cond", "cond"),
        **_rows("map", "map"),
    },
}
