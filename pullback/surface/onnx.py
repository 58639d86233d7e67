"""`torch.onnx`: whether a model is being exported to ONNX, which never happens here.

Programs ask `is_in_onnx_export()` to take another path; exporting itself is not built and says so.
"""

from __future__ import annotations


class OnnxExporterError(RuntimeError):
    """A model could not be exported."""


def is_in_onnx_export() -> bool:
    return False


def export(*args, **kwargs):
    raise OnnxExporterError(
        "torch.onnx.export is not implemented. torch.export.export gives the graph of a model; to write ONNX, load its "
        "state_dict into the same model under PyTorch."
    )


dynamo_export = export
