"""Where the modules of `torch.fx` live here: the graph IR is the folder `graph`, and names its files by what they hold."""

from __future__ import annotations

# A module of torch: the module here. Modules below it have the same names in both, unless they are named too.
RENAMED: dict[str, str] = {
    "torch.utils._pytree": "pullback.utils.pytree",
    "torch.utils._cxx_pytree": "pullback.utils.pytree",
    "torch.utils.data._utils.collate": "pullback.utils.data.collate",
    "torch.utils.data._utils.fetch": "pullback.utils.data.fetch",
    "torch.utils.data._utils.worker": "pullback.utils.data.worker",
    "torch.utils.data._utils.pin_memory": "pullback.utils.data.pinning",
    "torch.distributed.tensor.placement_types": "pullback.distributed.tensor.placements",
    "torch.distributed.checkpoint._consolidate_hf_safetensors": "pullback.distributed.checkpoint.hf_storage",
    "torch.distributed._tensor": "pullback.distributed.tensor",
    "torch.return_types": "pullback.ops.system.return_types",
    "torch.types": "pullback.surface.types",
    "torch.torch_version": "pullback.surface.version",
    "torch.__config__": "pullback.surface.build_config",
    "torch.onnx": "pullback.surface.onnx",
    "torch.mps": "pullback.surface.mps",
    "torch.quasirandom": "pullback.surface.quasirandom",
    "torch.utils.weak": "pullback.utils.weak",
    "torch.utils.collect_env": "pullback.surface.collect_env",
    "torch.utils.tensorboard": "pullback.utils.tensorboard",
    "torch.utils.tensorboard.writer": "pullback.utils.tensorboard.writer",
    "torch.utils.tensorboard.summary": "pullback.utils.tensorboard.summary",
    "torch.distributed.rpc.api": "pullback.distributed.rpc",
    "torch.fx": "pullback.graph",
    "torch.fx._lazy_graph_module": "pullback.graph.lazy_module",
    "torch.fx._pytree": "pullback.graph.tree_calls",
    "torch.fx._symbolic_trace": "pullback.graph.tracer",
    "torch.fx.graph_module": "pullback.graph.module",
    "torch.fx.immutable_collections": "pullback.graph.immutable",
    "torch.fx.subgraph_rewriter": "pullback.graph.passes.replace_pattern",
    "torch.fx.passes.dialect.common.cse_pass": "pullback.graph.passes.cse",
    "torch.fx.passes.infra.partitioner": "pullback.graph.passes.partitioner",
    "torch.fx.passes.infra.pass_base": "pullback.graph.passes.pass_manager",
    "torch.fx.passes.infra.pass_manager": "pullback.graph.passes.pass_manager",
    "torch.fx.passes.utils.fuser_utils": "pullback.graph.passes.fuse",
    "torch.fx.passes.utils.matcher_utils": "pullback.graph.passes.matcher",
}

# Modules that only hold others.
ROWS: dict[str, dict[str, str]] = {
    "torch.fx.graph_module": {"_copy_attr": "pullback.graph.module:copy_attribute"},
    "torch.fx.experimental": {},
    "torch.fx.passes.dialect": {},
    "torch.fx.passes.dialect.common": {},
    "torch.fx.passes.infra": {},
    "torch.fx.passes.utils": {},
}
