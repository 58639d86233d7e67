"""Arguments of a node, as the function that writes its operator in ONNX takes them.

In: the signature of the function and arguments (values of the graph, numbers, lists). Out: arguments and keywords; numbers
beside tensors are values. What always holds: arguments that the signature says
share a dtype do, by PyTorch's promotion; where the result shares it too, it is the dtype of the node's result.
"""

from __future__ import annotations

from typing import Any

from ...core.promotion import result_type
from ...core.tensor import Tensor
from ...graph.node import Node
from .recording import Recorder, onnx_dtype


def adapted(recorder: Recorder, signature: Any, args: list, kwargs: dict, node: Node) -> tuple[list, dict]:
    names = [p.name for p in signature.params]
    named = dict(zip(names, args, strict=False)) | kwargs
    fakes = dict(zip(names, map(_fake, node.args), strict=False)) | {k: _fake(v) for k, v in node.kwargs.items()}
    dtypes = _shared_dtypes(signature, named, fakes, node)
    for param in signature.params:
        if param.is_param() and named.get(param.name) is not None:
            named[param.name] = _operand(recorder, param, named[param.name], dtypes.get(param.type_constraint.name))
    given = [named.pop(name) for name in names[: len(args)]] + args[len(names) :]
    return given, {k: v for k, v in named.items() if k in kwargs}


def _fake(argument: Any) -> Any:
    return argument.meta.get("val") if isinstance(argument, Node) else argument


def _shared_dtypes(signature: Any, named: dict, fakes: dict, node: Node) -> dict[str, Any]:
    """{type variable: the dtype that arguments of it have}, for those that stand for one dtype."""
    sharing: dict[str, list[Any]] = {}
    for param in signature.params:
        if param.is_param() and not _is_sequence(param) and isinstance(fakes.get(param.name), Tensor | int | float):
            sharing.setdefault(param.type_constraint.name, []).append(fakes[param.name])
    found = {
        name: onnx_dtype(result_type(*values))
        for name, values in sharing.items()
        if any(isinstance(value, Tensor) for value in values)
    }
    result = node.meta.get("val")
    if isinstance(result, Tensor) and named.get("dtype") is None and signature.outputs:
        name = signature.outputs[0].type_constraint.name
        if name in found:
            found[name] = onnx_dtype(result.dtype)
    return found


def _is_sequence(param: Any) -> bool:
    return param.type_constraint.name.startswith("Sequence_")


def _operand(recorder: Recorder, param: Any, argument: Any, dtype: Any) -> Any:
    import onnx_ir

    if isinstance(argument, onnx_ir.Value):
        return recorder.cast(argument, dtype) if dtype is not None and argument.dtype not in (None, dtype) else argument
    if isinstance(argument, bool | int | float) and dtype is not None:
        return recorder.constant(argument, dtype)
    return argument
