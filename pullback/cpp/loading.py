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

from ..library import torchaudio_operators, torchvision_images, torchvision_operators
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


def _written_here(path: str) -> ModuleType | None:
    """The module with the operators of a file that needs PyTorch's C++: torchvision's two, torchaudio's two."""
    folder, name = os.path.split(path)
    if folder.endswith(os.path.join("torchaudio", "lib")) and "prefixctc" not in name:
        return torchaudio_operators
    if os.path.basename(folder) != "torchvision":
        return None
    return torchvision_operators if name.startswith("_C") else torchvision_images if name.startswith("image") else None


def load_library(path: str | os.PathLike) -> None:
    """Load a library for the operators that it registers."""
    path = os.path.realpath(path)
    if path in ops.loaded_libraries:
        return
    written_here = _written_here(path)
    if written_here is not None:
        written_here.define()
        ops.loaded_libraries.add(path)
        return
    try:
        ctypes.CDLL(path)
    except OSError as error:
        raise OSError(f"Could not load this library: {path}") from error
    raise_failures()
    ops.loaded_libraries.add(path)
