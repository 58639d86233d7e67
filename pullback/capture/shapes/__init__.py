"""Symbolic sizes: numbers that behave like ints in every shape computation and remember how they were made.

What comes in: tensors' sizes with the names of their sources. What goes out: `SymInt`s, and the guards under which everything that
was computed with them holds. `expressions`, `functions`, `relations` are the algebra; `facts` proves; `environment` asks and records;
`numbers` are what user code holds; `questions` are the functions that ask carefully.
"""

from .contexts import DimDynamic, StatefulSymbolicContext, StatelessSymbolicContext
from .environment import ShapeEnv, ShapeGuard
from .errors import ConstraintViolationError, GuardOnDataDependentSymNode
from .expressions import Expr, Symbol
from .numbers import SymBool, SymFloat, SymInt

__all__ = [
    "ConstraintViolationError", "DimDynamic", "Expr", "GuardOnDataDependentSymNode", "ShapeEnv", "ShapeGuard",
    "StatefulSymbolicContext", "StatelessSymbolicContext", "SymBool", "SymFloat", "SymInt", "Symbol",
]  # fmt: skip
