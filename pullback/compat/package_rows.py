"""Where names live here that packages import from modules of PyTorch's own: optimizers, data, sparse indices, devices."""

from __future__ import annotations

_GROUPING = "pullback.optim.grouping"
_FUNCTIONS = "pullback.compat.functions"
_FUNCTIONAL = "pullback.joint.functional_tensors"
_NAMES = "pullback.compat.package_names"
_TRAINING = "pullback.compat.training_names"

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
    "torch.nn.init": {
        "_no_grad_fill_": "pullback.nn.init:constant_",
        "_no_grad_normal_": "pullback.nn.init:normal_",
        "_no_grad_trunc_normal_": "pullback.nn.init:trunc_normal_",
        "_no_grad_uniform_": "pullback.nn.init:uniform_",
        "_no_grad_zero_": "pullback.nn.init:zeros_",
    },
    "torch.backends": {"__allow_nonbracketed_mutation": "pullback.surface.backends.switches:unfrozen"},
    "torch._C": {
        "ScriptMethod": f"{_TRAINING}:ScriptMethod",
        "_jit_set_profiling_executor": f"{_NAMES}:profiling_executor.set",
        "_jit_set_profiling_mode": f"{_NAMES}:profiling_mode.set",
        "_jit_override_can_fuse_on_cpu": f"{_NAMES}:fusion_on_cpu.set",
        "_jit_override_can_fuse_on_gpu": f"{_NAMES}:fusion_on_gpu.set",
        "_jit_can_fuse_on_cpu": f"{_NAMES}:fusion_on_cpu.get",
        "_jit_can_fuse_on_gpu": f"{_NAMES}:fusion_on_gpu.get",
        "_jit_set_texpr_fuser_enabled": f"{_NAMES}:tensor_expressions.set",
        "_jit_texpr_fuser_enabled": f"{_NAMES}:tensor_expressions.get",
        "_jit_set_nvfuser_enabled": f"{_NAMES}:nvfuser.set",
        "_jit_nvfuser_enabled": f"{_NAMES}:nvfuser.get",
    },
    "torch._C._onnx": {
        name: f"pullback.surface.onnx.enumerations:{name}"
        for name in ("OperatorExportTypes", "TensorProtoDataType", "TrainingMode")
    },
    "torch._tensor_str": {"_str_intern": "pullback.core.printing:tensor_repr"},
    "torch.nn.utils._per_sample_grad": {
        "call_for_per_sample_grads": "pullback.nn.utils.per_sample:call_for_per_sample_grads"
    },
    "torch.utils.data._utils.pin_memory": {
        "pin_memory": "pullback.utils.data.pinning:pinned",
        "_pin_memory_loop": "pullback.utils.data.pinning:pin_all",
    },
    "torch.optim.lr_scheduler": {"_enable_get_lr_call": "pullback.optim.lr_scheduler.base:_enable_get_lr_call"},
    "torch.utils.data._utils.fetch": {
        f"_{name}": f"pullback.utils.data.fetch:{home}"
        for name, home in (
            ("BaseDatasetFetcher", "Fetcher"),
            ("MapDatasetFetcher", "MapFetcher"),
            ("IterableDatasetFetcher", "IterableFetcher"),
        )
    },
    "torch.utils.data._utils": {
        "HAS_NUMPY": f"{_NAMES}:HAS_NUMPY",
        "MP_STATUS_CHECK_INTERVAL": "pullback.utils.data.pinning:WAIT_SECONDS",
        "python_exit_status": "pullback.utils.data.signals:python_is_ending",
    },
    "torch.utils.data._utils.signal_handling": {
        "_set_worker_pids": "pullback.utils.data.signals:watch",
        "_remove_worker_pids": "pullback.utils.data.signals:forget",
        "_error_if_any_worker_fails": "pullback.utils.data.signals:raise_for_dead_workers",
        "_set_worker_signal_handlers": "pullback.utils.data.signals:prepare_worker",
        "_set_SIGCHLD_handler": "pullback.utils.data.signals:handle_ended_children",
    },
    "torch.utils.data._utils.worker": {
        "_IterableDatasetStopIteration": "pullback.utils.data.worker:Exhausted",
        "_ResumeIteration": "pullback.utils.data.worker:Resume",
        "ManagerWatchdog": "pullback.utils.data.worker:ParentWatch",
    },
    "torch.utils.data": {"_DatasetKind": "pullback.utils.data.fetch:DatasetKind"},
    "torch.utils.data.dataloader": {"_sharding_worker_init_fn": "pullback.utils.data.graph_settings:shard_and_start"},
    "torch.utils.data.datapipes.datapipe": {
        "*": "pullback.utils.data.datapipes",
        "_IterDataPipeSerializationWrapper": "pullback.utils.data.datapipes:SentIterDataPipe",
        "_MapDataPipeSerializationWrapper": "pullback.utils.data.datapipes:SentMapDataPipe",
    },
    "torch.hub": {"urlparse": "urllib.parse:urlparse"},
    "torch.jit.annotations": {name: f"typing:{name}" for name in ("Any", "Dict", "List", "Optional", "Tuple", "Union")},
    "torch.utils.data._utils.collate": {"np_str_obj_array_pattern": "pullback.utils.data.collate:NO_NUMBERS"},
    "torch.profiler.profiler": {"_default_schedule_fn": f"{_FUNCTIONS}:always_record"},
    "torch.cuda.profiler": {"profile": f"{_FUNCTIONS}:no_cuda_profile"},
    "torch._inductor": {"cudagraph_mark_step_begin": "pullback.surface.compiler:cudagraph_mark_step_begin"},
    "torch._dynamo": {"reset_code_caches": "pullback.surface.compiler:reset"},
    "torch._dynamo.utils": {"warn_once": f"{_NAMES}:warn_once"},
    "torch._utils": {
        "is_compiling": "pullback.surface.compiler:is_compiling",
        "_take_tensors": f"{_NAMES}:take_tensors",
        "ExceptionWrapper": "pullback.utils.data.worker:Failure",
    },
    "torch.functional": {"__all__": f"{_TRAINING}:FUNCTIONAL"},
    "torch._ops": {"_OpNamespace": "pullback.ops.system.packet:OpNamespace"},
    "torch.autograd.functional": {
        "_as_tuple": f"{_TRAINING}:as_tuple",
        "_construct_standard_basis_for": f"{_TRAINING}:standard_basis",
        "_grad_postprocess": "pullback.autograd.functional:_settled",
        "_tuple_postprocess": f"{_TRAINING}:unpacked",
    },
    "torch.optim.lbfgs": {
        "_cubic_interpolate": f"{_TRAINING}:cubic_interpolate",
        "_strong_wolfe": f"{_TRAINING}:strong_wolfe_search",
    },
    "torch.amp.grad_scaler": {"_refresh_per_optimizer_state": f"{_TRAINING}:fresh_scaler_state"},
    "torch._functorch.eager_transforms": {"_wrap_tensor_for_grad": "pullback.batching.interpreters:wrap_for_grad"},
    "torch.distributed.elastic.utils": {},
    "torch.distributed.elastic.utils.distributed": {"get_free_port": f"{_TRAINING}:free_port"},
    "torch._inductor.decomposition": {
        "register_decomposition": "pullback.export.decompositions:register_decomposition",
        "decompositions": "pullback.export.decompositions:decomposition_table",
    },
    "torch.sparse._triton_ops_meta": {name: f"{_NAMES}:{name}_triton" for name in ("get_meta", "update", "minimize")},
    "torch.distributed._functional_collectives": {"AsyncCollectiveTensor": f"{_NAMES}:AsyncCollectiveTensor"},
    "torch.distributed.distributed_c10d": {"_get_global_rank": "pullback.distributed:get_global_rank"},
    "torch._C._cpu": {
        name: f"pullback.surface.cpu:{name}"
        for name in (
            "_is_amx_fp16_supported",
            "_is_amx_tile_supported",
            "_is_avx2_supported",
            "_is_avx512_bf16_supported",
            "_is_avx512_supported",
            "_is_vnni_supported",
        )
    },
    "torch._C._distributed_rpc": {
        "PyRRef": "pullback.distributed.rpc:RRef",
        "_is_current_rpc_agent_set": "pullback.distributed.rpc:is_current_rpc_agent_set",
    },
    "torch.nn.parallel.comm": {"*": "pullback.cuda.comm"},
    "torch.jit._state": {"_enabled": f"{_NAMES}:jit_state"},
    "torch._higher_order_ops.inline_asm_elementwise": {"inline_asm_elementwise": f"{_NAMES}:inline_asm_elementwise"},
    "torch.utils._triton": {name: f"{_NAMES}:{name}" for name in ("has_triton", "has_triton_package")},
    "torch.utils._device": {name: f"{_NAMES}:{name}" for name in ("DeviceContext", "set_device")},
    "torch.cuda": {"_lazy_call": f"{_NAMES}:when_cuda_starts"},
    "torch.cuda.amp.common": {"*": "pullback.cuda.amp_common"},
    "torch.cuda.amp.grad_scaler": {
        "GradScaler": "pullback.cuda.amp:GradScaler",
        "OptState": "pullback.amp.grad_scaler:OptState",
    },
    "torch.cuda.amp.autocast_mode": {
        name: f"pullback.cuda.amp:{name}" for name in ("autocast", "custom_bwd", "custom_fwd")
    },
    "torch.autograd": {"_is_checkpoint_valid": f"{_NAMES}:is_checkpoint_valid"},
    "torch.autograd.profiler": {"format_time": "pullback.autograd.profiler.times:format_time"},
    "torch.autograd.profiler_util": {"_format_time": "pullback.autograd.profiler.times:format_time"},
    "torch.distributions.transforms": {"_clipped_sigmoid": f"{_NAMES}:clipped_sigmoid"},
    "torch.nn.functional": {
        "_none_or_dtype": f"{_NAMES}:none_or_dtype",
        "_canonical_mask": f"{_NAMES}:canonical_mask",
        "_mha_shape_check": "pullback.ops.network.multihead:_is_batched",
    },
    "torch.nn.modules.pooling": {
        "_AdaptiveAvgPoolNd": "pullback.nn.pooling:_AdaptivePool",
        "_AdaptiveMaxPoolNd": "pullback.nn.pooling:_AdaptiveMaxPool",
    },
    "torch.distributed": {"GradBucket": "pullback.distributed.data_parallel:GradBucket"},
    "torch._C._distributed_c10d": {"GradBucket": "pullback.distributed.data_parallel:GradBucket"},
    "torch.distributed._composable_state": {
        "_State": f"{_TRAINING}:ModuleState",
        "_get_module_state": f"{_TRAINING}:module_state",
    },
    **{
        module: {name: f"pullback.distributed.elastic_launch:{name}" for name in ("LaunchConfig", "elastic_launch")}
        for module in ("torch.distributed.launcher", "torch.distributed.launcher.api")
    },
    "torch.distributed.fsdp._common_utils": {"_FSDPState": f"{_TRAINING}:FlatShardState"},
    "torch.distributed._tensor.device_mesh": {
        name: f"pullback.distributed.device_mesh:{name}" for name in ("DeviceMesh", "init_device_mesh")
    },
    "torch.utils.tensorboard._pytorch_graph": {"graph": "pullback.utils.tensorboard.graphs:graph"},
    "torch.utils.tensorboard._convert_np": {"make_np": "pullback.utils.tensorboard.summary:as_array"},
    "torch.utils.tensorboard._utils": {"figure_to_image": "pullback.utils.tensorboard.writer:figure_to_image"},
    "torch.optim.swa_utils": {"_group_tensors_by_device_and_dtype": f"{_GROUPING}:group_by_device_and_dtype"},
    "torch.distributed.utils": {"_sync_module_states": f"{_FUNCTIONS}:sync_module_states"},
}

