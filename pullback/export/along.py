"""Symbols of a program that is exported while it runs on its example, too: what data decides is decided as it is there.

In: questions about numbers that depend on data. Out: the answer that the example gives, and an assertion in the program that it is
the same when it runs. What always holds: whoever listens (`report`) learns of each such question.
"""

from __future__ import annotations

from typing import Any, Protocol

from ..capture.fake.mode import FakeTensorMode
from ..capture.fake.real import RealTensorMode, Refusing, Report, assumed
from ..capture.shapes.locations import Location
from .constraints import ExportEnv


class Listener(Report, Protocol):
    """Who is told what an export had to assume."""

    def data_dependent(self, question: Any, value: Any, where: Location | None) -> None:
        """A question about data was answered by the example."""

    def guard(self, question: Any, where: Location | None) -> None:
        """The program is right only for some sizes of what was said to be of any."""


class Quiet(Refusing):
    """Refuses wrong shape rules, and tells nobody of what was assumed: the program asserts it."""

    def data_dependent(self, question: Any, value: Any, where: Location | None) -> None:
        """It is asserted."""

    def guard(self, question: Any, where: Location | None) -> None:
        """It is a condition of the program."""


class AlongEnv(ExportEnv):
    """Symbols of which the example tells what data makes of them."""

    def __init__(self, report: Listener | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.report = report or Quiet()

    def fake_mode(self, **options: Any) -> FakeTensorMode:
        return RealTensorMode(self.report, shape_env=self, **options)

    def of_data(self, expr: Any, original: Any) -> Any:
        try:
            value = self.value_of(expr)
        except LookupError:
            return super().of_data(expr, original)
        self.report.data_dependent(expr, value, self.locate())
        return assumed(self, expr, value)

    def _record(self, question: Any, size_oblivious: bool = False) -> None:
        before = len(self.guards)
        super()._record(question, size_oblivious)
        if len(self.guards) > before:
            self.report.guard(self.guards[-1].expr, self.guards[-1].sloc)
