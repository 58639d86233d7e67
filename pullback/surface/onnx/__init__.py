"""`torch.onnx`: models written in ONNX, by the functions that the package `onnxscript` has for PyTorch's operators.

`export` records a module by `torch.export` (`exporting.py`), writes each node of the graph in ONNX (`translation.py`,
`operands.py`, `recording.py`) and gives an `ONNXProgram` (`program.py`).
"""

from __future__ import annotations

import types

from . import errors
from .enumerations import OperatorExportTypes, TensorProtoDataType, TrainingMode
from .errors import OnnxExporterError
from .exporting import export, state
from .program import ONNXProgram

custom_symbolics: dict[str, object] = {}  # what programs register for operators of their own, for the older exporter


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn, opset_version: int) -> None:
    """Remember how the older exporter would write an operator; `export` takes `custom_translation_table`."""
    custom_symbolics[symbolic_name] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    custom_symbolics.pop(symbolic_name, None)


def is_in_onnx_export() -> bool:
    """Whether a module is being recorded for ONNX; programs ask it to take another path."""
    return state["exporting"]


def _parse_args(*kinds: str):
    """A decorator of functions that write operators for the older exporter; nothing calls them here."""
    return lambda function: function


symbolic_helper = types.SimpleNamespace(parse_args=_parse_args)


def __getattr__(name: str):
    if name.startswith("symbolic_opset"):
        return types.SimpleNamespace()  # how PyTorch's operators are written in one version of ONNX: not written here
    raise AttributeError(f"module 'torch.onnx' has no attribute {name!r}")


__all__ = [
    "OperatorExportTypes", "TensorProtoDataType", "TrainingMode", "errors", "export", "is_in_onnx_export", "OnnxExporterError",
    "ONNXProgram",
]  # fmt: skip
