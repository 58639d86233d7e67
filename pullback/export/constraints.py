"""From what users say about sizes to symbols, and from what tracing needed of them to checks.

In: `dynamic_shapes` and the arguments it speaks of. Out: how each dimension becomes a symbol, the conditions under which
the exported graph is right (Python over the inputs' names), the range of every symbol. What always holds: where tracing
needs more of a `Dim` than its bounds promise, exporting fails and says so; of `Dim.AUTO` it may need anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..capture.fake.mode import FakeTensorMode
from ..capture.front.compile import UserError
from ..capture.shapes.check import Conditions, check_constraints
from ..capture.shapes.config import config as settings
from ..capture.shapes.contexts import (
    DimDynamic,
    RelaxedUnspecConstraint,
    StatelessSymbolicContext,
    StrictMinMaxConstraint,
    ValueRanges,
)
from ..capture.shapes.environment import ShapeEnv
from ..capture.shapes.errors import ConstraintViolationError
from ..capture.shapes.expressions import Expr, Symbol
from ..capture.shapes.facts import INFINITE, Facts
from ..capture.shapes.numbers import wrap
from ..capture.shapes.relations import Relation, compare
from ..capture.shapes.writing import write_python
from ..capture.trace.graph_trace import GENERATED
from ..core import tree
from ..core.tensor import Tensor
from .dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, _DimHint, _DimHintType, bad
from .inputs import bound_arguments
from .python_asserts import is_asserted, user_frame
from .suggestions import suggested_fixes

LARGEST = 2**63 - 1  # as an end of a slice: no size reaches it


class ExportEnv(ShapeEnv):
    """Symbols of an exported program.

    Rules of operators ask whether two sizes are equal in order to choose strides. That they differ in the example is no
    condition of the program: its operators are called again with the sizes there are.
    """

    def __init__(self, traced: bool = False, **options: Any) -> None:
        super().__init__(duck_shape=False, **options)
        self.traced = traced  # whether only operators ask from now on, the user's code having run

    def without_hint(self, expr: Any, original: Any = None) -> Any:
        """The value of what hangs on data: nobody knows it, but of what the program asserts it is known what it should be."""
        if expr.kind is bool and not self.traced and is_asserted(user_frame()):
            return self.expect_true(expr)
        return self.of_data(expr, original)

    def of_data(self, expr: Any, original: Any) -> Any:
        """The value of what hangs on data, and is not promised."""
        return super().without_hint(expr, original)

    def fake_mode(self, **options: Any) -> FakeTensorMode:
        """A mode whose sizes are symbols of this environment."""
        return FakeTensorMode(shape_env=self, **options)

    def _record(self, question: Any, size_oblivious: bool = False) -> None:
        if isinstance(question, Relation) and any(type(side) is int and side >= LARGEST for side in question.args):
            return
        if isinstance(question, Relation) and question.operator == "!=":
            where = self.locate()
            if self.traced or where is not None and where.filename.startswith(GENERATED):
                return
        if self.prefer_deferred_runtime_asserts_over_guards and len(question.symbols) > 1 and not self._suppressed:
            self.expect_true(question)
        else:
            super()._record(question, size_oblivious)

    def _unify(self, question: Any) -> None:
        """What is asserted when the program runs rewrites no input by others: it is the assertion that is to fail."""
        deferred = self.prefer_deferred_runtime_asserts_over_guards and len(question.symbols) > 1
        if not deferred or any(s.is_unbacked for s in question.symbols):
            super()._unify(question)

    def _backed(self, val: Any, name: str, dynamic_dim: Any, positive: bool | None, specialize: bool) -> Any:
        oblivious = specialize and positive and settings.backed_size_oblivious and val in (0, 1)
        result = super()._backed(val, name, dynamic_dim, positive, specialize and not oblivious)
        if oblivious:
            self.facts.set_range(result, 2, INFINITE)
        return result


class VR(ValueRanges):
    """The bounds of a symbol, printed as PyTorch prints them."""

    __slots__ = ()

    def __repr__(self) -> str:
        low, high = ("int_oo" if b == INFINITE else "-int_oo" if b == -INFINITE else str(int(b)) for b in self)
        return f"VR[{low}, {high}]"


def specs_of(mod: Any, args: tuple, kwargs: dict, dynamic_shapes: Any) -> list:
    """What is said of each leaf of the arguments: None, a hint for an int, {dimension: Dim, hint or int} for a tensor."""
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    named = bound_arguments(mod, args, kwargs)
    if not dynamic_shapes:
        said: dict = dict.fromkeys(named)
    elif isinstance(dynamic_shapes, Mapping):
        if dynamic_shapes.keys() != named.keys():
            raise bad(
                f"When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names {list(named)} of `inputs`, but here they are {list(dynamic_shapes)}. "
                "Alternatively, you could also ignore arg names entirely and specify `dynamic_shapes` as a list/tuple matching `inputs`."
            )
        said = {k: dynamic_shapes[k] for k in named}
    elif isinstance(dynamic_shapes, (tuple, list)):
        if len(dynamic_shapes) != len(named):
            raise mismatch(
                "", f"`inputs` has {len(named)} elements, but `dynamic_shapes` has {len(dynamic_shapes)} elements"
            )
        said = dict(zip(named, dynamic_shapes, strict=True))
    else:
        raise bad(f"Expected `dynamic_shapes` to be a dict, list or tuple, got {type(dynamic_shapes)}")
    order = [*[k for k in named if k not in kwargs], *sorted(k for k in named if k in kwargs)]
    return [spec for k in order for spec in leaf_specs(named[k], said[k], f"['{k}']")]


def mismatch(where: str, how: str) -> UserError:
    at = f" at `dynamic_shapes{where}`" if where else ""
    return bad(f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`{at}: {how}")


def leaf_specs(value: Any, said: Any, where: str) -> list:
    """What is said of each leaf of one argument."""
    if isinstance(value, Tensor):
        return [tensor_spec(value, said, where)]
    if tree.optree.tree_is_leaf(value, none_is_leaf=True, namespace="pullback"):
        return [number_spec(value, said, where)]
    children, _, keys, _ = tree.optree.tree_flatten_one_level(value, none_is_leaf=True, namespace="pullback")
    if said is None:
        parts: list = [None] * len(children)
    elif isinstance(value, Mapping):
        if not isinstance(said, Mapping) or said.keys() != value.keys():
            has = list(said) if isinstance(said, Mapping) else said
            raise mismatch(where, f"`inputs{where}` has keys {list(value)}, but `dynamic_shapes{where}` is {has}")
        parts = [said[k] for k in keys]
    else:
        parts = (
            tree.optree.tree_flatten_one_level(said, none_is_leaf=True, namespace="pullback")[0]
            if type(said) is type(value)
            else said
        )
        if not isinstance(parts, (tuple, list)):
            raise mismatch(where, f"`inputs{where}` is a {type(value)}, but `dynamic_shapes{where}` is a {type(said)}")
        if len(parts) != len(children):
            raise mismatch(
                where,
                f"`inputs{where}` has {len(children)} elements, but `dynamic_shapes{where}` has {len(parts)} elements",
            )
    return [s for v, p, k in zip(children, parts, keys, strict=True) for s in leaf_specs(v, p, f"{where}[{k!r}]")]


def number_spec(value: Any, said: Any, where: str) -> _DimHint | None:
    if said is None or isinstance(said, _DimHint) and said.type is _DimHintType.STATIC:
        return None
    if type(value) is int and isinstance(said, _DimHint):
        return said
    raise bad(
        f"Cannot associate shape {said!r} specified at `dynamic_shapes{where}` to non-tensor type {type(value)} at `inputs{where}` (expected None)"
    )


def tensor_spec(t: Tensor, said: Any, where: str) -> dict[int, Any]:
    if said is None:
        return {}
    if isinstance(said, (tuple, list)):
        if len(said) != t.ndim:
            raise bad(
                f"Expected dynamic shape spec {said} specified at `dynamic_shapes{where}` to have the same length as the actual tensor shape {tuple(t.shape)} (expected {t.ndim}, but got {len(said)} instead)"
            )
        said = dict(enumerate(said))
    if not isinstance(said, Mapping):
        raise bad(f"Unexpected input tensor shape {said!r} specified at `dynamic_shapes{where}` (expected either a list/tuple of dimensions, or a dict mapping indices to dimensions, where each dimension is an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)")  # fmt: skip
    for d, dim in said.items():
        if type(d) is not int or not 0 <= d < t.ndim:
            raise bad(
                f"Expected dimension index {d!r} at `dynamic_shapes{where}` to lie within the tensor's {t.ndim} dimensions"
            )
        if dim is not None and not isinstance(dim, (int, Dim, _DimHint)):
            raise bad(
                f"Unexpected dimension mapped to index {d} in input tensor shape {said} specified at `dynamic_shapes{where}` (expected None, an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC,  but got {dim!r} instead)"
            )
        if type(dim) is int and dim != t.shape[d]:
            raise bad(
                f"Static shape constraint of {dim} does not match input size of {t.shape[d]}, for `inputs{where}`.shape[{d}]"
            )
    return dict(said)


def is_dynamic(dim: Any) -> bool:
    return isinstance(dim, Dim) or isinstance(dim, _DimHint) and dim.type is not _DimHintType.STATIC


def context_of(t: Tensor, spec: dict[int, Any]) -> StatelessSymbolicContext | None:
    """How the sizes of a tensor become symbols; None where they stay numbers."""
    if not any(is_dynamic(d) for d in spec.values()):
        return None
    ways = [DimDynamic.DYNAMIC if is_dynamic(spec.get(d)) else DimDynamic.STATIC for d in range(t.ndim)]
    return StatelessSymbolicContext(ways, constraint_sizes=[constraint_of(spec.get(d)) for d in range(t.ndim)])


def constraint_of(dim: Any):
    """What the user promises of a dimension. Of one made of another nothing but that, which `Links` says."""
    if isinstance(dim, Dim):
        return StrictMinMaxConstraint(vr=ValueRanges(dim.min, dim.max)) if dim.root is dim else None
    if not is_dynamic(dim):
        return None
    return RelaxedUnspecConstraint() if dim.type is _DimHintType.DYNAMIC else None


class NotInRange(UserError, ConstraintViolationError):
    """An example that lies outside of the bounds that were said."""


class ConstraintsViolated(UserError, ConstraintViolationError):
    """Dimensions of which the program needs more than was said."""


class HintRefused(UserError, ValueError):
    """What was said of a dimension without a name does not fit what the program needs."""


class Hints:
    """Dimensions without names: what tracing made of them is compared with what was said."""

    def __init__(self, env: ShapeEnv, sizes: list[tuple[str, Any, Any]]):
        self.env = env
        self.rows = [(inputs_name(where), size, dim) for where, size, dim in sizes if isinstance(dim, _DimHint)]
        broken = [
            f"- Received user-specified dim hint {said(dim)}, but export 0/1 specialized due to hint of {size} for dimension {where}."
            for where, size, dim in self.rows
            if type(size) is int and dim.type is _DimHintType.DYNAMIC
        ]
        self.refuse(broken)

    def refuse(self, broken: list[str]) -> None:
        if broken:
            raise HintRefused("Found the following conflicts between user-specified ranges and inferred ranges from model tracing:\n" + "\n".join(broken))  # fmt: skip

    def check(self) -> None:
        """Raise for conflicts; otherwise the bounds that were said hold from now on."""
        broken, bounds = [], []
        for where, size, dim in self.rows:
            expr = self.env.replace(size.node.expr) if hasattr(size, "node") else size
            low, high = self.env.bounds(expr) if isinstance(expr, Expr) else (expr, expr)
            if dim.min is not None and dim.min > high or dim.max is not None and dim.max < low:
                shown = f"[{int(low)}, {'int_oo' if high == INFINITE else int(high)}]"
                broken.append(f"- Received user-specified min/max range of [{dim.min}, {dim.max}], conflicting with the inferred min/max range of {shown}, for {where}.")  # fmt: skip
            elif bounds_meet(expr, low, high, dim) and dim.type is _DimHintType.DYNAMIC:
                expr = expr if type(expr) is int else int(max(low, dim.min or low))
                broken.append(f"- Received user-specified dim hint {said(dim)}, but tracing inferred a static shape of {expr} for dimension {where}. You marked it as dynamic but your code specialized it to be a constant ({expr}). If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO.")  # fmt: skip
            elif isinstance(expr, Symbol):
                bounds.append((expr, dim))
        self.refuse(broken)
        for symbol, dim in bounds:
            if dim.min is not None and dim.min > 2 or dim.max is not None:
                self.env.constrain_symbol_range(symbol, dim.min, dim.max)


def bounds_meet(expr: Any, low: float, high: float, dim: _DimHint) -> bool:
    """Whether the bounds that a hint says, with those that tracing inferred, leave one value."""
    if dim.min is None and dim.max is None:
        return False  # no bounds were said: that it is one value is said of it as of a named dimension
    low, high = max(low, low if dim.min is None else dim.min), min(high, high if dim.max is None else dim.max)
    return not isinstance(expr, Expr) or low == high


def said(dim: _DimHint) -> str:
    """A hint as users write it."""
    bounds = [f"{k}={v}" for k, v in (("min", dim.min), ("max", dim.max)) if v is not None]
    return f"Dim.{dim.type.name}({', '.join(bounds)})" if bounds else f"Dim.{dim.type.name}"


def inputs_name(where: str) -> str:
    """A size of an input (`L['x'][0].size()[1]`) as `dynamic_shapes` speaks of it."""
    return where.replace("L[", "inputs[", 1).replace(".size()", ".shape")


CONSTANT = (
    "You marked {name} as dynamic but your code specialized it to be a constant ({value}). If you're using mark_dynamic, either remove it or use maybe_mark_dynamic. "
    "If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO."
)


class Links:
    """The symbols of named dimensions: one for each name, others made of it."""

    def __init__(self, env: ShapeEnv):
        self.env = env
        self.roots: dict[str, tuple[Dim, Symbol, str]] = {}  # by name: the Dim, its symbol, where it was first seen
        self.guards_before = 0

    def link(self, sizes: list[tuple[str, Any, Any]]) -> None:
        """Relate sizes (where each stands, what it is, its Dim) that are the same, or made of one another."""
        self.hints = Hints(self.env, sizes)
        for where, size, dim in sizes:
            if isinstance(dim, Dim) and type(size) is int:
                self._in_range(where, size, dim)
                if constraint_of(dim) is not None:
                    raise self.constant(dim.__name__, size)
        named = [(w, s, d) for w, s, d in sizes if isinstance(d, Dim)]
        for where, size, dim in sorted(named, key=lambda row: row[2].root is not row[2]):
            self._link(where, size, dim)
        self.guards_before = len(self.env.guards)
        self.roots = {name: (dim, self.env.replace(s), where) for name, (dim, s, where) in self.roots.items()}

    def constant(self, name: str, value: int) -> UserError:
        """The error for a size or number that was to be dynamic, and is one value."""
        return ConstraintsViolated(
            f'Constraints violated ({name})! For more information, run with TORCH_LOGS="+dynamic".\n'
            f"  - {CONSTANT.format(name=name, value=value)}\nSuggested fixes:\n  {name} = {value}"
        )

    def _link(self, where: str, size: Any, dim: Dim) -> None:
        value = size.node.hint
        root, rest = divmod(value - dim.offset, dim.factor)
        if rest or root < 0:
            raise bad(
                f"Expected shape {inputs_name(where)} = {value} of input Tensor to be of the form {dim.__name__}, where {dim.root.__name__} is an integer"
            )
        name = dim.root.__name__
        if name not in self.roots:
            self._in_range(where, value, dim)
        if name not in self.roots:
            symbol = size.node.expr if dim.root is dim else self._phantom(dim.root, root, name)
            self.roots[name] = (dim.root, symbol, where)
        known, symbol, first = self.roots[name]
        if (known.min, known.max) != (dim.root.min, dim.root.max):
            raise bad(f"Found different definitions {known} and {dim.root} for the same symbolic dimension {name}!")
        whole = wrap(symbol, self.env) * dim.factor + dim.offset
        if whole.node.hint != value:
            raise bad(
                f"Expected input {where} to be equal to {dim.__name__}, where {name} = {self.env.hints[symbol]}, but got {value}"
            )
        self._in_range(where, value, dim)
        expr = whole.node.expr
        if size.node.expr is not expr:
            self.env.evaluate_expr(compare("==", size.node.expr, expr))

    def _in_range(self, where: str, value: int, dim: Dim) -> None:
        if not dim.min <= value <= dim.max:
            raise NotInRange(f"{value} not in range [{dim.min}, {dim.max}]: {inputs_name(where)} was said to be {dim}")

    def _phantom(self, root: Dim, value: int, name: str) -> Symbol:
        """The symbol of a name that no input shows by itself."""
        result = self.env.create_symbol(value, name, DimDynamic.DYNAMIC, constraint_of(root))
        if not isinstance(result, Symbol):
            raise self.constant(name, value)
        return result

    def check(self) -> None:
        """Raise where the trace needed more of the named dimensions than was said."""
        self.hints.check()
        broken = [*self._related(), *self._conditions()]
        if broken:
            names = ", ".join(dict.fromkeys(name for name, _ in broken))
            fixes = suggested_fixes(self.env, self.roots, [name for name, _ in broken])
            advice = "\nSuggested fixes:\n" + "\n".join(f"  {fix}" for fix in fixes) if fixes else ""
            raise ConstraintsViolated(
                f'Constraints violated ({names})! For more information, run with TORCH_LOGS="+dynamic".\n'
                + "\n".join(f"  - {text}" for _, text in broken) + advice
            )  # fmt: skip
        try:
            check_constraints(self.env)
        except ConstraintViolationError as error:
            raise ConstraintsViolated(str(error)) from error

    def _related(self) -> list[tuple]:
        """Names that turned out to be numbers, equal, or made of each other."""
        found: list[tuple] = []
        seen: dict = {}  # what the names came to be, by the expression
        for name, (_, symbol, where) in self.roots.items():
            now = self.env.replace(symbol)
            if not isinstance(now, Expr):
                found.append((name, CONSTANT.format(name=name, value=now)))
                continue
            if now in seen:
                other = seen[now]
                text = f"The values of {name} = {where} and {other} = {self.roots[other][2]} must always be equal."
                found.append((name, text))
            seen.setdefault(now, name)
        for name, (_, symbol, where) in self.roots.items():
            now = self.env.replace(symbol)
            if isinstance(now, Expr) and now is not symbol and not isinstance(now, Symbol) and len(now.symbols) == 1:
                text = write_python(now, _Namer(self, seen))
                others = " and ".join(f"{seen[s]} = {self.roots[seen[s]][2]}" for s in now.symbols if s in seen)
                related = f" related to the values of {others} by" if others else ""
                found.append((name, f"The values of {name} = {where} must always be{related} {name} = {text}."))
        return found

    def _conditions(self) -> list[tuple]:
        """Conditions on one named dimension that are neither bounds nor equalities. Those on several are checked when the
        program runs."""
        found, owners = [], {self.env.replace(s): n for n, (_, s, _) in self.roots.items()}
        for guard in self.env.guards[self.guards_before :]:
            question = self.env.replace(guard.expr)
            if not isinstance(question, Expr) or len(question.symbols) > 1 or self._promised(question):
                continue
            names = [owners[s] for s in sorted(question.symbols, key=str) if s in owners]
            if names:
                text = write_python(question, _Namer(self, owners))
                found.append((names[0], f"Not all values of {names[0]} = {self.roots[names[0]][2]} satisfy the generated guard {text}, from {guard.reason}"))  # fmt: skip
        return found

    def _promised(self, question: Any) -> bool:
        """Whether a question follows from the bounds that the symbols were made with."""
        facts = Facts()
        for symbol in question.symbols:
            low, high = self.env.first_ranges.get(symbol, (-INFINITE, INFINITE))
            facts.ranges[symbol] = low, min(high, LARGEST - 1)
        return facts.decide(question) is True


class _Namer:
    """Writes expressions by the names of dimensions, or of the inputs' sizes."""

    def __init__(self, links: Links, owners: dict):
        self.links, self.owners = links, owners

    def __call__(self, symbol: Symbol) -> str:
        return self.owners.get(symbol) or self.links.env.var_to_sources[symbol][0]


