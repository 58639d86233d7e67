"""`torch.onnx.export`: a module, its exported graph, and that graph in ONNX.

In: a module (or an exported program) and example arguments. Out: an `ONNXProgram`, written to a file where one is named. What
always holds: the graph is the one that `torch.export` records; what it cannot record, or ONNX has no words for, is an error.
"""

from __future__ import annotations

import importlib
import inspect
import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.tree import tree_leaves
from ...export import Dim
from ...export import export as export_module
from ...export.exported_program import ExportedProgram
from ...export.functions import FunctionModule
from ...nn.module import Module
from .decompositions import onnx_decompositions
from .errors import OnnxExporterError
from .program import ONNXProgram
from .translation import WRITTEN_IN, Functions, Translation

state = {"exporting": False}  # read by `is_in_onnx_export`
DEFAULT_OPSET = 20


def export(
    model: Any,
    args: Any = (),
    f: Any = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    custom_translation_table: dict | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Any] | None = None,
    **older: Any,
) -> ONNXProgram | None:
    """Export a model to ONNX. With `dynamo=False`, the older form, the file is all there is, and nothing is returned."""
    _require()
    _refuse(report=report, profile=profile, dump_exported_program=dump_exported_program)
    unknown = set(older) - OLDER_OPTIONS
    if unknown:
        raise TypeError(f"export() got an unexpected keyword argument {sorted(unknown)[0]!r}")
    args, kwargs = _arguments(args, kwargs)
    program, axes = _exported(model, args, kwargs, dynamic_shapes, dynamic_axes, input_names)
    functions = Functions(custom_translation_table)
    functional = program.run_decompositions(onnx_decompositions(functions.find))
    result = ONNXProgram(Translation(functional, functions, axes).model(), program)
    _rename(result.model.graph.inputs, input_names, "input_names")
    _rename(result.model.graph.outputs, output_names, "output_names")
    if optimize:
        result.optimize()
    if (opset_version or DEFAULT_OPSET) != WRITTEN_IN:
        result.convert_version(opset_version or DEFAULT_OPSET)
    if verify:
        _verify(result, program, args, kwargs)
    if f is not None:
        _write(result, f, export_params, keep_initializers_as_inputs, external_data and dynamo)
    return result if dynamo else None


OLDER_OPTIONS = frozenset(
    "training operator_export_type do_constant_folding custom_opsets export_modules_as_functions autograd_inlining "
    "fallback dynamic_shapes example_outputs".split()
)


def _require() -> None:
    try:
        import onnx  # noqa: F401
        import onnxscript
    except ImportError as error:
        raise OnnxExporterError(
            f"torch.onnx.export needs the packages onnx and onnxscript: pip install onnx onnxscript ({error})"
        ) from error
    try:
        importlib.import_module("torch")  # onnxscript asks for it by this name
    except ImportError:
        raise OnnxExporterError(
            "torch.onnx.export: onnxscript imports torch, which means nothing here: call pullback.compat.torch.install() first, "
            "or make the name mean pullback in this environment (pullback alias)"
        ) from None
    if not hasattr(onnxscript, "GraphBuilder"):
        raise OnnxExporterError(f"torch.onnx.export needs onnxscript 0.7 or newer, found {onnxscript.__version__}")


def _refuse(**options: bool) -> None:
    for name, value in options.items():
        if value:
            raise NotImplementedError(f"torch.onnx.export: {name}=True is not implemented")


def _arguments(args: Any, kwargs: dict | None) -> tuple[tuple, dict]:
    """Arguments as a tuple; a dict at the end of it names the last ones, as older programs write it."""
    args = tuple(args) if isinstance(args, tuple | list) else (args,)
    if kwargs is None and args and isinstance(args[-1], dict):
        return args[:-1], args[-1]
    return args, kwargs or {}


