"""`pullback launch -n 4 SCRIPT [arguments]`: a script as several ranks, joined by MPI.

In: a script, a number of ranks, perhaps a hostfile. Out: the exit status, 0 where all ranks ended well.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..distributed.launcher import launch
from ..distributed.run import command_of

__all__ = ["launch_script"]


def launch_script(
    target: str,
    arguments: Sequence[str],
    ranks: int,
    *,
    hostfile: str | None = None,
    as_module: bool = False,
    restarts: int = 0,
) -> int:
    """Run a script as ranks of one job."""
    if not as_module and not os.path.exists(target):
        print(f"pullback launch: can't open file {target!r}: no such file", file=sys.stderr)
        return 2
    try:
        return launch(command_of(target, arguments, as_module), ranks, hostfile, restarts)
    except RuntimeError as e:
        print(f"pullback launch: {e}", file=sys.stderr)
        return 2
