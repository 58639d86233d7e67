"""`pullback explain SCRIPT`: run a script with its functions captured, and say what became of each.

Out: a table of the script's functions with the number of graphs and operators, and where and why graphs ended.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence

__all__ = ["explain"]


def explain(target: str, arguments: Sequence[str] = ()) -> int:
    """Run a script and print the account of its functions; what the script prints goes before it."""
    if not os.path.exists(target):
        print(f"pullback explain: can't open file {target!r}: no such file", file=sys.stderr)
        return 2
    from pullback.compat.torch import install

    from ..capture.front.compile import as_function
    from ..capture.front.explain import Explained
    from .compiled_script import run_compiled

    install()
    functions: list[Explained] = []

    def kept(fn: Callable) -> Callable:
        functions.append(Explained(fn))
        return as_function(fn, functions[-1])

    argv, path = sys.argv, sys.path[:]
    sys.argv = [target, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(target)))
    try:
        with contextlib.suppress(SystemExit):
            run_compiled(target, kept)
    finally:
        sys.argv, sys.path[:] = argv, path
    report(functions)
    return 0


def report(functions: list) -> None:
    """Print the table."""
    from rich.console import Console
    from rich.table import Table

    table = Table("function", "graphs", "operators", "graphs end because", title="What was captured")
    for function in functions:
        account = function.account
        if not account.graphs and not account.break_reasons:
            continue
        why = Counter((found.reason.splitlines()[0], found.user_stack) for found in account.break_reasons)
        lines = [
            f"{reason}{f' ({place})' if place else ''}{f', {n} times' if n > 1 else ''}"
            for (reason, place), n in why.items()
        ]
        table.add_row(function.name, str(account.graph_count), str(account.op_count), "\n".join(lines) or "they do not")
    Console().print(table)
