"""Modules in C, where they are built.

In: the name of a module of this folder. Out: the module, or None where no compiler built it or `PULLBACK_NATIVE=0` turns it
off: the caller then computes in Python.
"""

from __future__ import annotations

import importlib
import os
from typing import Any


def extension(name: str) -> Any:
    if os.environ.get("PULLBACK_NATIVE") == "0":
        return None
    try:
        return importlib.import_module(f"{__package__}.{name}")
    except ImportError:
        return None
