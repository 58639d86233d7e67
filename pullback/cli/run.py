"""`pullback run SCRIPT [arguments]`: an unchanged program, with pullback under the name `torch`.

In: a script's path, or a module's name, and its arguments. Out: the exit status; the script runs as `__main__`, sees
itself and its arguments in `sys.argv` and its folder first on `sys.path`, as under `python SCRIPT`.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

__all__ = ["run"]


def run(target: str, arguments: Sequence[str] = (), *, as_module: bool = False, compile: bool = False) -> int:
    """Run a program in which `import torch` means pullback; with `compile`, its functions are compiled. What it raises, SystemExit too, is left to the caller."""
    if compile and as_module:
        print("pullback run: --compile takes a script, not a module", file=sys.stderr)
        return 2
    if not as_module and not os.path.exists(target):
        print(f"pullback run: can't open file {target!r}: no such file", file=sys.stderr)
        return 2
    from pullback.compat.torch import install

    from .compiled_script import run_compiled

    install()
    argv, path = sys.argv, sys.path[:]
    sys.argv = [target, *arguments]
    try:
        if as_module:
            sys.path.insert(0, os.getcwd())
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, os.path.dirname(os.path.abspath(target)))
            run_compiled(target) if compile else runpy.run_path(target, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = argv, path
    return 0
