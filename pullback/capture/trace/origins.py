"""Where in a program of modules the nodes of a trace come from.

In: the module whose submodules run. Out: inside the block, new nodes know in which submodules they were made
(`nn_module_stack`: name -> (name, class)) and by which public function (`torch_fn`: (its name and number, its kind and name)).
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import Any

from ...graph import traceback
from ...nn.module import Module
from ...nn.module_hooks import register_module_forward_hook, register_module_forward_pre_hook
from ...ops.system.overrides import TorchFunctionMode


class FunctionNames(TorchFunctionMode):
    """Inside, new nodes know the public function that was called."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", None) or str(func)
        self.counts[name] += 1
        before = traceback.current_meta
        called = (f"{name}_{self.counts[name]}", f"{type(func).__name__}.{name}")
        traceback.current_meta = {**before, "torch_fn": called}
        try:
            return func(*args, **(kwargs or {}))
        finally:
            traceback.current_meta = before


class Origins:
    """See the module's docstring."""

    def __init__(self, root: Module, functions: bool = True):
        self.names = {id(m): name for name, m in root.named_modules()}
        self.functions = functions
        self.stack: list[tuple[str, str]] = []

    def __enter__(self) -> None:
        self.block = ExitStack()
        self.block.callback(setattr, traceback, "current_meta", traceback.current_meta)
        for handle in (
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ):
            self.block.callback(handle.remove)
        if self.functions:
            self.block.enter_context(FunctionNames())

    def __exit__(self, *exc: Any) -> None:
        self.block.close()

    def _enter(self, module: Module, args: tuple) -> None:
        if id(module) in self.names:
            kind = type(module)
            self.stack.append((self.names[id(module)], f"{kind.__module__}.{kind.__qualname__}"))
            self._tell()

    def _leave(self, module: Module, args: tuple, out: Any) -> None:
        if id(module) in self.names and self.stack:
            self.stack.pop()
            self._tell()

    def _tell(self) -> None:
        rest = {k: v for k, v in traceback.current_meta.items() if k != "nn_module_stack"}
        own = {"nn_module_stack": {name: (name, kind) for name, kind in self.stack}} if self.stack else {}
        traceback.current_meta = {**rest, **own}
