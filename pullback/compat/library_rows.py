"""PyTorch's private names around `torch.library`, and where they live here: a part of the table in `torch`."""

from __future__ import annotations

C_ROWS: dict[str, str] = {
    "DispatchKey": "pullback.library.keys:DispatchKey",
    "DispatchKeySet": "pullback.library.keys:DispatchKeySet",
    "_ExcludeDispatchKeyGuard": "pullback.library.dispatcher:ExcludeDispatchKeyGuard",
    "ExcludeDispatchKeyGuard": "pullback.library.dispatcher:ExcludeDispatchKeyGuard",
    "_IncludeDispatchKeyGuard": "pullback.library.dispatcher:IncludeDispatchKeyGuard",
    "IncludeDispatchKeyGuard": "pullback.library.dispatcher:IncludeDispatchKeyGuard",
    "_dispatch_tls_local_include_set": "pullback.library.dispatcher:included_keys",
    "_dispatch_tls_local_exclude_set": "pullback.library.dispatcher:excluded_keys",
    "_set_conj": "pullback.ops.elementwise.complex_numbers:set_conj",
    "_set_neg": "pullback.ops.elementwise.complex_numbers:set_neg",
    "_AutoDispatchBelowAutograd": "pullback.library.dispatcher:AutoDispatchBelowAutograd",
    "Tag": "pullback.surface.names:Tag",
    "_any_output_is_alias_to_input_or_output": "pullback.library.dispatcher:any_output_is_alias",
    "_any_requires_grad": "pullback.library.dispatcher:any_requires_grad",
    "_jit_get_schemas_for_operator": "pullback.library.dispatcher:schemas_of",
    "_jit_resolve_packet": "pullback.library.dispatcher:resolve_packet",
    "_dispatch_call_boxed": "pullback.library.dispatcher:call_operator",
    "_dispatch_find_schema_or_throw": "pullback.library.dispatcher:find_operator",
    "_dispatch_isTensorSubclassLike": "pullback.library.dispatcher:is_subclass_like",
    "_dispatch_keys": "pullback.library.dispatcher:keys_of",
    "_dispatch_key_set": "pullback.library.dispatcher:describe_keys",
    "_jit_get_all_schemas": "pullback.library.dispatcher:all_schemas",
    "TensorType": "pullback.ops.system.schema_types:TensorType",
    "DeviceObjType": "pullback.ops.system.schema_types:DeviceObjType",
    "OptionalType": "pullback.ops.system.schema_types:OptionalType",
    "_dispatch_has_kernel": "pullback.library.dispatcher:has_kernel",
    "_dispatch_has_kernel_for_dispatch_key": "pullback.library.dispatcher:has_kernel_for_dispatch_key",
    "_dispatch_key_for_device": "pullback.library.keys:for_device",
    "_get_autograd_fallback_mode": "pullback.library.autograd:get_fallback_mode",
    "_set_autograd_fallback_mode": "pullback.library.autograd:set_fallback_mode",
    "parse_schema": "pullback.library.dispatcher:parse_schema",
    "FunctionSchema": "pullback.ops.system.schema:Schema",
}
ROWS: dict[str, dict[str, str]] = {
    "torch._library": {
        "autograd": "torch._library.autograd:",
        "custom_ops": "torch._library.custom_ops:",
        "fake_impl": "torch._library.fake_impl:",
        "infer_schema": "torch._library.infer_schema:",
        "simple_registry": "torch._library.simple_registry:",
        "utils": "torch._library.utils:",
    },
    "torch._library.autograd": {"supports_tensorlist": "pullback.library.tensor_lists:supports_tensorlist"},
    "torch._library.simple_registry": {"*": "pullback.library.simple_registry"},
    "torch._library.custom_ops": {
        "CustomOpDef": "pullback.library.custom:CustomOpDef",
        "custom_op": "pullback.library.custom:custom_op",
        "_maybe_get_opdef": "pullback.library.custom:find_definition",
    },
    "torch._library.fake_impl": {
        "FakeImplCtx": "pullback.library.fake:FakeImplCtx",
        "set_ctx_getter": "pullback.library.fake:set_ctx_getter",
    },
    "torch._library.fake_profile": {"*": "pullback.library.profiles"},
    "torch._library.infer_schema": {
        "infer_schema": "pullback.library.inference:infer_schema",
        "tuple_to_list": "pullback.library.inference:tuple_to_list",
        "SUPPORTED_PARAM_TYPES": "pullback.library.inference:PARAMETERS",
        "SUPPORTED_RETURN_TYPES": "pullback.library.inference:RETURNS",
    },
    "torch._library.triton": {
        "triton_op": "pullback.library.triton:triton_op",
        "wrap_triton": "pullback.library.triton:wrap_triton",
    },
    "torch._library.utils": {
        "get_layout_constraint_tag": "pullback.library.dispatcher:layout_constraint_tag",
        "hop_schema_from_fx_node": "pullback.capture.higher_order.schema:hop_schema_from_fx_node",
        "is_functional_schema": "pullback.library.stepwise:is_functional",
        "is_tensorlist_like_type": "pullback.library.dispatcher:is_tensor_list",
        "lookup_op": "pullback.library.functions:lookup",
        "parse_namespace": "pullback.library.registration:split_name",
    },
    "torch._custom_ops": {
        **{
            name: f"pullback.library.stepwise:{name}"
            for name in ("custom_op", "impl", "impl_abstract", "impl_save_for_backward", "impl_backward", "get_op")
        },
        "_destroy": "pullback.library.stepwise:destroy",
        "get_ctx": "pullback.library.fake:get_ctx",
    },
    "torch._custom_op": {"impl": "torch._custom_op.impl:"},
    "torch._custom_op.impl": {
        "CustomOp": "pullback.library.stepwise:CustomOp",
        "RESERVED_NS": "pullback.library.stepwise:RESERVED",
        "SUPPORTED_DEVICE_TYPE_TO_KEY": "pullback.library.stepwise:DEVICE_KEYS",
        "custom_op": "pullback.library.stepwise:custom_op_handle",
        "get_op": "pullback.library.stepwise:get_op",
        "get_ctx": "pullback.library.fake:get_ctx",
        "global_registry": "pullback.library.stepwise:definitions",
        "infer_schema": "pullback.library.inference:infer_schema",
        "parse_qualname": "pullback.library.stepwise:split_name",
        "validate_namespace": "pullback.library.stepwise:check_namespace",
    },
    "torch.testing._internal.optests": {
        name: f"pullback.library.opcheck:{name}"
        for name in ("OpCheckError", "opcheck", "autograd_registration_check", "fake_check")
    },
    "torch.testing._internal.optests.generate_tests": {
        "OpCheckError": "pullback.library.opcheck:OpCheckError",
        "opcheck": "pullback.library.opcheck:opcheck",
    },
    "torch._utils_internal": {
        "get_file_path": "pullback.compat.private_names:joined_path",
        "get_file_path_2": "pullback.compat.private_names:joined_path",
    },
}
