"""An exported program as an ONNX model: each node of its graph becomes what `onnxscript` writes for the operator.

In: an `ExportedProgram` whose graph is functional. Out: an `onnx_ir.Model` with its parameters as initializers. What always
holds: the dtype and the shape of every value that stands for a node are those of the node; an operator that ONNX has no words
for is an error that names it; nothing is left out.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ...core.tensor import Tensor
from ...export.exported_program import ExportedProgram
from ...export.graph_signature import InputKind, OutputKind
from ...graph.node import Node
from .errors import ConversionError, OnnxExporterError, UnsupportedOperatorError
from .operands import adapted
from .recording import Recorder, onnx_dtype

WRITTEN_IN = 18  # the version of ONNX in which onnxscript's functions are written
PLACELESS = frozenset("layout device pin_memory non_blocking memory_format generator requires_grad".split())


def qualified_name(target: Any) -> str:
    """`aten::add.Tensor`, `_operator::mul`: how `onnxscript` names what a node calls."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return f"{getattr(target, '__module__', None)}::{getattr(target, '__name__', target)}"
    overload = schema.overload_name
    return f"{schema.name}.{overload}" if overload and overload != "default" else schema.name


class Functions:
    """The functions that write operators in ONNX: `onnxscript`'s, and those that a program brings (operator -> function)."""

    def __init__(self, custom: dict[Any, Any] | None = None) -> None:
        from onnxscript.function_libs.torch_lib import ops  # noqa: F401 (its import registers them)
        from onnxscript.function_libs.torch_lib.registration import default_registry

        self.known = {name: found.overloads[0] for name, found in default_registry.items() if found.overloads}
        self.custom = {_overload(key): _first(value) for key, value in (custom or {}).items()}

    def find(self, target: Any) -> Callable | None:
        return self.custom.get(target) or self.known.get(qualified_name(target))


def _first(functions: Any) -> Any:
    return functions[0] if isinstance(functions, list | tuple) else functions


def _overload(target: Any) -> Any:
    """`ops.ns.f` stands for its default overload."""
    return getattr(target, "default", target)


