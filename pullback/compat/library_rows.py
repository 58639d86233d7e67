"""PyTorch's private names around `torch.library`, and where they live here: a part of the table in `torch`."""

from __future__ import annotations

C_ROWS: dict[str, str] = {
    "DispatchKey": "pullback.library.keys:DispatchKey",
    "DispatchKeySet": "pullback.library.keys:DispatchKeySet",
    "_ExcludeDispatchKeyGuard": "pullback.library.dispatcher:ExcludeDispatchKeyGuard",
    "_AutoDispatchBelowAutograd": "pullback.library.dispatcher:AutoDispatchBelowAutograd",
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
        "custom_ops": "torch._library.custom_ops:",
        "fake_impl": "torch._library.fake_impl:",
        "infer_schema": "torch._library.infer_schema:",
        "utils": "torch._library.utils:",
    },
    "torch._library.custom_ops": {
        "CustomOpDef": "pullback.library.custom:CustomOpDef",
        "custom_op": "pullback.library.custom:custom_op",
        "_maybe_get_opdef": "pullback.library.custom:find_definition",
    },
    "torch._library.fake_impl": {
        "FakeImplCtx": "pullback.library.fake:FakeImplCtx",
        "set_ctx_getter": "pullback.library.fake:set_ctx_getter",
    },
    "torch._library.infer_schema": {"infer_schema": "pullback.library.inference:infer_schema"},
    "torch._library.triton": {
        "triton_op": "pullback.library.triton:triton_op",
        "wrap_triton": "pullback.library.triton:wrap_triton",
    },
    "torch._library.utils": {
        "lookup_op": "pullback.library.functions:lookup",
        "parse_namespace": "pullback.library.registration:split_name",
    },
    "torch._custom_ops": {},
    "torch._custom_op": {"impl": "torch._custom_op.impl:"},
    "torch._custom_op.impl": {"infer_schema": "pullback.library.inference:infer_schema"},
    "torch.testing._internal.optests.generate_tests": {
        "OpCheckError": "pullback.library.opcheck:OpCheckError",
        "opcheck": "pullback.library.opcheck:opcheck",
    },
}
