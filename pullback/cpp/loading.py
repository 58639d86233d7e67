"""Shared libraries into the process: as Python modules, or for what they register.

What always holds: an error of a TORCH_LIBRARY block inside is raised by the call that loaded it; a library is loaded once.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
from pathlib import Path
from types import ModuleType

from ..library import torchvision_operators
from ..ops.system.packet import ops
from .registry import raise_failures

_modules: dict[str, ModuleType] = {}


def load_module(name: str, path: Path) -> ModuleType:
    """The Python module in a library."""
    key = str(path)
    if key not in _modules:
        loader = importlib.machinery.ExtensionFileLoader(name, key)
        spec = importlib.util.spec_from_file_location(name, key, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        raise_failures()
        loader.exec_module(module)
        _modules[key] = module
    return _modules[key]


def load_library(path: str | os.PathLike) -> None:
    """Load a library for the operators that it registers."""
    path = os.path.realpath(path)
    if path in ops.loaded_libraries:
        return
    if os.path.basename(os.path.dirname(path)) == "torchvision" and os.path.basename(path).startswith("_C"):
        torchvision_operators.define()  # that file needs PyTorch's C++; its operators are written here
        ops.loaded_libraries.add(path)
        return
    try:
        ctypes.CDLL(path)
    except OSError as error:
        raise OSError(f"Could not load this library: {path}") from error
    raise_failures()
    ops.loaded_libraries.add(path)
