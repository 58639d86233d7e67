"""Compilers to hand to `aot_function`: those that change nothing, those that print, and native code.

A compiler takes a graph and example inputs and gives a callable. A *boxed* callable takes its arguments in one list.
"""

from __future__ import annotations

from collections.abc import Callable

from ..capture.front.backends import native_code
from ..graph import GraphModule
from ..nn.module import Module
from .aot import aot_function, aot_module, make_boxed_func, nop
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


boxed_nop = make_boxed_compiler(nop)
