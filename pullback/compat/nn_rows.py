"""Where the modules of `torch.nn.modules` live here: rows for the table of names.

A row "*" stands for every name of its home.
"""

from __future__ import annotations

_FILES = {
    "activation": "activation", "adaptive": "adaptive", "batchnorm": "batchnorm", "channelshuffle": "shapes",
    "container": "containers", "conv": "conv", "distance": "distance", "dropout": "dropout", "flatten": "shapes",
    "fold": "shapes", "instancenorm": "batchnorm", "lazy": "lazy", "linear": "linear", "loss": "loss", "module": "module",
    "normalization": "norm", "padding": "padding", "pixelshuffle": "shapes", "pooling": "pooling", "rnn": "rnn",
    "sparse": "embedding", "transformer": "transformer", "upsampling": "shapes",
}  # fmt: skip

ROWS: dict[str, dict[str, str]] = {
    "torch.nn.modules": {"*": "pullback.nn", **{f: f"torch.nn.modules.{f}:" for f in (*_FILES, "utils")}},
    **{f"torch.nn.modules.{theirs}": {"*": f"pullback.nn.{ours}"} for theirs, ours in _FILES.items()},
    "torch.nn.modules.utils": {
        "_single": "pullback.nn.sizes:single",
        "_pair": "pullback.nn.sizes:pair",
        "_triple": "pullback.nn.sizes:triple",
        "_quadruple": "pullback.nn.sizes:quadruple",
        "_ntuple": "pullback.nn.sizes:n_tuple",
        "_reverse_repeat_tuple": "pullback.nn.sizes:reversed_twice",
        "consume_prefix_in_state_dict_if_present": "pullback.nn.module_state:consume_prefix_in_state_dict_if_present",
    },
    "torch.nn.parallel.scatter_gather": {"*": "pullback.nn.parallel"},
    "torch.nn.parallel.replicate": {"*": "pullback.nn.parallel"},
    "torch.nn.parallel.parallel_apply": {"*": "pullback.nn.parallel"},
    "torch.nn.parallel.data_parallel": {"*": "pullback.nn.parallel"},
    "torch.nn.parallel.distributed": {"DistributedDataParallel": "pullback.nn.parallel:DistributedDataParallel"},
    "torch.nn.utils._named_member_accessor": {"swap_tensor": "pullback.func.stateless:swap_tensor"},
    "torch.nn.utils.stateless": {"_reparametrize_module": "pullback.func.stateless:replaced_state"},
    "torch.nn._reduction": {
        "legacy_get_string": "pullback.nn.reduction:from_legacy",
        "get_enum": "pullback.nn.reduction:number",
    },
}
ROWS["torch.nn.modules.activation"]["MultiheadAttention"] = "pullback.nn.attention_module:MultiheadAttention"
ROWS["torch.nn.modules.adaptive"]["_ASMoutput"] = "pullback.nn.adaptive:ASMoutput"
ROWS["torch.nn.modules.transformer"]["_get_activation_fn"] = "pullback.nn.transformer:_activation"
ROWS["torch.nn.modules.module"] |= {
    "_IncompatibleKeys": "pullback.nn.module_state:IncompatibleKeys",
    "_EXTRA_STATE_KEY_SUFFIX": "pullback.nn.module_state:EXTRA_STATE",
    "_addindent": "pullback.nn.module:indented",
    **{
        f"_global_{theirs}": f"pullback.nn.module_hooks:everywhere.{ours}"
        for theirs, ours in {
            "backward_pre_hooks": "backward_pre", "backward_hooks": "backward", "forward_pre_hooks": "forward_pre",
            "forward_hooks": "forward", "forward_hooks_with_kwargs": "forward_with_kwargs",
            "forward_hooks_always_called": "forward_always", "buffer_registration_hooks": "buffer",
            "module_registration_hooks": "module", "parameter_registration_hooks": "parameter",
        }.items()
    },
    **{
        f"register_module_{kind}_hook": f"pullback.nn.module_hooks:register_module_{kind}_hook"
        for kind in (
            "backward", "buffer_registration", "forward", "forward_pre", "full_backward", "full_backward_pre",
            "module_registration", "parameter_registration",
        )
    },
}  # fmt: skip

