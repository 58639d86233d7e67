"""`pullback explain SCRIPT`: run a script with its functions captured, and say what became of each. Of a script that calls
`torch.compile` itself, the account is of what it compiles.

Out: a table of the script's functions with the number of graphs and operators, and where and why graphs ended; a table of the
operators that native code has no loops for, and why. With `--html FILE`, that code is built and timed too, and the whole account
goes into a page (see `report`).
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

    from ..report import Account

__all__ = ["explain"]


def explain(target: str, arguments: Sequence[str] = (), html: str | None = None) -> int:
    """Run a script and print the account of its functions; what the script prints goes before it."""
    if not os.path.exists(target):
        print(f"pullback explain: can't open file {target!r}: no such file", file=sys.stderr)
        return 2
    if html is not None and not os.path.isdir(os.path.dirname(os.path.abspath(html))):
        print(f"pullback explain: can't write {html!r}: there is no such folder", file=sys.stderr)
        return 2
    from pullback.compat.torch import install

    from ..capture.front.backends import lowered_only
    from ..capture.front.compile import compile as compile_function
    from ..report import collecting
    from .compiled_script import compiles_itself, run_compiled

    install()
    own = compiles_itself(Path(target).read_text(encoding="utf-8"), target)
    argv, path = sys.argv, sys.path[:]
    sys.argv = [target, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(target)))
    with collecting() as account:
        try:
            with contextlib.suppress(SystemExit):
                how = functools.partial(compile_function, backend="inductor" if html else lowered_only)
                run_compiled(target, how, as_it_is=own)
        finally:
            sys.argv, sys.path[:] = argv, path
    report(account)
    if own:
        print("The script compiles functions of its own: the account is of those.")
    if html is not None:
        Path(html).write_text(account.html(f"{os.path.basename(target)}: what the compiler did"), encoding="utf-8")
        print(f"The whole account: {html}")
    return 0


def report(account: Account) -> None:
    """Print the tables."""
    from rich.console import Console
    from rich.table import Table

    from ..report.advice import advised

    console = Console()
    table = Table("function", "graphs", "operators", "graphs end because", title="What was captured")
    for function in account.functions:
        if not function.graphs and not function.breaks:
            continue
        operators = sum(n.op.startswith("call_") for k in function.graphs for n in account.graphs[k].nodes)
        table.add_row(
            function.name, str(len(function.graphs)), str(operators), _plain("\n".join(_ends(function.breaks)))
        )
    console.print(table)
    if account.refusals:
        refused_table = Table("operator", "line", "because", title="What native code has no loops for")
        for refused in account.refusals:
            refused_table.add_row(refused.operator, ":".join(map(str, refused.line or ())), _plain(refused.reason))
        console.print(refused_table)
    advice = advised(b for f in account.functions for b in f.breaks)
    if advice:
        advice_table = Table("lines", "advice", title="What to try")
        for text, places in advice.items():
            advice_table.add_row(_plain("\n".join(place.partition(" in ")[0] for place in places)), _plain(text))
        console.print(advice_table)


def _ends(breaks: list[tuple[str, str | None]]) -> list[str]:
    """Why graphs end, each reason of a line once; those inside libraries as a count."""
    from ..report.advice import is_library

    why = Counter((reason.splitlines()[0], where) for reason, where in breaks if not is_library(where))
    lines = [
        f"{reason}{f' ({place})' if place else ''}{f', {n} times' if n > 1 else ''}"
        for (reason, place), n in why.items()
    ]
    inside = sum(is_library(where) for _, where in breaks)
    if inside:
        lines.append(f"and {inside} times inside libraries that it calls (--html lists them)")
    return lines or ["they do not"]


def _plain(text: str) -> Text:
    """Text in which square brackets are no markup."""
    from rich.text import Text

    return Text(text)