# Functions on tensors that `torch` has without documenting them.
TORCH_ROWS: dict[str, str] = {
    "_shape_as_tensor": f"{_FUNCTIONS}:shape_as_tensor",
    "_assert_async": f"{_FUNCTIONS}:assert_async",
    "_assert_tensor_metadata": "pullback.ops.make.assertions:assert_tensor_metadata",
    "_check_tensor_all": f"{_FUNCTIONS}:check_tensor_all",
    "_check_tensor_all_with": f"{_FUNCTIONS}:check_tensor_all_with",
    "_convert_indices_from_coo_to_csr": f"{_FUNCTIONS}:rows_to_compressed",
    "_convert_indices_from_csr_to_coo": f"{_FUNCTIONS}:compressed_to_rows",
    "_debug_has_internal_overlap": "pullback.compat.private_names:has_internal_overlap",
    "Storage": "pullback.compat.private_names:Storage",
    "_register_device_module": "pullback.compat.private_names:register_device_module",
    "_storage_classes": "pullback.ops.make.storages:classes",
    "_embedding_bag_forward_only": "pullback.ops.network.embedding:embedding_bag_forward_only",
    "_segment_reduce": "pullback:segment_reduce",
    **{
        f"_cast_{name}": f"{_FUNCTIONS}:cast_{name}"
        for name in ("Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
    },
    "TensorType": "pullback.ops.system.schema_types:TensorType",
    "DeviceObjType": "pullback.ops.system.schema_types:DeviceObjType",
    "_has_compatible_shallow_copy_type": f"{_NAMES}:has_compatible_shallow_copy_type",
    "_disable_dynamo": "pullback.surface.compiler:disable",
    "_enable_functionalization": f"{_FUNCTIONAL}:enable_functionalization",
    "_disable_functionalization": f"{_FUNCTIONAL}:disable_functionalization",
    "_is_functional_tensor": f"{_FUNCTIONAL}:is_functional",
    "_to_functional_tensor": f"{_FUNCTIONAL}:to_functional",
    "_from_functional_tensor": f"{_FUNCTIONAL}:from_functional",
    "_sync": f"{_FUNCTIONAL}:sync",
    "_freeze_functional_tensor": f"{_FUNCTIONAL}:freeze",
    "_mirror_autograd_meta_to": f"{_FUNCTIONAL}:mirror_autograd",
    "_amp_update_scale_": f"{_TRAINING}:update_scale",
    "_weight_int8pack_mm": f"{_TRAINING}:int8_matmul",
    "__all__": f"{_TRAINING}:PUBLIC",
    "set_vital": f"{_TRAINING}:set_vital",
    "_amp_foreach_non_finite_check_and_unscale_": f"{_NAMES}:unscale_lists",
}
