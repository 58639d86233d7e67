"""`draft_export`: a program for the example at least, with a report of all that keeps it from being one for others.

In: what `export` takes. Out: an `ExportedProgram` whose `_report` lists, each once: operators without a fake rule, or with a wrong one;
questions about data, which were answered by the example and are asserted; sizes that could not be as dynamic as they were said to be.
"""

from __future__ import annotations

import dataclasses
import enum
import logging
from typing import Any

from ..capture.front.compile import UserError
from ..capture.shapes.errors import ConstraintViolationError
from ..capture.shapes.locations import Location
from ..core import tree
from ..core.tensor import Tensor
from ..nn.module import Module
from ..ops.make.random import fork_rng
from ..ops.system.operator import Operator
from .along import AlongEnv
from .dynamic_shapes import Dim, _DimHint
from .exported_program import ExportedProgram
from .trace import Export

log = logging.getLogger(__name__)


class FailureType(enum.IntEnum):
    """In which way an export is not sound."""

    MISSING_FAKE_KERNEL = 1
    DATA_DEPENDENT_ERROR = 2
    GUARD_ADDED = 3
    MISMATCHED_FAKE_KERNEL = 4
    CONSTRAINT_VIOLATION_ERROR = 5

    def __str__(self) -> str:
        return self.name


ADVICE = {
    FailureType.MISSING_FAKE_KERNEL: "`{op}` has no fake rule: register one with torch.library.register_fake.",
    FailureType.MISMATCHED_FAKE_KERNEL: "The fake rule of `{op}` does not say what its kernel does: {reason}",
    FailureType.DATA_DEPENDENT_ERROR: "{expr} depends on data: it was {result} in the example, which the program asserts. See torch._check.",
    FailureType.GUARD_ADDED: "The program is right only where {expr}.",
    FailureType.CONSTRAINT_VIOLATION_ERROR: "The sizes are not as free as dynamic_shapes says: {error} Dim.AUTO was taken in their place.",
}


@dataclasses.dataclass
class FailureReport:
    """One thing that an export had to assume."""

    failure_type: FailureType
    data: dict[str, Any]
    xfail: bool = False

    def print(self, str_to_filename: dict[int, str] | None = None) -> str:
        """The words for it, and the line of the program."""
        where = self.data.get("where")
        text = ADVICE[self.failure_type].format(**self.data)
        return f"{self.failure_type}: {text}" + (f"\n    {where.line}  # {where}" if where is not None else "")


@dataclasses.dataclass
class DraftExportReport:
    """All that an export had to assume."""

    failures: list[FailureReport] = dataclasses.field(default_factory=list)
    str_to_filename: dict[int, str] = dataclasses.field(default_factory=dict)
    expressions_created: dict[int, dict] = dataclasses.field(default_factory=dict)
    op_profiles: dict[str, set] = dataclasses.field(
        default_factory=dict
    )  # of operators without a fake rule, the calls that were made

    def successful(self) -> bool:
        """Whether the program is as sound as one of `export`."""
        return not self.failures or all(f.xfail for f in self.failures)

    def apply_suggested_fixes(self) -> None:
        raise NotImplementedError("apply_suggested_fixes is not implemented: the report says what to do")

    def __str__(self) -> str:
        if self.successful():
            return "draft_export found nothing that export would refuse."
        lines = [f"{i}. {failure.print()}" for i, failure in enumerate(self.failures, 1)]
        return f"draft_export assumed {len(self.failures)} things:\n" + "\n".join(lines)

    # ---- what the export tells
    def add(self, kind: FailureType, key: Any, **data: Any) -> None:
        """A failure, once for one place or operator."""
        if not any(f.failure_type is kind and f.data["key"] == key for f in self.failures):
            self.failures.append(FailureReport(kind, {"key": key, **data}))

    def missing(self, op: Operator, args: tuple, results: list[Tensor]) -> None:
        self.add(FailureType.MISSING_FAKE_KERNEL, op, op=str(op))
        given = tuple([_profile(a) for a in tree.tree_leaves(args) if isinstance(a, Tensor)])
        self.op_profiles.setdefault(str(op), set()).add((given, tuple([_profile(r) for r in results])))

    def mismatched(self, op: Operator, reason: str, words: str) -> None:
        self.add(FailureType.MISMATCHED_FAKE_KERNEL, (op, reason), op=str(op), reason=reason)

    def data_dependent(self, question: Any, value: Any, where: Location | None) -> None:
        key = question if where is None else (where.filename, where.lineno)
        self.add(FailureType.DATA_DEPENDENT_ERROR, key, expr=str(question), result=str(value), where=where)

    def guard(self, question: Any, where: Location | None) -> None:
        self.add(FailureType.GUARD_ADDED, question, expr=str(question), where=where)


def _profile(t: Tensor) -> tuple:
    """What a fake rule may go by."""
    return t._array.ndim, t.dtype, t.device, t.layout


def draft_export(
    mod: Module,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    preserve_module_call_signature: tuple[str, ...] = (),
    strict: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """The program that a module is for arguments like these, though data decides or operators have no fake rules; its `_report` says
    what was assumed. The module also runs on copies of the arguments; they and the module stay as they were."""
    report = DraftExportReport()
    kwargs = dict(sorted((kwargs or {}).items()))
    preserved, deferred = tuple(preserve_module_call_signature), prefer_deferred_runtime_asserts_over_guards
    with fork_rng():
        try:
            program = Export(mod, tuple(args), kwargs, dynamic_shapes, preserved, deferred, AlongEnv(report)).run()
        except (UserError, ConstraintViolationError) as error:
            if dynamic_shapes is None:
                raise
            report.failures.clear()
            report.add(FailureType.CONSTRAINT_VIOLATION_ERROR, "dynamic_shapes", error=str(error))
            free = automatic(dynamic_shapes)
            program = Export(mod, tuple(args), kwargs, free, preserved, deferred, AlongEnv(report)).run()
    program._report = report
    if not report.successful():
        log.warning("%s", report)
    return program


def automatic(dynamic_shapes: Any) -> Any:
    """What was said of sizes, with as much freedom as the program leaves them."""
    if isinstance(dynamic_shapes, (Dim, _DimHint)):
        return Dim.AUTO
    if isinstance(dynamic_shapes, dict):
        return {k: automatic(v) for k, v in dynamic_shapes.items()}
    if isinstance(dynamic_shapes, (list, tuple)):
        return type(dynamic_shapes)([automatic(v) for v in dynamic_shapes])
    return dynamic_shapes
