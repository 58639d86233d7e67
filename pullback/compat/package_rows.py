"""Where names live here that packages import from modules of PyTorch's own: optimizers, data, sparse indices, devices."""

from __future__ import annotations

_GROUPING = "pullback.optim.grouping"
_FUNCTIONS = "pullback.compat.functions"

ROWS: dict[str, dict[str, str]] = {
    "torch.utils._ordered_set": {"OrderedSet": "pullback.utils.ordered_set:OrderedSet"},
    "torch.amp": {f"_{name}_autocast": f"pullback.amp.autocast:{name}_autocast" for name in ("enter", "exit")},
    "torch.utils._foreach_utils": {
        "Indices": f"{_GROUPING}:Indices",
        "TensorListList": f"{_GROUPING}:Lists",
        "_group_tensors_by_device_and_dtype": f"{_GROUPING}:group_by_device_and_dtype",
        "_get_foreach_kernels_supported_devices": f"{_GROUPING}:devices_with_list_kernels",
        "_get_fused_kernels_supported_devices": f"{_GROUPING}:devices_with_fused_kernels",
        "_device_has_foreach_support": f"{_GROUPING}:device_takes_lists",
        "_has_foreach_support": f"{_GROUPING}:has_list_support",
    },
    "torch.optim.optimizer": {
        "_get_capturable_supported_devices": f"{_GROUPING}:capturable_devices",
        "_default_to_fused_or_foreach": f"{_GROUPING}:default_kernels",
        "_get_value": f"{_GROUPING}:value_of",
        "_stack_if_compiling": f"{_GROUPING}:as_they_are",
        "_view_as_real": f"{_GROUPING}:view_as_real_",
        "_dispatch_sqrt": f"{_GROUPING}:square_root",
        "_global_optimizer_pre_hooks": "pullback.optim.optimizer:_global_pre_hooks",
        "_global_optimizer_post_hooks": "pullback.optim.optimizer:_global_post_hooks",
    },
    "torch.distributions.multivariate_normal": {
        "_precision_to_scale_tril": "pullback.distributions.gaussian_algebra:factor_from_precision",
        "_batch_mahalanobis": "pullback.distributions.gaussian_algebra:square_distance",
        "_batch_mv": "pullback.distributions.gaussian_algebra:matvec",
    },
    "torch.nn.parameter": {"_ParameterMeta": "pullback.core.tensor:_ParameterMeta"},
    "torch.nn.init": {"_no_grad_uniform_": "pullback.nn.init:uniform_"},
    "torch.hub": {"urlparse": "urllib.parse:urlparse"},
    "torch.jit.annotations": {name: f"typing:{name}" for name in ("Any", "Dict", "List", "Optional", "Tuple", "Union")},
    "torch.utils.data._utils.collate": {"np_str_obj_array_pattern": "pullback.utils.data.collate:NO_NUMBERS"},
    "torch.profiler.profiler": {"_default_schedule_fn": f"{_FUNCTIONS}:always_record"},
    "torch.cuda.profiler": {"profile": f"{_FUNCTIONS}:no_cuda_profile"},
    "torch._inductor": {"cudagraph_mark_step_begin": "pullback.surface.compiler:cudagraph_mark_step_begin"},
    "torch.distributed.utils": {"_sync_module_states": f"{_FUNCTIONS}:sync_module_states"},
}

# Functions on tensors that `torch` has without documenting them.
TORCH_ROWS: dict[str, str] = {
    "_shape_as_tensor": f"{_FUNCTIONS}:shape_as_tensor",
    "_assert_async": f"{_FUNCTIONS}:assert_async",
    "_check_tensor_all": f"{_FUNCTIONS}:check_tensor_all",
    "_check_tensor_all_with": f"{_FUNCTIONS}:check_tensor_all_with",
    "_convert_indices_from_coo_to_csr": f"{_FUNCTIONS}:rows_to_compressed",
    "_convert_indices_from_csr_to_coo": f"{_FUNCTIONS}:compressed_to_rows",
    "_debug_has_internal_overlap": "pullback.compat.private_names:has_internal_overlap",
    "Storage": "pullback:FloatStorage",
    "_segment_reduce": "pullback:segment_reduce",
    **{
        f"_cast_{name}": f"{_FUNCTIONS}:cast_{name}"
        for name in ("Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
    },
    "TensorType": f"{_FUNCTIONS}:TensorType",
}
