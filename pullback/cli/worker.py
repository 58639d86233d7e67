"""One rank of a job: `python -m pullback.cli.worker SCRIPT [arguments]`, as the launcher starts it.

In: what MPI's launcher set in the environment. Out: the script, run as `pullback run` does, with its rank under
torchrun's names in the environment. A script that fails ends all ranks, and leaves its traceback for the launcher.
"""

from __future__ import annotations

import os
import signal
import sys

from ..distributed import faults
from ..distributed.launcher import die_with_parent, name_rank, note_process
from .run import run


def main(words: list[str]) -> int:
    die_with_parent(signal.SIGKILL)
    rank = name_rank()
    note_process(rank)
    size = int(os.environ.get("WORLD_SIZE", "1"))
    as_module = words[:1] == ["-m"]
    target, *arguments = words[as_module:]
    try:
        code = run(target, arguments, as_module=as_module)
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 0 if e.code is None else 1
        if isinstance(e.code, str):
            print(e.code, file=sys.stderr)
    except BaseException as e:  # noqa: BLE001 - it is reported, and ends the job
        faults.fail(e, rank, size)
    if code:
        sys.stdout.flush()
        faults.write_record(rank, f"the script ended with status {code}\n", code)
        faults.abort(code)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
