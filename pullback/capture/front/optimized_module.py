"""What `compile` returns: a function, or a module, that runs graphs of another.

In: the function or module, and what runs its graphs. Out: an object that stands for it everywhere. What always holds: inside another
capture, the function or module itself is captured; so a capture enters the methods here as if a program had written them.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from ...nn.module import Module
from ..bytecode.tracebacks import shown

__all__ = ["OptimizedModule", "as_function"]


def as_function(fn: Callable, compiled: Callable) -> Callable:
    """A plain function (so that it binds as a method) around the compiled one."""

    run = compiled.__call__  # a method is called sooner than an object that has it

    @functools.wraps(fn)
    def call(*args, **kwargs):
        try:
            return run(*args, **kwargs)
        except BaseException as error:
            shown(error)
            raise

    call._torchdynamo_orig_callable = fn
    call._torchdynamo_wrapper_id = id(call)  # what wraps it has its attributes, and is more than it
    call.compiled = compiled
    return call


class OptimizedModule(Module):
    """A module whose calls are compiled. Everything else is the module's own."""

    def __init__(self, mod: Module, make: Callable[[Callable], Any], again: Callable[[Module], Callable]):
        """`make` compiles a function as the module is compiled; `again` is what another process makes it by."""
        super().__init__()
        self._modules["_orig_mod"] = mod
        self.__dict__.pop("training")  # the module's own is read
        self.__dict__.update(compiled_call=make(mod), make=make, again=again)

    def dynamo_ctx(self, fn: Callable) -> Callable:
        """Another function, compiled as this module is: trainers compile `training_step` like `forward`."""
        return as_function(fn, self.make(fn))

    def __call__(self, /, *args, **kwargs):
        try:
            return self.compiled_call(*args, **kwargs)
        except BaseException as error:
            shown(error)
            raise

    __call__._torchdynamo_calls = "_orig_mod"  # type: ignore[attr-defined]  # inside a capture: what it is made of
    forward = __call__

    def __deepcopy__(self, memo: dict):
        return type(self)(copy.deepcopy(self._modules["_orig_mod"], memo), self.make, self.again)

    def __reduce__(self):
        return self.again, (self._modules["_orig_mod"],)

    def __dir__(self):
        return [*super().__dir__(), *dir(self._modules["_orig_mod"])]

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name) if name in self.__dict__ else delattr(self._modules["_orig_mod"], name)

    def __getitem__(self, key):
        return self._modules["_orig_mod"][key]

    def __len__(self) -> int:
        return len(self._modules["_orig_mod"])

    def __iter__(self):
        return iter(self._modules["_orig_mod"])

    def __getattr__(self, name: str):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._modules["_orig_mod"], name)

    def __setattr__(self, name: str, value) -> None:
        if (
            name in ("_orig_mod", "_modules", "_parameters", "_buffers")
            or name not in self.__dict__.get("_modules", {})
            and not hasattr(self, "_modules")
        ):
            super().__setattr__(name, value)
        elif name == "training" and "_orig_mod" not in self._modules:
            object.__setattr__(self, name, value)
        else:
            setattr(self._modules["_orig_mod"], name, value)
