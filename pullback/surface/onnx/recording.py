"""Nodes of ONNX, recorded while the functions that `onnxscript` has for PyTorch's operators run.

In: an ONNX graph under construction and calls of ONNX operators on its values. Out: the values of the nodes that the calls
became. What always holds: a call makes exactly one node (a function that `onnxscript` compiled is one node too), beside
constants and casts for Python numbers among its arguments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy

DTYPES = {  # name of a dtype -> name in ONNX
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "bool": "BOOL",
    "complex64": "COMPLEX64",
    "complex128": "COMPLEX128",
    "float8_e4m3fn": "FLOAT8E4M3FN",
    "float8_e4m3fnuz": "FLOAT8E4M3FNUZ",
    "float8_e5m2": "FLOAT8E5M2",
    "float8_e5m2fnuz": "FLOAT8E5M2FNUZ",
}


def onnx_dtype(dtype: Any) -> Any:
    """The `onnx_ir.DataType` of a dtype of ours."""
    import onnx_ir

    return onnx_ir.DataType[DTYPES[str(dtype).rpartition(".")[2]]]


class Recorder:
    """What `onnxscript` asks to evaluate operators and functions; here evaluating means adding nodes to a graph."""

    def __init__(self, graph: Any) -> None:
        from onnxscript import GraphBuilder

        self.builder = GraphBuilder(graph)

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Calls of operators, and arithmetic on values, go to this recorder."""
        import onnx_ir
        from onnxscript import evaluator

        before = onnx_ir.set_value_magic_handler(self.builder.op)
        evaluating: Any = self  # it has what is called of an evaluator, whose class is not there to be a base
        try:
            with evaluator.default_as(evaluating):
                yield
        finally:
            onnx_ir.set_value_magic_handler(before)

    def eval_op(self, op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        inputs = [self._input(a) for a in args]
        while inputs and inputs[-1] is None:
            inputs.pop()
        attributes = {name: value for name, value in kwargs.items() if value is not None}
        return self.builder.call_op(
            op.name,
            inputs,
            attributes,
            domain=op.domain,
            version=op.opset.version,
            outputs=_count_outputs(op, inputs, attributes),
        )

    def eval_function(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        named = dict(zip((p.name for p in function.op_signature.params), args, strict=False)) | kwargs
        inputs, attributes = [], {}
        for param in function.op_signature.params:
            if param.is_param():
                inputs.append(named.get(param.name))
            elif param.name in named and named[param.name] is not None:
                attributes[param.name] = named[param.name]
        return self.builder.call(function, *inputs, **attributes)

    def _input(self, argument: Any) -> Any:
        """An argument of an operator; tensors and NumPy's numbers are constants, sizes one value."""
        import onnx_ir

        if isinstance(argument, numpy.generic):
            return argument.item()
        if isinstance(argument, list | tuple) and any(isinstance(a, onnx_ir.Value) for a in argument):
            return self._vector(argument)
        if isinstance(argument, onnx_ir.TensorProtocol | numpy.ndarray):
            return self.builder.op.Constant(value=onnx_ir.tensor(argument))
        return argument

    def cast(self, value: Any, dtype: Any) -> Any:
        return self.builder.op.Cast(value, to=dtype)

    def constant(self, value: Any, dtype: Any) -> Any:
        """A number or a list of numbers as a value of the graph."""
        import onnx_ir

        return self.builder.op.Constant(value=onnx_ir.tensor(value, dtype=dtype))

    def _vector(self, numbers: Sequence[Any]) -> Any:
        """Integers, some of them values of the graph, as one value of one dimension."""
        return self.builder.op.Concat(*(self._one(n) for n in numbers), axis=0)

    def _one(self, number: Any) -> Any:
        import onnx_ir

        int64 = onnx_ir.DataType.INT64
        if not isinstance(number, onnx_ir.Value):
            return self.constant([int(number)], int64)
        whole = number if number.dtype == int64 else self.cast(number, int64)
        return self.builder.op.Reshape(whole, self.constant([1], int64))


def _count_outputs(op: Any, inputs: Sequence[Any], attributes: dict[str, Any]) -> int:
    """How many results a call of an ONNX operator has: all that its schema names, where the call does not say otherwise."""
    if op.name == "BatchNormalization" and not attributes.get("training_mode"):
        return 1
    if op.name == "Split":
        return attributes["num_outputs"] if "num_outputs" in attributes else len(inputs[1])
    return len(op.op_schema.outputs)
