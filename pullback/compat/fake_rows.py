"""Where the names of `torch._subclasses` and its relatives live here: rows for the table of names."""

from __future__ import annotations

_FAKE = "pullback.capture.fake.mode"
_CACHE = "pullback.capture.fake.cache"
_CHECKING = "pullback.capture.fake.checking"
_PUBLIC = ("FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException", "DynamicOutputShapeException")
_NAMES = (
    *_PUBLIC,
    "DataDependentOutputException",
    "FakeTensorConverter",
    "FakeTensorDeviceMismatchError",
    "MetadataMismatchError",
    "UnsupportedMutationAliasingException",
    "UnsupportedOperatorException",
    "is_fake",
    "maybe_get_fake_mode",
    "unset_fake_temporarily",
)

ROWS: dict[str, dict[str, str]] = {
    "torch._subclasses": {
        "fake_tensor": "torch._subclasses.fake_tensor:",
        "fake_utils": "torch._subclasses.fake_utils:",
        "fake_impls": "torch._subclasses.fake_impls:",
        "functional_tensor": "torch._subclasses.functional_tensor:",
        "CrossRefFakeMode": f"{_CHECKING}:CrossRefFakeMode",
        **{name: f"{_FAKE}:{name}" for name in _PUBLIC},
    },
    "torch._subclasses.fake_tensor": {
        **{name: f"{_FAKE}:{name}" for name in _NAMES},
        "_is_tensor_constructor": "pullback.capture.fake.facts:is_tensor_constructor",
        "_like_tensor_constructors": "pullback.capture.fake.constructors:LIKE",
        "_device_not_kwarg_ops": "pullback.capture.fake.constructors:DEVICE_BY_POSITION",
        "FakeCopyMode": f"{_CHECKING}:FakeCopyMode",
        "DispatchCacheInfo": f"{_CACHE}:DispatchCacheInfo",
        "TensorMetadata": f"{_CACHE}:TensorMetadata",
        "extract_tensor_metadata": f"{_CACHE}:extract_tensor_metadata",
        "_CacheKeyState": f"{_CACHE}:CacheKeyState",
        "_DispatchCacheKey": f"{_CACHE}:CacheKey",
    },
    "torch._subclasses.fake_utils": {
        name: f"{_CHECKING}:{name}" for name in ("CrossRefFakeMode", "try_convert_fake_to_real")
    },
    "torch._subclasses.schema_check_mode": {
        name: f"pullback.library.schema_check:{name}" for name in ("SchemaCheckMode", "Mutation", "Aliasing")
    },
    "torch._subclasses.fake_impls": {"get_fast_op_impls": "pullback.capture.fake.fast:get_fast_op_impls"},
    "torch._subclasses.functional_tensor": {
        name: f"pullback.joint.functional_tensors:{name}"
        for name in ("CppFunctionalizeAPI", "FunctionalTensor", "FunctionalTensorMode", "dispatch_functionalize")
    },
    "torch._guards": {
        "detect_fake_mode": "pullback.capture.fake.tracing_context:detect",
        "TracingContext": "pullback.capture.fake.tracing_context:TracingContext",
        "tracing": "pullback.capture.fake.tracing_context:tracing",
        "active_fake_mode": f"{_FAKE}:active_fake_mode",
    },
    "torch._prims": {"utils": "torch._prims_common:"},
    "torch._prims_common": {
        "ELEMENTWISE_TYPE_PROMOTION_KIND": "pullback.ops.elementwise.promotion_kinds:ELEMENTWISE_TYPE_PROMOTION_KIND",
        "elementwise_dtypes": "pullback.ops.elementwise.promotion_kinds:elementwise_dtypes",
        "compare_tensor_meta": "pullback.capture.fake.comparison:compare_metadata",
        "suggest_memory_format": "pullback.capture.fake.comparison:suggest_memory_format",
        "make_contiguous_strides_for": "pullback.core.geometry:contiguous_strides",
        "make_channels_last_strides_for": "pullback.core.geometry:channels_last_strides",
    },
}