_QUANTIZATION = "pullback.surface.quantization"
_TRAINED = {f"Conv{n}d": f"{_QUANTIZATION}.modules:QatConv{n}d" for n in (1, 2, 3)} | {
    name: f"{_QUANTIZATION}.modules:Qat{name}" for name in ("Linear", "Embedding", "EmbeddingBag")
}
_FUSED_NAMES = (
    *(f"Conv{kind}{n}d" for kind in ("Bn", "ReLU", "BnReLU") for n in (1, 2, 3)), "LinearReLU", "LinearBn1d",
)  # fmt: skip
_FUSED = {name: f"{_QUANTIZATION}.modules:{name}" for name in (*_FUSED_NAMES, "BNReLU2d", "BNReLU3d")}
_FUSED_TRAINED = {name: f"{_QUANTIZATION}.modules:Qat{name}" for name in _FUSED_NAMES} | {
    name: f"{_QUANTIZATION}.modules:{name}" for name in ("freeze_bn_stats", "update_bn_stats")
}
_PREPARATION = {
    name: f"{_QUANTIZATION}.preparation:{name}"
    for name in (
        "add_quant_dequant", "convert", "get_default_qat_module_mappings", "prepare", "prepare_qat", "propagate_qconfig_",
        "quantize", "quantize_dynamic", "quantize_qat",
    )
} | {
    "_add_observer_": f"{_QUANTIZATION}.preparation:add_observer_",
    "_remove_qconfig": f"{_QUANTIZATION}.preparation:remove_qconfig",
}  # fmt: skip
_OBSERVING = {
    "_PartialWrapper": f"{_QUANTIZATION}.observers:Constructor",
    "_with_args": f"{_QUANTIZATION}.observers:with_args",
    "_is_activation_post_process": f"{_QUANTIZATION}.fake_quantize:is_post_process",
}
for _root in ("torch.ao.quantization", "torch.quantization"):
    ROWS |= {
        _root: {"*": _QUANTIZATION, **_OBSERVING, "_remove_qconfig": _PREPARATION["_remove_qconfig"]},
        f"{_root}.observer": {"*": f"{_QUANTIZATION}.observers", **_OBSERVING},
        f"{_root}.fake_quantize": {"*": f"{_QUANTIZATION}.fake_quantize"},
        f"{_root}.qconfig": {"*": f"{_QUANTIZATION}.configs"},
        f"{_root}.stubs": {name: f"{_QUANTIZATION}:{name}" for name in ("QuantStub", "DeQuantStub", "QuantWrapper")},
        f"{_root}.quantize": _PREPARATION,
        f"{_root}.fuse_modules": {
            name: f"{_QUANTIZATION}.preparation:{name}"
            for name in ("fuse_known_modules", "fuse_modules", "fuse_modules_qat")
        },
    }
for _root in ("torch.ao.nn", "torch.nn"):
    ROWS |= {
        f"{_root}.quantized": {"FloatFunctional": f"{_QUANTIZATION}:FloatFunctional"},
        f"{_root}.qat": _TRAINED,
        f"{_root}.qat.modules": _TRAINED,
        f"{_root}.intrinsic": {**_FUSED, "_FusedModule": f"{_QUANTIZATION}.modules:FusedModule"},
        f"{_root}.intrinsic.modules": _FUSED,
        f"{_root}.intrinsic.modules.fused": {**_FUSED, "_FusedModule": f"{_QUANTIZATION}.modules:FusedModule"},
        f"{_root}.intrinsic.qat": _FUSED_TRAINED,
        f"{_root}.intrinsic.qat.modules": _FUSED_TRAINED,
    }
