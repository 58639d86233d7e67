"""Engines of quantized operators: there are none."""

supported_engines = ["none"]
engine = "none"
