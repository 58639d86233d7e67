"""Where private names of tensors, autograd, storages and the C extension live here: rows for the table of names."""

from __future__ import annotations

from .library_rows import C_ROWS as LIBRARY_C_ROWS
from .package_rows import TORCH_ROWS

# "module": {name: "home:attribute"}. Rows of a module that exists here are set on it; other modules are made of rows.
ROWS: dict[str, dict[str, str]] = {
    "torch": {
        "_C": "torch._C:",
        "_VF": "torch._VF:",
        "_dynamo": "torch._dynamo:",
        "_functorch": "torch._functorch:",
        "_export": "torch._export:",
        "_decomp": "torch._decomp:",
        "_inductor": "torch._inductor:",
        "_logging": "torch._logging:",
        "_guards": "torch._guards:",
        "_prims_common": "torch._prims_common:",
        "_subclasses": "torch._subclasses:",
        "types": "torch.types:",
        "F": "pullback.nn.functional:",
        "FunctionSchema": "pullback.ops.system.schema:Schema",
        **TORCH_ROWS,
    },
    "torch.autograd": {
        "_force_original_view_tracking": "pullback.autograd.views:original_view_tracking",
        "_unsafe_preserve_version_counter": "pullback.autograd.versions:unsafe_preserve_version_counter",
        "_calculate_shape": "pullback.autograd.calls:calculate_shape",
        "torch": "pullback:",
        "_functions": "torch.autograd._functions:",
        "_profiler_enabled": "pullback.autograd.profiler:profiler_enabled",
    },
    "torch._C": {
        "is_grad_enabled": "pullback.core.modes:is_grad_enabled",
        "_set_grad_enabled": "pullback.core.modes:_set_grad_enabled",
        "_is_any_autocast_enabled": "pullback.compat.dynamo_names:is_any_autocast_enabled",
        "_debug_only_are_vmap_fallback_warnings_enabled": "pullback.batching.examples:are_loop_warnings_enabled",
        "_debug_only_display_vmap_fallback_warnings": "pullback.batching.examples:display_loop_warnings",
        "_WeakTensorRef": "pullback.core.weak:WeakTensorRef",
        "DisableTorchFunction": "pullback.ops.system.overrides:DisableTorchFunction",
        "DisableTorchFunctionSubclass": "pullback.ops.system.overrides:DisableTorchFunctionSubclass",
        "_disabled_torch_function_impl": "pullback.core.tensor:disabled_torch_function",
        "_disabled_torch_dispatch_impl": "pullback.core.tensor:disabled_torch_dispatch",
        "has_lapack": "pullback:has_lapack",
        "Generator": "pullback.core.random:Generator",
        "_current_graph_task_id": "pullback.autograd.engine:current_graph_task_id",
        "_current_autograd_node": "pullback.autograd.engine:current_node",
        "_will_engine_execute_node": "pullback.autograd.engine:will_execute",
        "_current_graph_task_execution_order": "pullback.autograd.engine:execution_order",
        "_set_cached_tensors_enabled": "pullback.autograd.cached_tensors:set_enabled",
        "_add_cached_tensor": "pullback.autograd.cached_tensors:add",
        "_remove_cached_tensor": "pullback.autograd.cached_tensors:remove",
        "_is_cached_tensor": "pullback.autograd.cached_tensors:is_cached",
        "_TensorMeta": "pullback.compat.private_names:TensorMeta",
        "PyTorchFileReader": "pullback.serialization.file_reader:PyTorchFileReader",
        "_log_api_usage_once": "pullback.compat.private_names:log_api_usage_once",
        "_is_torch_function_mode_enabled": "pullback.compat.private_names:is_function_mode_enabled",
        "_len_torch_function_stack": "pullback.compat.private_names:count_function_modes",
        "_get_tracing_state": "pullback.compat.private_names:get_tracing_state",
        "_get_privateuse1_backend_name": "pullback.compat.private_names:get_privateuse1_backend_name",
        "_are_functorch_transforms_active": "pullback.compat.private_names:are_transforms_active",
        "_get_accelerator": "pullback.compat.private_names:get_accelerator",
        "_get_default_device": "pullback.compat.private_names:get_default_device",
        "_is_alias_of": "pullback.compat.private_names:is_alias_of",
        "_TensorBase": "pullback:Tensor",
        "TensorBase": "pullback:Tensor",
        "StorageBase": "pullback:StorageBase",
        "_get_all_dtypes": "pullback.compat.private_names:all_dtypes",
        "dtype": "pullback:dtype",
        "device": "pullback:device",
        "Size": "pullback:Size",
        "Future": "pullback.surface.futures:Future",
        "ScriptModule": "pullback.surface.jit:ScriptModule",
        "ScriptFunction": "pullback.surface.jit:ScriptFunction",
        "_dynamo": "torch._C._dynamo:",
        "_functions": "torch._C._functions:",
        "_autograd": "torch._C._autograd:",
        "_profiler": "torch._C._profiler:",
        **LIBRARY_C_ROWS,
    },
    "torch._jit_internal": {
        "is_scripting": "pullback.surface.jit:is_scripting",
        "export": "pullback.surface.jit:export",
        "ignore": "pullback.surface.jit:ignore",
        "unused": "pullback.surface.jit:unused",
        "Final": "pullback.surface.jit:Final",
        "Future": "pullback.surface.futures:Future",
    },
    "torch._VF": {"*": "pullback", "unique_dim": "pullback.ops.reduce.searching:unique_dim"},
    "torch.autograd._functions": {"Resize": "pullback.autograd.legacy_functions:Resize"},
    "torch.nested._internal": {"nested_tensor": "torch.nested._internal.nested_tensor:"},
    "torch.nested._internal.nested_tensor": {
        name: f"pullback.compat.nested_names:{name}"
        for name in (
            "NestedTensor",
            "ViewNestedFromBuffer",
            "buffer_from_jagged",
            "jagged_from_list",
            "nested_view_from_values_offsets",
            "nested_view_from_values_offsets_lengths",
        )
    },
    "torch._C._functorch": {
        name: f"pullback.batching.inspection:{name}"
        for name in (
            "get_unwrapped",
            "is_batchedtensor",
            "is_functorch_wrapped_tensor",
            "is_legacy_batchedtensor",
            "maybe_get_bdim",
            "reshape_dim_into",
            "reshape_dim_outof",
        )
    }
    | {
        "_add_batch_dim": "pullback.batching.batched:make_batched",
        "_remove_batch_dim": "pullback.batching.vmap:remove_batch_dim",
    },
    "torch._C._nn": {
        "*": "pullback.nn.functional",
        "gelu_": "pullback.compat.private_names:gelu_",
        "_parse_to": "pullback.nn.module_conversion:_parse_to",
    },
    "torch.serialization": {
        "MAP_LOCATION": "pullback.compat.private_names:MAP_LOCATION",
        "_get_restore_location": "pullback.serialization.storages:restorer",
    },
    "torch.amp.autocast_mode": {
        "autocast": "pullback.amp.autocast:autocast",
        "_cast": "pullback.compat.private_names:cast",
        "_enter_autocast": "pullback.amp.autocast:enter_autocast",
        "_exit_autocast": "pullback.amp.autocast:exit_autocast",
        "custom_fwd": "pullback.amp:custom_fwd",
        "custom_bwd": "pullback.amp:custom_bwd",
        "is_autocast_available": "pullback.amp:is_autocast_available",
    },
    "torch.amp.grad_scaler": {"GradScaler": "pullback.amp:GradScaler", "OptState": "pullback.amp.grad_scaler:OptState"},
    "torch.cuda._utils": {"_get_device_index": "pullback.compat.private_names:get_device_index"},
    "torch.functional": {"*": "pullback"},
    "torch.utils.data.dataloader": {
        "_BaseDataLoaderIter": "pullback.utils.data.dataloader:DataLoaderIterator",
        "_SingleProcessDataLoaderIter": "pullback.utils.data.dataloader:InProcess",
        "_MultiProcessingDataLoaderIter": "pullback.utils.data.workers:ByWorkers",
        "_DatasetKind": "pullback.utils.data.fetch:DatasetKind",
        "_InfiniteConstantSampler": "pullback.utils.data.dataloader:Forever",
        "_collate_fn_t": "pullback.utils.data.collate:CollateFunction",
        "_worker_init_fn_t": "pullback.utils.data.worker:WorkerInitFunction",
    },
    "torch.utils.data._utils": {},
    "torch.utils.data._utils.worker": {
        "_generate_state": "pullback.utils.data.worker:seed_words",
        "WorkerInfo": "pullback.utils.data.worker:WorkerInfo",
    },
    "torch.onnx.symbolic_helper": {"parse_args": "pullback.surface.onnx:_parse_args"},
    "torch.utils.model_zoo": {
        "load_url": "pullback.surface.hub:load_state_dict_from_url",
        "tqdm": "pullback.compat.private_names:tqdm",
    },
    "torch.utils._contextlib": {"_DecoratorContextManager": "pullback.core.modes:DecoratorContextManager"},
    "torch._tensor_str": {
        "_tensor_str": "pullback.core.printing:tensor_body",
        "_str": "pullback.core.printing:tensor_repr",
        "_add_suffixes": "pullback.core.printing:with_suffixes",
        "printoptions": "pullback.core.printing:printoptions",
        "set_printoptions": "pullback.core.printing:set_printoptions",
        "get_printoptions": "pullback.core.printing:get_printoptions",
        "PRINT_OPTS": "pullback.core.printing:_options",
    },
    "torch.distributed.constants": {"default_pg_timeout": "pullback.distributed.distributed_c10d:default_pg_timeout"},
    "torch._C._functions": {
        "AccumulateGrad": "pullback.core.node:AccumulateGrad",
        "UndefinedGrad": "pullback.autograd.nodes:UndefinedGrad",
        "DelayedError": "pullback.autograd.nodes:DelayedError",
    },
    "torch._C._autograd": {
        "SavedTensor": "pullback.autograd.saved:SavedTensor",
        "_unsafe_set_version_counter": "pullback.autograd.versions:unsafe_set_version_counter",
        "_profiler_enabled": "pullback.autograd.profiler:profiler_enabled",
        "kineto_available": "pullback.autograd.profiler:kineto_available",
    },
    "torch._C._profiler": {
        "ProfilerActivity": "pullback.profiler:ProfilerActivity",
        "RecordScope": "pullback.profiler:RecordScope",
    },
    "torch.profiler.profiler": {
        "ProfilerAction": "pullback.profiler:ProfilerAction",
        "profile": "pullback.profiler:profile",
        "schedule": "pullback.profiler:schedule",
        "tensorboard_trace_handler": "pullback.profiler:tensorboard_trace_handler",
    },
    "torch._tensor": {
        "Tensor": "pullback:Tensor",
        "_rebuild_from_type_v2": "pullback.serialization.tensors:rebuild_from_type",
    },
    "torch._utils": {  # the functions that plain pickles name
        name: f"pullback.serialization.tensors:{name[1:]}"
        for name in (
            "_rebuild_tensor",
            "_rebuild_tensor_v2",
            "_rebuild_tensor_v3",
            "_rebuild_parameter",
            "_rebuild_parameter_with_state",
            "_rebuild_sparse_tensor",
            "_rebuild_meta_tensor_no_storage",
        )
    }
    | {
        "_get_available_device_type": "pullback.compat.private_names:get_available_device_type",
        "_get_device_module": "pullback.compat.private_names:get_device_module",
        "_get_device_index": "pullback.compat.private_names:get_device_index",
        "_element_size": "pullback.compat.private_names:element_size",
        "_flatten_dense_tensors": "pullback.nn.utils.convert_parameters:flatten_dense",
        "_unflatten_dense_tensors": "pullback.nn.utils.convert_parameters:unflatten_dense",
    },  # fmt: skip
    "torch.storage": {
        "UntypedStorage": "pullback:UntypedStorage",
        "TypedStorage": "pullback:TypedStorage",
        "_load_from_bytes": "pullback.serialization.files:load_from_bytes",
    },
    "torch.export.decomp_utils": {"CustomDecompTable": "pullback.export.decompositions:CustomDecompTable"},
    "torch.utils._python_dispatch": {
        "TorchDispatchMode": "pullback.ops.system.overrides:TorchDispatchMode",
        "is_traceable_wrapper_subclass": "pullback.capture.trace.subclasses:is_wrapper",
        "is_traceable_wrapper_subclass_type": "pullback.capture.trace.subclasses:is_traceable_wrapper_subclass_type",
        "return_and_correct_aliasing": "pullback.capture.trace.subclasses:return_and_correct_aliasing",
        "transform_subclass": "pullback.capture.trace.subclasses:transform_subclass",
    },
    "torch.distributions.utils": {
        name: f"pullback.distributions.parameters:{name}"
        for name in (
            "broadcast_all",
            "clamp_probs",
            "euler_constant",
            "lazy_property",
            "logits_to_probs",
            "probs_to_logits",
            "tril_matrix_to_vec",
            "vec_to_tril_matrix",
            "_standard_normal",
            "_sum_rightmost",
        )
    },
    "torch._ops": {
        "HigherOrderOperator": "pullback.capture.higher_order.base:HigherOrderOperator",
        "OpOverload": "pullback.ops.system.operator:Operator",
        "OpOverloadPacket": "pullback.ops.system.packet:OpOverloadPacket",
        "ops": "pullback:ops",
    },
    "torch._functorch.partitioners": {
        "default_partition": "pullback.joint.partition:default_partition",
        "min_cut_rematerialization_partition": "pullback.joint.partition:min_cut_rematerialization_partition",
        "draw_graph": "pullback.joint.picture:draw_graph",
        "get_default_op_list": "pullback.joint.costs:get_default_op_list",
        "OpTypes": "pullback.joint.costs:OpTypes",
    },
}