def conditions_of(env: ShapeEnv, inputs: list[tuple[str, Any]]) -> list[str]:
    """What must hold of new inputs (their names, and what was traced), as Python over the names."""
    found, sizes = [], []
    for name, value in inputs:
        if isinstance(value, Tensor):
            found += [f"{name}.dim() == {len(value.shape)}", f"{name}.dtype == {value.dtype}"]
            sizes += [(f"{name}.size()[{d}]", s) for d, s in enumerate(value.shape)]
        elif value is None or isinstance(value, bool):
            found.append(f"{name} is {value!r}")
        elif isinstance(value, float) and not math.isfinite(value):
            found.append(f"math.isnan({name})" if math.isnan(value) else f"{name} == {'-' * (value < 0)}math.inf")
        elif isinstance(value, (str, complex)):
            found.append(f"{name} == {value!r}")
        elif isinstance(value, (int, float)) or hasattr(value, "node"):
            found += [f"isinstance({name}, int)"] if hasattr(value, "node") else []
            sizes.append((name, value))
    texts = Conditions(env, [s for _, s in sizes], [n for n, _ in sizes], ignore_static=False).texts
    for text in texts:
        found += [part for part in text.split(" and ") if "(" not in text.replace("()", "")] or [text]
    shown = {n: env.replace(s.node.expr) for n, s in sizes if hasattr(s, "node")}
    kept = [relaxed for text in found if (relaxed := _as_promised(env, text, shown)) is not None]
    first = {name: i for i, (name, _) in enumerate(sizes)}
    place = lambda text: min((i for name, i in first.items() if name in text), default=-1)
    return [turned(text) for text in sorted(kept, key=place)]