def _exported(
    model: Any, args: tuple, kwargs: dict, dynamic_shapes: Any, dynamic_axes: Any, input_names: Any
) -> tuple[ExportedProgram, dict[str, str]]:
    """(the exported program, {expression of a size: name of the axis})."""
    if isinstance(model, ExportedProgram):
        return model, {}
    if not isinstance(model, Module) and not callable(model):
        raise TypeError(f"model must be a module or an ExportedProgram, got {type(model).__name__}")
    module = model if isinstance(model, Module) else FunctionModule(model)
    if dynamic_shapes is None and dynamic_axes:
        dynamic_shapes = _shapes_of_axes(module, args, kwargs, dynamic_axes, input_names)
    state["exporting"] = True
    try:
        program = export_module(module, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
    except Exception as error:
        raise OnnxExporterError(f"torch.export.export could not record the model: {error}") from error
    finally:
        state["exporting"] = False
    return program, _axis_names(program, dynamic_shapes)


def _parameters(module: Module, args: tuple, kwargs: dict) -> list[str]:
    """Names of the arguments of a call, in their order."""
    bound = inspect.signature(module.forward).bind(*args, **kwargs)
    return list(bound.arguments)


def _shapes_of_axes(module: Module, args: tuple, kwargs: dict, axes: Mapping, input_names: Any) -> Any:
    """`{"x": {0: "batch"}}` or `{"x": [0]}`, as `torch.export` takes it."""
    names = _parameters(module, args, kwargs)
    places = dict(zip(input_names or names, names, strict=False)) | {name: name for name in names}
    shapes: dict[str, Any] = dict.fromkeys(names)
    for name, marked in axes.items():
        if name not in places:
            continue  # axes of outputs follow from those of inputs
        named = marked if isinstance(marked, Mapping) else dict.fromkeys(marked)
        shapes[places[name]] = {
            axis: Dim(str(label)) if _is_name(label) else Dim.DYNAMIC for axis, label in named.items()
        }
    return shapes


def _is_name(label: Any) -> bool:
    return isinstance(label, str) and label.isidentifier()


def _axis_names(program: ExportedProgram, dynamic_shapes: Any) -> dict[str, str]:
    """{"s27": "batch"}: what the sizes of inputs are called, where their axes have names."""
    if not dynamic_shapes:
        return {}
    specs = list(dynamic_shapes.values()) if isinstance(dynamic_shapes, Mapping) else list(dynamic_shapes)
    inputs = [
        n for n in program.graph.nodes if n.op == "placeholder" and n.name in set(program.graph_signature.user_inputs)
    ]
    if len(specs) != len(inputs):
        return {}
    found: dict[str, str] = {}
    for node, spec in zip(inputs, specs, strict=True):
        axes = spec.items() if isinstance(spec, Mapping) else enumerate(spec or ())
        for axis, dim in axes:
            name = dim if isinstance(dim, str) else getattr(dim, "__name__", None)
            size = node.meta["val"].shape[axis] if isinstance(axis, int) and name else 0
            if type(size) is not int:
                found.setdefault(str(size), str(name))
    return found


def _rename(values: Sequence[Any], names: Sequence[str] | None, option: str) -> None:
    if names is None:
        return
    if len(names) > len(values):
        raise ValueError(f"{option} has {len(names)} names, the model has {len(values)}")
    for value, name in zip(values, names, strict=False):
        value.name = name


def _verify(result: ONNXProgram, program: ExportedProgram, args: tuple, kwargs: dict) -> None:
    """Run both, and compare."""
    from ...testing import assert_close

    wanted = [leaf for leaf in tree_leaves(program.module()(*args, **kwargs)) if leaf is not None]
    for got, want in zip(result(*args, **kwargs), wanted, strict=True):
        assert_close(got, want, rtol=1e-3, atol=1e-4, check_dtype=False)


def _write(result: ONNXProgram, f: Any, parameters: bool, as_inputs: bool, external: bool) -> None:
    if isinstance(f, io.IOBase) or hasattr(f, "write"):
        f.write(result.model_proto.SerializeToString())
        return
    result.save(f, include_initializers=parameters, keep_initializers_as_inputs=as_inputs, external_data=external)
