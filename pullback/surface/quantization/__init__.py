"""Quantization as far as training goes (`torch.ao.quantization`): observers, fake quantization, models prepared for it.

Everything is in floats that few integers could say. Tensors of integers with a scale, and layers that compute on them, are
not built: what would make them raises and says so.
"""

from . import fake_quantize, observers
from .configs import (
    QConfig,
    QConfigAny,
    default_activation_only_qconfig,
    default_debug_qconfig,
    default_dynamic_qat_qconfig,
    default_dynamic_qconfig,
    default_embedding_qat_qconfig,
    default_embedding_qat_qconfig_4bit,
    default_per_channel_qconfig,
    default_qat_qconfig,
    default_qat_qconfig_v2,
    default_qconfig,
    default_reuse_input_qconfig,
    default_weight_only_qconfig,
    float16_dynamic_qconfig,
    float16_static_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
    get_default_qat_qconfig,
    get_default_qconfig,
    per_channel_dynamic_qconfig,
    qconfig_equals,
)
from .fake_quantize import *  # noqa: F403
from .observers import *  # noqa: F403
from .preparation import (
    QuantWrapper,
    add_quant_dequant,
    convert,
    fuse_known_modules,
    fuse_modules,
    fuse_modules_qat,
    get_default_qat_module_mappings,
    prepare,
    prepare_qat,
    propagate_qconfig_,
    quantize,
    quantize_dynamic,
    quantize_qat,
)
from .stubs import DeQuantStub, FloatFunctional, QuantStub

__all__ = [  # and those of the two files
    "DeQuantStub", "FloatFunctional", "QConfig", "QConfigAny", "QuantStub", "QuantWrapper", "add_quant_dequant",
    "convert", "default_activation_only_qconfig", "default_debug_qconfig", "default_dynamic_qat_qconfig",
    "default_dynamic_qconfig", "default_embedding_qat_qconfig", "default_embedding_qat_qconfig_4bit",
    "default_per_channel_qconfig", "default_qat_qconfig", "default_qat_qconfig_v2", "default_qconfig",
    "default_reuse_input_qconfig", "default_weight_only_qconfig", "float16_dynamic_qconfig", "float16_static_qconfig",
    "float_qparams_weight_only_qconfig", "float_qparams_weight_only_qconfig_4bit", "fuse_known_modules",
    "fuse_modules", "fuse_modules_qat", "get_default_qat_module_mappings", "get_default_qat_qconfig",
    "get_default_qconfig", "per_channel_dynamic_qconfig", "prepare", "prepare_qat", "propagate_qconfig_",
    "qconfig_equals", "quantize", "quantize_dynamic", "quantize_qat",
    *fake_quantize.__all__, *observers.__all__,
]  # fmt: skip
