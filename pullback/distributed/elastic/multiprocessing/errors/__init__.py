"""Errors of ranks: `record` leaves what a function raised where the launcher looks for it.

In: a program's main function. Out: the same, and in case of an exception a record in the job's folder and in the file that
`TORCHELASTIC_ERROR_FILE` names, with the traceback; the exception goes on.
"""

from __future__ import annotations

import functools
import json
import os
import time
import traceback
from collections.abc import Callable
from typing import Any

from ....faults import programs_part, write_record


class ChildFailedError(Exception):
    """A rank of a job failed."""

    def __init__(self, name: str, failures: dict[int, Any]):
        self.name, self.failures = name, failures
        said = "; ".join(f"rank {rank}: {failure}" for rank, failure in sorted(failures.items()))
        super().__init__(f"{name} FAILED: {said}")


def record(fn: Callable, error_handler: Any = None) -> Callable:
    """A function whose exceptions are recorded before they go on."""

    @functools.wraps(fn)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except SystemExit:
            raise
        except Exception as e:
            keep(e)
            raise

    return recorded


def keep(error: BaseException) -> None:
    """Write down an exception."""
    text = "".join(traceback.format_exception(type(error), error, programs_part(error.__traceback__)))
    write_record(int(os.environ.get("RANK", 0)), text)
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if path:
        info = {"py_callstack": text, "timestamp": str(int(time.time()))}
        with open(path, "w") as file:
            json.dump({"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": info}}, file)
