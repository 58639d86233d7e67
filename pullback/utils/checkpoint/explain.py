"""What a mismatch looked like from inside: the operators of the forward and of the recomputation, with their stacks."""

from __future__ import annotations

import traceback
from contextlib import contextmanager

from ...core.tensor import Tensor
from ...ops.system.overrides import TorchDispatchMode
from .recompute import CheckpointError

_RULE = "+" + "-" * 78 + "+"
_ADVICE = """ERROR: Detected non-determinism while running activation checkpointing

 You are seeing this error because you passed `debug=True` to checkpoint and
 tensors to be saved during the original forward and differ between those saved
 during recomputation. This can happen if different operators were ran in the
 original forward and in the recomputation.

 To find where they part, compare the two lists of operators above, and look up
 the stacks of the first that differ."""


class _Log(TorchDispatchMode):
    """Lists operators as they run, with the stack of each."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.stacks: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        shown = ", ".join(f"{a.dtype}{list(a.shape)}" if isinstance(a, Tensor) else repr(a) for a in args)
        self.lines.append(f"{func}({shown})")
        self.stacks.append("".join(traceback.format_stack(limit=12)[:-2]))
        return func(*args, **(kwargs or {}))


class Explainer:
    """Contexts that log a forward and its recomputation, and the error that shows both."""

    def __init__(self) -> None:
        self.logs = {"original": _Log(), "recompute": _Log()}

    def contexts(self) -> tuple:
        return self._logging("original"), self._logging("recompute")

    @contextmanager
    def _logging(self, name: str):
        self.logs[name] = _Log()
        with self.logs[name]:
            yield

    def explain(self, error: CheckpointError) -> None:
        """Raise the mismatch with the logs."""
        parts = ["An error happened while unpacking tensors; these are the operators that ran."]
        for name, log in self.logs.items():
            parts += [_RULE, f"Stack traces of the operators in the {name} run", _RULE]
            for i, (line, stack) in enumerate(zip(log.lines, log.stacks, strict=True), 1):
                parts.append(f"{line}   ({i} of {len(log.lines)} in {name})\n\n{stack}")
        for name, log in self.logs.items():
            parts += [_RULE, f"Operators in the {name} run", _RULE, *log.lines]
        raise CheckpointError("\n".join((*parts, _RULE, _ADVICE, "", str(error)))) from error
