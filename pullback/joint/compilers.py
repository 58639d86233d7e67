"""Compilers to hand to `aot_function`: those that change nothing, those that print, and native code.

A compiler takes a graph and example inputs and gives a callable. A *boxed* callable takes its arguments in one list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..capture.front.backends import native_code
from ..core.logs import logger
from ..graph import GraphModule
from ..nn.module import Module
from .aot import aot_function, aot_module, aot_module_simplified, make_boxed_func, nop
from .partition import min_cut_rematerialization_partition


def make_boxed_compiler(compiler: Callable) -> Callable:
    """A compiler whose results take their arguments in a list."""

    def boxed_compiler(module: GraphModule, inputs: list) -> Callable:
        return make_boxed_func(compiler(module, inputs))

    return boxed_compiler


def print_compile(module: GraphModule, inputs: list) -> GraphModule:
    """Print the code of a graph, which runs as it is."""
    print(module.code)
    return module


def native(module: GraphModule, inputs: list) -> Callable:
    """A graph as native code."""
    return native_code(module, inputs, {})


def nnc_jit(f: Callable) -> Callable:
    """A function, compiled to native code at its first call."""
    return aot_function(f, native)


def memory_efficient_fusion(fn: Callable | Module, **options) -> Callable | Module:
    """A function or module as native code, which computes again in the backward what is cheap to compute."""
    given = {"fw_compiler": native, "partition_fn": min_cut_rematerialization_partition, **options}
    return aot_module(fn, **given) if isinstance(fn, Module) else aot_function(fn, **given)


class AotAutograd:
    """A backend for `torch.compile`: captured graphs, forward and backward, by the compilers and options of
    `aot_module_simplified` that it is made with."""

    def __init__(self, **kwargs: Any):
        if "fw_compiler" not in kwargs:
            raise TypeError(f"aot_autograd: fw_compiler is missing; got {', '.join(kwargs) or 'nothing'}")
        self.__name__ = "compiler_fn"
        self.kwargs = kwargs

    def __call__(self, module: GraphModule, example_inputs: list, **options: Any) -> Callable:
        if options:
            logger("aot").warning("aot_autograd: the options %s are not used", sorted(options))
        if callable(table := self.kwargs.get("decompositions")):
            self.kwargs["decompositions"] = table()
        return aot_module_simplified(module, example_inputs, **self.kwargs)


def aot_autograd(**kwargs: Any) -> AotAutograd:
    """The backend that hands graphs of forward and backward to compilers: `aot_autograd(fw_compiler=compiler)`."""
    return AotAutograd(**kwargs)


boxed_nop = make_boxed_compiler(nop)
