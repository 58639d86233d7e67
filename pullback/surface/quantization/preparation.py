"""Models made ready for quantization: modules fused, observers put in, layers replaced by those that train rounded weights.

In: a model whose parts have a `qconfig` (that of a parent holds for its children). Out: the model (a copy unless `inplace`)
with `activation_post_process` on the modules whose results would be quantized, called by a hook. What would run in integers
(`convert`, `quantize`, `quantize_dynamic`) is not built, and says so.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NoReturn

from ... import nn
from ...nn.linear import NonDynamicallyQuantizableLinear
from ...nn.module import Module
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from . import modules as m
from .fake_quantize import (
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
    is_post_process,
)
from .stubs import DeQuantStub, FloatFunctional, QuantStub

TRAINED: dict[type, type] = {
    nn.Linear: m.QatLinear, NonDynamicallyQuantizableLinear: m.QatLinear, nn.Conv1d: m.QatConv1d, nn.Conv2d: m.QatConv2d,
    nn.Conv3d: m.QatConv3d, nn.Embedding: m.QatEmbedding, nn.EmbeddingBag: m.QatEmbeddingBag,
    m.LinearReLU: m.QatLinearReLU, m.LinearBn1d: m.QatLinearBn1d,
    m.ConvReLU1d: m.QatConvReLU1d, m.ConvReLU2d: m.QatConvReLU2d, m.ConvReLU3d: m.QatConvReLU3d,
    m.ConvBn1d: m.QatConvBn1d, m.ConvBn2d: m.QatConvBn2d, m.ConvBn3d: m.QatConvBn3d,
    m.ConvBnReLU1d: m.QatConvBnReLU1d, m.ConvBnReLU2d: m.QatConvBnReLU2d, m.ConvBnReLU3d: m.QatConvBnReLU3d,
}  # fmt: skip
_OBSERVED = {
    QuantStub, nn.BatchNorm2d, nn.BatchNorm3d, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d,
    nn.ConvTranspose2d, nn.ConvTranspose3d, nn.ELU, nn.Embedding, nn.EmbeddingBag, nn.GroupNorm, nn.Hardswish,
    nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d, nn.LayerNorm, nn.LeakyReLU, nn.Linear,
    NonDynamicallyQuantizableLinear, nn.ReLU6, nn.PReLU, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell,
    m.BNReLU2d, m.BNReLU3d, m.LinearReLU, m.LinearBn1d, m.ConvReLU1d, m.ConvReLU2d, m.ConvReLU3d,
    m.ConvBn1d, m.ConvBn2d, m.ConvBn3d, m.ConvBnReLU1d, m.ConvBnReLU2d, m.ConvBnReLU3d, *TRAINED.values(),
}  # fmt: skip
_KNOWN_RANGES = {
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}


# ---- configurations and observers
def propagate_qconfig_(
    module: Module, qconfig_dict: dict | None = None, prepare_custom_config_dict: Any = None
) -> None:
    """Give every module the configuration of its name, its class or its parent."""
    _propagate(module, qconfig_dict or {}, None, "")


def _propagate(module: Module, table: dict, parents: Any, path: str) -> None:
    config = table.get(type(module), table.get(type(module).__name__, parents))
    config = table.get(path, getattr(module, "qconfig", config))
    module.qconfig = config  # type: ignore[assignment]
    for name, child in module.named_children():
        if not is_post_process(child):
            _propagate(child, table, config, f"{path}.{name}" if path else name)


def _show_output(module: Module, inputs: tuple, output: Any) -> Any:
    return module.activation_post_process(output)  # type: ignore[operator]


def _observe(module: Any, make: Callable[[], Module]) -> None:
    """Let an observer see (and round) what a module gives."""
    module.add_module("activation_post_process", make())
    hook = module.register_forward_hook(_show_output)
    module._forward_hooks.move_to_end(hook.id, last=False)


def add_observer_(module: Module) -> None:
    """Put observers on what a model's modules give, where they have a configuration."""
    for child in module.children():
        config = getattr(child, "qconfig", None)
        if is_post_process(child) or type(child) in (nn.Identity, DeQuantStub):
            continue
        if isinstance(child, FloatFunctional):
            if config is not None:
                child.activation_post_process = config.activation()
        elif child.training and type(child) in _KNOWN_RANGES:
            if config is not None:
                _observe(child, _KNOWN_RANGES[type(child)])
        elif isinstance(child, (m.FusedModule, m.WeightRounding)):
            if config is not None:
                _observe(child, config.activation)
        else:
            add_observer_(child)
    config = getattr(module, "qconfig", None)
    if config is not None and type(module) in _OBSERVED and not list(module.children()):
        _observe(module, config.activation)


def prepare(model: Module, inplace: bool = False, allow_list: Any = None, *args: Any, **kwargs: Any) -> Module:
    """Put observers into a model, which then is shown examples."""
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(part, "qconfig", None) for part in model.modules()):
        raise AssertionError("None of the submodule got qconfig applied. Give the model, or parts of it, a `qconfig`.")
    add_observer_(model)
    return model


def prepare_qat(model: Module, mapping: dict[type, type] | None = None, inplace: bool = False) -> Module:
    """Replace layers by those that train rounded weights, and put in what rounds activations."""
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    _replace(model, TRAINED if mapping is None else mapping)
    add_observer_(model)
    return model


