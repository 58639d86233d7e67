"""Errors of exporting to ONNX, under PyTorch's names."""

from __future__ import annotations


class OnnxExporterError(RuntimeError):
    """A model could not be exported."""


class UnsupportedOperatorError(OnnxExporterError):
    """There are no words of ONNX for an operator."""


class ConversionError(OnnxExporterError):
    """An operator could not be written in ONNX with the arguments it has."""
