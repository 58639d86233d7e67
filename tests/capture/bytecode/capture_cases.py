"""Small programs run eagerly and compiled: what they give, raise, change and share must be the same, call after call.

A case is a function without arguments that makes a program anew: `(function, arguments)` or `(function, arguments, state)`,
where `arguments(i)` are those of call `i` and `state()` is what of the outside is compared after each call.
"""

import enum
import types
import warnings
from collections.abc import Callable
from typing import Any

import pullback as torch
from pullback.capture.front.config import config

ATOMS = (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device, type(...), enum.Enum)


def rounded(numbers: Any) -> Any:
    """Numbers without the last digits, in which a decomposition may differ."""
    if isinstance(numbers, list):
        return [rounded(n) for n in numbers]
    return float(f"{numbers:.4g}") + 0.0 if isinstance(numbers, float) else numbers


class Picture:
    """Values as plain data, in which an object that is met again is the number of its first meeting."""

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}
        self.kept: list = []  # so that no identity is used twice

    def of(self, value: Any) -> Any:
        if isinstance(value, float) and value != value:
            return "nan"
        if isinstance(value, ATOMS) or isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType)):
            return type(value).__name__, value
        if type(value) is tuple:  # equal ones may be one object
            return "tuple", [self.of(v) for v in value]
        if id(value) in self.seen:
            return "again", self.seen[id(value)]
        self.seen[id(value)] = len(self.seen)
        self.kept.append(value)
        return type(value).__name__, self.parts(value)

    def own(self, value: Any) -> Any:
        """The attributes of an object that is a container besides."""
        return self.of(vars(value)) if getattr(value, "__dict__", None) else None

    def parts(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            data = value.detach()
            own = {k: v for k, v in vars(value).items() if not k.startswith("_")}
            grad = self.of(value.grad) if value.is_leaf else None
            return (
                str(rounded(data.resolve_conj().tolist())),
                tuple(data.shape),
                data.dtype,
                value.requires_grad,
                value.is_leaf,
                grad,
                self.of(own),
            )
        if isinstance(value, dict):
            inner = [(self.of(k), self.of(v)) for k, v in value.items()]
            return inner, getattr(value, "default_factory", None), self.own(value)
        if isinstance(value, (set, frozenset)):
            return sorted(map(repr, value))
        if isinstance(value, BaseException):
            return self.of(value.args), self.of(value.__cause__), self.of(vars(value))
        if isinstance(value, types.FunctionType):
            cells = [c.cell_contents for c in value.__closure__ or ()]
            return value.__qualname__, self.of(cells), self.of(value.__defaults__), self.of(value.__dict__)
        if isinstance(value, types.MethodType):
            return self.of(value.__func__), self.of(value.__self__)
        if isinstance(value, torch.nn.Module):
            return list(map(self.of, value.state_dict().values())), value.training
        if hasattr(value, "__iter__") and hasattr(value, "__len__"):
            return [self.of(v) for v in value], self.own(value)
        slots = [s for k in type(value).__mro__ for s in k.__dict__.get("__slots__", ())]
        own = {s: getattr(value, s) for s in slots if hasattr(value, s)} | getattr(value, "__dict__", {})
        return self.of(own) if own else None


def history(make: Callable, wrap: Callable, calls: int) -> list:
    """What each call of a program did."""
    torch.manual_seed(0)
    function, arguments, *state = make()
    run = wrap(function)
    out = []
    for i in range(calls):
        args = arguments(i)
        picture = Picture()
        try:
            result = ("returned", run(*args))
        except Exception as error:
            result = ("raised", type(error), str(error), error.__cause__)
        out.append(picture.of([*result, args, state[0]() if state else None]))
    return out


def difference(a: Any, b: Any) -> tuple:
    """The first parts of two pictures that differ."""
    if type(a) is type(b) and isinstance(a, (list, tuple)) and len(a) == len(b):
        for one, other in zip(a, b, strict=True):
            if one != other:
                return difference(one, other)
    return a, b


class Graphs:
    """A backend that runs graphs as they are and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, module, examples):
        self.count += 1
        return module


def check(make: Callable, backend: Any = "eager", calls: int = 3, strict: bool = True, **options) -> None:
    """Compare eager and compiled runs; with `strict`, running uncompiled instead is a failure."""
    expected = history(make, lambda f: f, calls)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = history(make, lambda f: torch.compile(f, backend=backend, **options), calls)
    for i, (a, b) in enumerate(zip(expected, result, strict=True)):
        assert a == b, f"call {i}: eager {' compiled '.join(map(str, difference(a, b)))}"
    fell_back = [str(w.message) for w in caught if "runs uncompiled" in str(w.message)]
    assert not (strict and fell_back), fell_back


class Cases(list):
    """A table of cases; `graphs` of a case: how many are made in its calls."""

    def __call__(self, make: Callable | None = None, *, graphs: int | None = None, **options) -> Callable:
        def enter(one: Callable) -> Callable:
            one.graphs, one.options = graphs, options
            self.append(one)
            return one

        return enter(make) if make is not None else enter

    def run(self, make: Callable, backend: str, nested: bool = False) -> None:
        before = config.nested_graph_breaks
        config.nested_graph_breaks = nested
        try:
            if backend == "count":
                counting = Graphs()
                check(make, counting, **make.options)
                assert make.graphs is None or counting.count == make.graphs, f"{counting.count} graphs"
            else:
                check(make, backend, **make.options)
        finally:
            config.nested_graph_breaks = before


def x_of(i: int, *shape: int) -> torch.Tensor:
    """A tensor that is another one in each call."""
    shape = shape or (3,)
    count = 1
    for s in shape:
        count *= s
    return (torch.arange(float(count)) - 1.5 + i).reshape(shape)


BACKENDS = ("count", "aot_eager")