class Translation:
    """One program on its way to ONNX: the graph so far, and the value (a list for several) of every node that was met."""

    def __init__(self, program: ExportedProgram, functions: Functions, axes: dict[str, str]) -> None:
        import onnx_ir

        self.ir = onnx_ir
        self.program, self.functions, self.axes = program, functions, axes
        self.graph = onnx_ir.Graph([], [], nodes=[], opset_imports={"": WRITTEN_IN}, name="main_graph")
        self.recorder = Recorder(self.graph)
        self.values: dict[Node, Any] = {}

    def model(self) -> Any:
        """The `onnx_ir.Model`."""
        inputs = {spec.arg.name: spec for spec in self.program.graph_signature.input_specs}
        with self.recorder.recording():
            for node in self.program.graph.nodes:
                if node.op == "placeholder":
                    self._input(node, inputs[node.target])
                elif node.op == "call_function":
                    self._call(node)
                elif node.op == "output":
                    self._outputs(node)
                else:
                    raise OnnxExporterError(
                        f"a node of kind {node.op!r} cannot be written in ONNX: {node.format_node()}"
                    )
        functions = self.recorder.builder.functions
        for function in functions.values():
            self.graph.opset_imports.setdefault(function.domain, 1)
        return self.ir.Model(
            self.graph, ir_version=10, producer_name="pullback", functions=[_function(f) for f in functions.values()]
        )

    def describe(self, value: Any, fake: Any) -> None:
        """Write the dtype and the shape of a fake tensor (or of a number) on a value."""
        if isinstance(fake, Tensor):
            value.dtype = onnx_dtype(fake.dtype)
            value.shape = self.ir.Shape([s if type(s) is int else self._axis(s) for s in fake.shape])
        elif fake is not None:
            kind = getattr(fake, "symbolic_type", type(fake))
            value.dtype = self.ir.DataType[{int: "INT64", float: "FLOAT", bool: "BOOL"}[kind]]
            value.shape = self.ir.Shape([])

    def _axis(self, size: Any) -> str:
        return self.axes.get(str(size), str(size))

    def _input(self, node: Node, spec: Any) -> None:
        value = self.ir.Value(name=node.name)
        self.describe(value, node.meta.get("val"))
        if spec.kind is InputKind.USER_INPUT:
            if node.meta.get("val") is not None:  # None and constants are no inputs of an ONNX graph
                self.graph.inputs.append(value)
        elif spec.target is not None:
            tensor = self.program._value(spec)
            value.name = spec.target
            value.const_value = _initializer(tensor, spec.target)
            self.graph.register_initializer(value)
        self.values[node] = value

    def _call(self, node: Node) -> None:
        if node.target is operator.getitem:
            source, position = node.args
            self.values[node] = self.values[source][position]
            return
        function = self.functions.find(node.target)
        if function is None:
            raise UnsupportedOperatorError(
                f"No ONNX function found for {node.target}. It is called at:\n{node.stack_trace or node.format_node()}"
            )
        try:
            self.values[node] = result = self._run(function, node)
        except OnnxExporterError:
            raise
        except Exception as error:
            raise ConversionError(f"{node.format_node()} could not be written in ONNX: {error}") from error
        self._name_results(node, result)

    def _run(self, function: Any, node: Node) -> Any:
        args = [self._argument(a) for a in node.args]
        kwargs = {k: self._argument(v) for k, v in node.kwargs.items()}
        signature = getattr(function, "op_signature", None)
        if signature is None:
            return function(*args, **kwargs)
        names = {p.name for p in signature.params}
        kwargs = {k: v for k, v in kwargs.items() if k in names or k not in PLACELESS}
        args, kwargs = adapted(self.recorder, signature, args, kwargs, node)
        return function(*args, **kwargs)

    def _argument(self, argument: Any) -> Any:
        if isinstance(argument, Node):
            return self.values[argument]
        if isinstance(argument, list | tuple):
            return [self._argument(a) for a in argument]
        if type(argument).__name__ == "dtype":
            return onnx_dtype(argument)
        if type(argument).__name__ in ("device", "layout", "memory_format"):
            return None if type(argument).__name__ != "device" else str(argument)
        return argument

    def _name_results(self, node: Node, result: Any) -> None:
        fakes = node.meta.get("val")
        if isinstance(result, self.ir.Value):
            if isinstance(fakes, list | tuple):  # one value of several: a sequence of ONNX
                if len(fakes) == 1:
                    self.values[node] = [result]
                    self.describe(result, fakes[0])
                else:
                    self.values[node] = self._parts(result, fakes)
                return
            if not result.is_graph_input() and not result.is_initializer():
                self.describe(result, fakes)
        elif isinstance(result, list | tuple) and isinstance(fakes, list | tuple):
            for value, fake in zip(result, fakes, strict=False):
                if isinstance(value, self.ir.Value) and not value.is_graph_input() and not value.is_initializer():
                    self.describe(value, fake)

    def _parts(self, sequence: Any, fakes: Any) -> list[Any]:
        op, parts = self.recorder.builder.op, []
        for position, fake in enumerate(fakes):
            part = op.SequenceAt(sequence, self.recorder.constant(position, self.ir.DataType.INT64))
            self.describe(part, fake)
            parts.append(part)
        return parts

    def _outputs(self, node: Node) -> None:
        for argument, spec in zip(node.args[0], self.program.graph_signature.output_specs, strict=True):
            if spec.kind is not OutputKind.USER_OUTPUT or not isinstance(argument, Node):
                continue  # new values of buffers have no place in an ONNX model, nor have constants
            value = self.values[argument]
            if value.is_graph_input() or value.is_initializer() or value in self.graph.outputs:
                value = self.recorder.builder.op.Identity(value)
                self.describe(value, argument.meta.get("val"))
            self.graph.outputs.append(value)


def _initializer(tensor: Tensor, name: str) -> Any:
    """The data of a tensor, for the model."""
    import onnx_ir

    dtype = onnx_dtype(tensor.dtype)
    plain = tensor.detach().cpu().contiguous()
    array = plain.view(_same_width(plain)).numpy().view(dtype.numpy()) if _narrow(tensor) else plain.numpy()
    return onnx_ir.Tensor(array, dtype=dtype, name=name)


def _narrow(tensor: Tensor) -> bool:
    """Whether NumPy has no dtype of its own for a tensor's."""
    return "bfloat16" in str(tensor.dtype) or "float8" in str(tensor.dtype)


def _same_width(tensor: Tensor) -> Any:
    from ...core import dtype as dtypes

    return dtypes.int16 if tensor.element_size() == 2 else dtypes.uint8


def _function(function: Any) -> Any:
    """A function that `onnxscript` compiled, as a function of the model."""
    import onnx_ir

    return (
        function
        if isinstance(function, onnx_ir.Function)
        else onnx_ir.serde.deserialize_function(function.to_function_proto())
    )
