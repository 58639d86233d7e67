"""Layers that are loaded when they are first asked for.

Compilers, fake tensors, files and extensions in C++ would make every start slower. The layers below reach them through
seams (`core/layers.py`); the functions that are set here import the layer that answers, then hand the call on. The
package's root imports this module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from inspect import Signature
from types import ModuleType
from typing import Any

from ..core.layers import above


def package() -> ModuleType:
    return sys.modules[__name__.partition(".")[0]]


def reduce_tensor(tensor: Any) -> tuple:
    from ..serialization.tensors import reduce_tensor

    return reduce_tensor(tensor)


def call_signature(function: Callable, operators: tuple, inplace: bool) -> Signature:
    from ..ops.system.signatures import call_signature

    return call_signature(function, operators, inplace)


def load_library(path: Any) -> None:
    from ..cpp.loading import load_library

    load_library(path)


def load_higher_order() -> None:
    from ..capture import higher_order  # noqa: F401 - importing it declares the operators


def compile_function(function: Callable, *args: Any, **kwargs: Any) -> Callable:
    from ..capture.front.compile import compile

    return compile(function, *args, **kwargs)


def collecting() -> Any:
    from ..report import collecting

    return collecting()


def functionalize(function: Callable, remove: str) -> Callable:
    from ..joint.transform import functionalize

    return functionalize(function, remove=remove)


def fake_mode(allow_real: bool, unknown_sizes: bool = False) -> Any:
    from ..capture.fake.mode import FakeTensorMode
    from ..capture.shapes.environment import ShapeEnv

    env = ShapeEnv() if unknown_sizes else None
    return FakeTensorMode(allow_non_fake_inputs=allow_real, shape_env=env, static_shapes=True)


def differentiated_ahead(function: Callable, dynamic: bool) -> Callable:
    from ..joint.aot import aot_function

    return aot_function(function, lambda module, example: module, dynamic=dynamic)


def compile_ahead(module: Any, inputs: list, compiler: Callable, partition: str) -> Callable:
    from ..joint import aot
    from ..joint import partition as partitions

    return aot.aot_module_simplified(
        module, inputs, compiler, partition_fn=getattr(partitions, partition), lazy_backward=False
    )


def compile_native(module: Any) -> Callable:
    from ..codegen import compile_graph

    return compile_graph(module)


def lower_native(module: Any) -> Callable:
    from ..codegen import lower_graph

    return lower_graph(module)


def _on_device(module: str, name: str) -> Callable:
    """A function of `codegen.cuda` that is asked for with every call on a device: imported with the first."""
    found: list[Callable] = []

    def call(*args: Any) -> Any:
        if not found:
            found.append(getattr(import_module(f"..codegen.cuda.{module}", __package__), name))
        return found[0](*args)

    return call


def backwards_compiled_by(compile: Callable, dynamic: bool) -> Any:
    from ..backward.compiled import enable

    return enable(compile, dynamic, ignore_active_disable_ctx=False)


def captured_transform(*call: Any) -> Any:
    from ..capture.higher_order import transforms

    return transforms.captured_transform(*call)


def apply_batched(function: type, args: tuple, kwargs: dict) -> Any:
    from ..func.custom import apply_batched

    return apply_batched(function, args, kwargs)


def forward_over_reverse(function: Callable, inputs: tuple) -> tuple:
    from ..func.jacobians import forward_over_reverse

    return forward_over_reverse(function, inputs)


above.package = package
above.reduce_tensor = reduce_tensor
above.call_signature = call_signature
above.load_library = load_library
above.load_higher_order = load_higher_order
above.compile_function = compile_function
above.collecting = collecting
above.functionalize = functionalize
above.captured_transform = captured_transform
above.apply_batched = apply_batched
above.forward_over_reverse = forward_over_reverse
above.fake_mode = fake_mode
above.differentiated_ahead = differentiated_ahead
above.compile_ahead = compile_ahead
above.compile_native = compile_native
above.lower_native = lower_native
above.elements_on_device = _on_device("elements", "run")
above.plain_on_device = _on_device("calls", "run_plain")
above.operator_on_device = _on_device("operators", "run")
above.backwards_compiled_by = backwards_compiled_by
