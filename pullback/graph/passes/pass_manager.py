"""Passes as objects, and their orderly application.

In: functions or objects from a graph module to a `PassResult`. Out: the module after all of them, repeated until nothing
changes or the number of steps is reached. What always holds: constraints between passes are checked before they run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from ..module import GraphModule


class PassResult(NamedTuple):
    """A module, and whether the pass changed it."""

    graph_module: GraphModule
    modified: bool


class PassBase:
    """A pass. `requires` looks at the module before it, `ensures` after it; `call` does the work."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module if result is None else result.graph_module)
        return result

    def call(self, graph_module: GraphModule) -> PassResult | None:
        raise NotImplementedError(f"{type(self).__name__} does not define call")

    def requires(self, graph_module: GraphModule) -> None:
        """Check what must hold before the pass."""

    def ensures(self, graph_module: GraphModule) -> None:
        """Check what must hold after the pass."""


class PassManager:
    """Runs passes in order, up to `steps` times over."""

    def __init__(
        self,
        passes: list[Callable] | None = None,
        constraints: list[Callable[[Callable, Callable], bool]] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ):
        self.passes = passes or []
        self.constraints = constraints or []
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Callable) -> None:
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable) -> None:
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Raise where the order of the passes breaks a constraint."""
        for constraint in self.constraints:
            for i, first in enumerate(self.passes):
                for second in self.passes[i + 1 :]:
                    if not constraint(first, second):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {first} before {second} but found {second} "
                            "at an earlier index"
                        )
        self._validated = True

    def add_checks(self, check: Callable) -> None:
        """Set the function that looks at the module after the passes."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check  # type: ignore[method-assign]

    def check(self, module: GraphModule) -> None:
        """Nothing, until `add_checks`."""

    def __call__(self, module: GraphModule) -> PassResult:
        if not self._validated:
            self.validate_constraints()
        self.check(module)
        overall = False
        for _ in range(self.steps):
            modified = False
            for one in self.passes:
                module, changed = self._apply(one, module)
                modified |= changed
            overall |= modified
            if not modified:
                break
        return PassResult(module, overall)

    def _apply(self, one: Callable, module: GraphModule) -> tuple[GraphModule, bool]:
        name = getattr(one, "__name__", type(one).__name__)
        try:
            result = one(module)
        except Exception as e:
            raise Exception(f"An error occurred when running the '{name}' pass") from e
        if not isinstance(result, PassResult):
            raise TypeError(
                f"The result of the pass {name} should be type PassResult. Please wrap it with pass_result_wrapper()"
            )
        result.graph_module.recompile()
        if self.run_checks_after_each_pass:
            self.check(result.graph_module)
        return result.graph_module, result.modified


def pass_result_wrapper(fn: Callable | None) -> Callable | None:
    """A pass that returns nothing (it changes the module in place), as one that returns a result."""
    if fn is None:
        return None

    def wrapped(module: Any) -> PassResult:
        result = fn(module)
        return result if isinstance(result, PassResult) else PassResult(module, True)

    wrapped.__name__ = getattr(fn, "__name__", str(type(fn)))
    return wrapped


def this_before_that_pass_constraint(this: Callable, that: Callable) -> Callable[[Callable, Callable], bool]:
    """The constraint that one pass comes before another."""
    return lambda a, b: not (a == that and b == this)
