"""Public namespaces made of operators: `pullback.linalg`, `pullback.fft`, `pullback.special`, ...

Operators say where they are exported; each such namespace becomes a module here.
"""

from __future__ import annotations

import importlib.util
import sys
import types

from ..ops.system.operator import exports

_DESCRIPTIONS = {
    "linalg": "Linear algebra.",
    "fft": "Discrete Fourier transforms.",
    "special": "Special functions.",
    "signal": "Signal processing.",
    "signal.windows": "Window functions.",
    "sparse": "Sparse tensors.",
    "random": "The random number generator.",
}


def install(package: str) -> None:
    """Make the namespaces importable as submodules of `package`, filled with their functions."""
    for name, description in _DESCRIPTIONS.items():
        full = f"{package}.{name}"
        module = sys.modules.get(full)
        if module is None:
            try:
                found = importlib.util.find_spec(full)
            except ModuleNotFoundError:
                found = None
            if found is not None:
                module = importlib.import_module(full)
            else:
                module = types.ModuleType(full, description)
                sys.modules[full] = module
        for key, value in exports.get(name, {}).items():
            module.__dict__.setdefault(key, value)
        module.__dict__.setdefault("__all__", [key for key in exports.get(name, {}) if not key.startswith("_")])
        parent, _, short = full.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], short, module)
