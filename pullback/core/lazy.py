"""Heavy libraries, imported when first used: `lazy("scipy.special")` behaves as the module."""

from __future__ import annotations

import importlib


class lazy:
    """Stands for a module until one of its names is asked for."""

    def __init__(self, name: str):
        self.__name = name

    def __getattr__(self, attribute: str):
        module = importlib.import_module(self.__name)
        self.__dict__.update({k: v for k, v in vars(module).items() if not k.startswith("__")})
        return getattr(module, attribute)
