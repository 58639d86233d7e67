"""`ONNXProgram`: a model in ONNX that can be run, saved and changed.

In: an `onnx_ir.Model` and the exported program it was written from. Out: results of `onnxruntime`, files, protocol buffers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ...core.tensor import Tensor
from ...core.tree import tree_leaves
from ...export.exported_program import ExportedProgram
from .errors import OnnxExporterError


class ONNXProgram:
    """A model in ONNX. Calling it runs it with `onnxruntime`, on the arguments of the model it was exported from."""

    def __init__(self, model: Any, exported_program: ExportedProgram | None) -> None:
        self.model = model
        self.exported_program = exported_program
        self._session: Any = None

    def __repr__(self) -> str:
        return f"ONNXProgram(model={self.model!r}, exported_program={self.exported_program!r})"

    @property
    def model_proto(self) -> Any:
        """The model as `onnx.ModelProto`."""
        import onnx_ir

        return onnx_ir.serde.serialize_model(self.model)

    def optimize(self) -> None:
        """Fold constants, inline functions and drop what is not used."""
        from onnxscript import optimizer

        optimizer.optimize(self.model)

    def convert_version(self, version: int) -> None:
        """Write the model in another version of ONNX."""
        from onnxscript import version_converter

        version_converter.convert_version(self.model, version, fallback=True)

    def save(
        self,
        destination: str | os.PathLike,
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Write the model to a file; with `external_data`, its parameters to another one beside it."""
        import onnx_ir

        kept = dict(self.model.graph.initializers)
        inputs = list(self.model.graph.inputs)
        try:
            if keep_initializers_as_inputs:
                self.model.graph.inputs.extend(kept.values())
            if not include_initializers:
                self.model.graph.initializers.clear()
            beside = f"{os.path.basename(destination)}.data" if external_data else None
            onnx_ir.save(self.model, destination, external_data=beside)
        finally:
            self.model.graph.initializers.update(kept)
            if keep_initializers_as_inputs:
                del self.model.graph.inputs[len(inputs) :]

    def initialize_inference_session(self, initializer: Any = None) -> None:
        """Make the session that calls run in."""
        try:
            import onnxruntime
        except ImportError as error:
            raise OnnxExporterError(
                "running an ONNX model needs the package onnxruntime: pip install onnxruntime"
            ) from error
        make = initializer or (lambda source: onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"]))
        self._session = make(self.model_proto.SerializeToString())

    def release(self) -> None:
        self._session = None

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        from ...ops.make.construct import from_numpy

        if self._session is None:
            self.initialize_inference_session()
        names = [i.name for i in self._session.get_inputs()]
        given = [leaf for leaf in tree_leaves((args, kwargs)) if leaf is not None]
        if len(given) != len(names):
            raise OnnxExporterError(f"the model has {len(names)} inputs ({', '.join(names)}), got {len(given)}")
        feed = {name: _fed(value) for name, value in zip(names, given, strict=True)}
        return tuple(from_numpy(array) for array in self._session.run(None, feed))

    def call_reference(self, *args: Any) -> Sequence[Tensor]:
        """The results that the reference implementation of the package `onnx` computes."""
        from onnx.reference import ReferenceEvaluator

        from ...ops.make.construct import from_numpy

        runner = ReferenceEvaluator(self.model_proto)
        feed = {name: _fed(value) for name, value in zip(runner.input_names, tree_leaves(args), strict=True)}
        return tuple(from_numpy(array) for array in runner.run(None, feed))


def _fed(value: Any) -> Any:
    import numpy

    return value.detach().cpu().numpy() if isinstance(value, Tensor) else numpy.asarray(value)