def turned(text: str) -> str:
    """`3 <= x` as `x >= 3`."""
    low, sign, name = text.partition(" <= ")
    return f"{name} >= {low}" if sign and low.isdigit() and " <= " not in name else text


def _as_promised(env: ShapeEnv, text: str, shown: dict[str, Any]) -> str | None:
    """Tracing takes dynamic sizes to be at least 2; as in PyTorch, new inputs may be smaller where nobody asked for more."""
    name = text.removeprefix("2 <= ")
    if name == text or name not in shown:
        return text
    promises = [c for s, c in env.constraints.items() if env.replace(s) is shown[name]]
    low = max((c.vr.lower for c in promises if isinstance(c, StrictMinMaxConstraint)), default=0)
    return f"{int(low)} <= {name}" if low == 1 else None


def ranges_of(env: ShapeEnv, values: list) -> dict:
    """The range of every symbol, and of every size that is made of symbols."""
    exprs: dict = {}
    for value in values:
        for size in value.shape if isinstance(value, Tensor) else (value,):
            if hasattr(size, "node") and isinstance(expr := env.replace(size.node.expr), Expr):
                exprs.setdefault(expr)
                exprs.update(dict.fromkeys(expr.symbols))
    promised = {env.replace(s): c.vr for s, c in env.constraints.items() if isinstance(c, StrictMinMaxConstraint)}
    found = {}
    for expr in exprs:
        low, high = env.bounds(expr)
        if expr in promised and low <= 2:
            low = promised[expr].lower
        found[expr] = VR(low, high)
    return found


__all__ = ["VR", "ExportEnv", "Links", "conditions_of", "constraint_of", "context_of", "ranges_of", "specs_of"]