def _replace(module: Module, mapping: dict[type, type]) -> None:
    for name, child in module.named_children():
        cls = mapping.get(type(child))
        if cls is not None and getattr(child, "qconfig", None) is not None:
            swapped = cls.from_float(child)  # type: ignore[attr-defined]
            for kind in ("_forward_hooks", "_forward_pre_hooks"):
                getattr(swapped, kind).update(getattr(child, kind))
            setattr(module, name, swapped)
        elif not is_post_process(child):
            _replace(child, mapping)


class QuantWrapper(Module):
    """A model between the marks where integers begin and end."""

    def __init__(self, module: Module):
        super().__init__()
        config = getattr(module, "qconfig", None)
        self.quant, self.dequant, self.module = QuantStub(config), DeQuantStub(config), module
        self.train(module.training)

    def forward(self, X: Any) -> Any:
        return self.dequant(self.module(self.quant(X)))


def add_quant_dequant(module: Module) -> Module:
    """Wrap the parts of a model that have a configuration of their own, and no children."""
    if not list(module.children()) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


# ---- fusion
def _folded(parts: list[Module]) -> Module:
    linear, norm, *rest = parts
    fold = fuse_linear_bn_eval if isinstance(linear, nn.Linear) else fuse_conv_bn_eval
    folded = fold(linear, norm)  # type: ignore[type-var]
    return _fused_class([folded, *rest])(folded, *rest) if rest else folded


_FUSED = {
    tuple(names.split()): cls
    for names, cls in {
        "Linear ReLU": m.LinearReLU, "Linear BatchNorm1d": m.LinearBn1d, "BatchNorm2d ReLU": m.BNReLU2d,
        "BatchNorm3d ReLU": m.BNReLU3d,
        **{f"Conv{n}d ReLU": c for n, c in enumerate((m.ConvReLU1d, m.ConvReLU2d, m.ConvReLU3d), 1)},
        **{f"Conv{n}d BatchNorm{n}d": c for n, c in enumerate((m.ConvBn1d, m.ConvBn2d, m.ConvBn3d), 1)},
        **{f"Conv{n}d BatchNorm{n}d ReLU": c for n, c in enumerate((m.ConvBnReLU1d, m.ConvBnReLU2d, m.ConvBnReLU3d), 1)},
    }.items()
}  # fmt: skip


def _fused_class(parts: list[Module]) -> Any:
    cls = _FUSED.get(tuple(type(p).__name__ for p in parts))
    if cls is None:
        raise NotImplementedError(f"Cannot fuse modules: {[type(p).__name__ for p in parts]}")
    return cls


def fuse_known_modules(
    mod_list: list[Module], is_qat: bool = False, additional_fuser_method_mapping: Any = None
) -> list:
    """The fused module first, and `Identity` in the place of the others."""
    training = mod_list[0].training
    if any(part.training != training for part in mod_list):
        raise AssertionError("Linear and BN or Conv and BN both must be in the same mode (train or eval).")
    normed = len(mod_list) > 1 and type(mod_list[1]).__name__.startswith("BatchNorm")
    if normed and training and not is_qat:
        raise AssertionError("modules in training are fused by fuse_modules_qat")
    fold = normed and not training
    fused = _folded(mod_list) if fold else _fused_class(mod_list)(*mod_list)
    for part, hooks in ((mod_list[0], "_forward_pre_hooks"), (mod_list[-1], "_forward_hooks")):
        getattr(fused, hooks).update(getattr(part, hooks))
        getattr(part, hooks).clear()
    return [fused.train(training), *(nn.Identity().train(training) for _ in mod_list[1:])]


def _fuse(model: Module, modules_to_fuse: list, inplace: bool, fuser_func: Callable, is_qat: bool) -> Module:
    model = model if inplace else copy.deepcopy(model)
    groups = [modules_to_fuse] if modules_to_fuse and isinstance(modules_to_fuse[0], str) else modules_to_fuse
    for names in groups:
        fused = fuser_func([model.get_submodule(name) for name in names], is_qat)
        for name, module in zip(names, fused, strict=True):
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, module)
    return model


def fuse_modules(
    model: Module, modules_to_fuse: list, inplace: bool = False, fuser_func: Callable = fuse_known_modules,
    fuse_custom_config_dict: Any = None,
) -> Module:  # fmt: skip
    """Fuse modules by their names (["conv", "bn", "relu"], or several such lists); norms are folded: the model is in eval."""
    return _fuse(model, modules_to_fuse, inplace, fuser_func, False)


def fuse_modules_qat(
    model: Module, modules_to_fuse: list, inplace: bool = False, fuser_func: Callable = fuse_known_modules,
    fuse_custom_config_dict: Any = None,
) -> Module:  # fmt: skip
    """Fuse modules of a model in training."""
    return _fuse(model, modules_to_fuse, inplace, fuser_func, True)


# ---- integers
def convert(*args: Any, **kwargs: Any) -> NoReturn:
    """A prepared model in integers: not here."""
    raise NotImplementedError(
        "tensors and layers of integers are not implemented in pullback: models are trained and evaluated with "
        "fake quantization (prepare, prepare_qat), in floats"
    )


quantize = quantize_dynamic = quantize_qat = convert


def remove_qconfig(module: Module) -> None:
    """Take the configurations off a model's modules."""
    for part in module.modules():
        if hasattr(part, "qconfig"):
            del part.qconfig


def get_default_qat_module_mappings() -> dict[type, type]:
    """Float modules, and those that train in their place."""
    return dict(TRAINED)
