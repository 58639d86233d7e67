"""`compile(..., explain=True)`: a compiled function that can say what became of it.

In: a compiled function or module. Out: the same one, with `explain(file=None)`: the account of what was compiled since, here and by
whatever else is compiled meanwhile, which ends with the first call of it. What always holds: functions compiled without it pay nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ...core.layers import above

__all__ = ["explaining"]


class Explain:
    """The account, open until somebody asks for it."""

    def __init__(self) -> None:
        self.context: Any = above.collecting()
        self.account = self.context.__enter__()

    def __call__(self, file: str | os.PathLike | None = None) -> Any:
        """The account; its page is written to `file`, if one is named."""
        if self.context is not None:
            self.context.__exit__(None, None, None)
            self.context = None
        if file is not None:
            with open(file, "w", encoding="utf-8") as out:
                out.write(self.account.html())
        return self.account

    def __deepcopy__(self, memo: dict) -> Explain:
        return self  # a copy of a module is compiled under the same account


def explaining(compiled: Callable) -> Callable:
    """Keep account from now on, for `compiled.explain()`."""
    compiled.__dict__["explain"] = Explain()
    return compiled
