"""Where PyTorch's private names of `torch.export` live here: rows for the table of names."""

from __future__ import annotations

_HOME = "pullback.export"

ROWS: dict[str, dict[str, str]] = {
    "torch._export": {"config": f"{_HOME}.config:config"},
    "torch._export.utils": {
        "_collect_all_valid_cia_ops_for_namespace": f"{_HOME}.decompositions:composite_operators",
        **{
            name: f"{_HOME}.parts:{name}"
            for name in (
                "get_buffer", "get_lifted_tensor_constant", "get_param", "is_buffer", "is_lifted_tensor_constant", "is_param",
            )
        },
        "_get_shape_env_from_gm": f"{_HOME}.parts:shape_env_of",
        "register_dataclass_as_pytree_node": f"{_HOME}.structures:register_dataclass",
    },
    "torch._export.verifier": {name: f"{_HOME}.verifier:{name}" for name in ("SpecViolationError", "Verifier")},
    "torch._export.wrappers": {
        "mark_subclass_constructor_exportable_experimental": "pullback.surface.constructors:mark_subclass_constructor_exportable",
    },
    "torch.export._wrapper_utils": {"_WrapperModule": f"{_HOME}.modules:CalledFunction"},
    "torch._export.serde": {},
    "torch._export.serde.dynamic_shapes": {
        "_dump_dynamic_shapes": f"{_HOME}.written_shapes:dump_dynamic_shapes",
        "_load_dynamic_shapes": f"{_HOME}.written_shapes:load_dynamic_shapes",
        "DynamicShapesSpec": f"{_HOME}.written_shapes:DynamicShapesSpec",
        "RootDim": f"{_HOME}.written_shapes:RootDim",
    },
    "torch._export.serde.serialize": {"_dataclass_to_dict": "dataclasses:asdict"},
    "torch.export._draft_export": {
        name: f"{_HOME}.draft:{name}" for name in ("DraftExportReport", "FailureReport", "FailureType", "draft_export")
    },
    "torch.export._trace": {
        "_export": f"{_HOME}.trace:export_at",
        "export": f"{_HOME}.trace:export",
    },
    "torch._decomp": {
        name: f"{_HOME}.decompositions:{name}"
        for name in ("core_aten_decompositions", "decomposition_table", "get_decompositions", "register_decomposition")
    },
}  # fmt: skip

OBJECTS = {"torch._export.config": f"{_HOME}.config:config"}
