"""`torch.onnx`: whether a model is being exported to ONNX, which never happens here.

Programs ask `is_in_onnx_export()` to take another path; exporting itself is not built and says so.
"""

from __future__ import annotations

import types


class OnnxExporterError(RuntimeError):
    """A model could not be exported."""


custom_symbolics: dict[str, object] = {}  # what programs register for operators of their own


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn, opset_version: int) -> None:
    """Remember how an operator would be written in ONNX."""
    custom_symbolics[symbolic_name] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    custom_symbolics.pop(symbolic_name, None)


def is_in_onnx_export() -> bool:
    return False


def export(*args, **kwargs):
    raise OnnxExporterError(
        "torch.onnx.export is not implemented. torch.export.export gives the graph of a model; to write ONNX, load its "
        "state_dict into the same model under PyTorch."
    )


dynamo_export = export


def _parse_args(*kinds: str):
    """A decorator of functions that write operators in ONNX; nothing calls them here."""
    return lambda function: function


symbolic_helper = types.SimpleNamespace(parse_args=_parse_args)


def __getattr__(name: str):
    if name.startswith("symbolic_opset"):
        return types.SimpleNamespace()  # how PyTorch's operators are written in one version of ONNX: not written here
    raise AttributeError(f"module 'torch.onnx' has no attribute {name!r}")
