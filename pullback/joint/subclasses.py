"""Compiled functions over wrappers: graphs work on plain tensors, callers see wrappers.

A `Wrapping` says how each input, result, tangent and gradient of a traced function is built (`capture.subclasses`), None
for plain ones. Around the compiled graphs it takes arguments and tangents apart and makes results and gradients again.
What always holds: a tangent is built as it was when the function was traced, or the backward raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..capture.trace.subclasses import (
    Layout,
    has_class_alone,
    in_class,
    layout_of,
    like_original,
    parts_of,
    rebuilt,
)
from ..core import tree
from ..core.tensor import Tensor, stride_of
from ..ops.system.dispatch import dispatch
from ..ops.system.operator import find

if TYPE_CHECKING:
    from .runtime import FlatCall

GUESSED = """
During the backward, we encountered a tensor subclass where we guessed its
metadata incorrectly.
Expected: {expected_context} (type {expected_type}),
got: {context} (type {type}), shape: {shape}.
Your tensor subclass must implement __coerce_same_metadata_as_tangent__."""


GUESSED_WRAPPER = """
During the backward, we encountered a tensor subclass where we guessed its
metadata incorrectly.
Expected a {expected_type} tangent but got a plain Tensor."""


@dataclass
class Wrapping:
    """How the values that go in and out of compiled graphs are built."""

    inputs: list[Layout | None]
    results: list[Layout | None]
    tangents: list[Layout | None]
    gradients: list[Layout | None]
    tangent_parts: list[Tensor]  # fakes of the plain tensors that the tangents come down to

    @property
    def flat_results(self) -> int:
        """How many results of the forward graph the results come down to."""
        return sum(count(layout) for layout in self.results)

    def around_forward(self, forward: Callable) -> Callable:
        """(arguments) -> (results, then saved values), of a compiled forward graph."""
        results = self.flat_results

        def run(*args):
            result = forward(*flat(args))
            return (*built(self.results, iter(result[:results])), *result[results:])

        return run

    def around_backward(self, backward: Callable) -> Callable:
        """(saved values, then tangents) -> gradients, of a compiled backward graph."""
        tangents = len(self.tangents)

        def run(*given):
            cut = len(given) - tangents
            parts = flat(given[cut:])
            result = backward(
                *given[:cut], *[in_layout(p, like) for p, like in zip(parts, self.tangent_parts, strict=True)]
            )
            return built(self.gradients, iter(result))

        return run

    def tangent(self, k: int, g: Tensor | None) -> Tensor:
        """A gradient that arrives at run time, built as tangent `k` was: zeros for none; an error where it is another kind."""
        layout = self.tangents[k]
        if g is None:
            first = sum(count(t) for t in self.tangents[:k])
            return rebuilt(layout, map(zeros_like, islice(self.tangent_parts, first, None)))
        return agreeing(g, layout)


# ---- classes without a rule for operators
def in_their_classes(f: Callable, args: list) -> tuple[Callable, dict[int, type]]:
    """A flat function that is traced on plain stand-ins, as one whose arguments have the classes of `args`, where these
    have their own `__torch_function__` alone; and the classes of its results, which are known once it is traced."""
    originals = {i: a for i, a in enumerate(args) if isinstance(a, Tensor) and has_class_alone(a)}
    found: dict[int, type] = {}
    if not originals:
        return f, found

    def run(*given):
        stand_ins = {i: like_original(given[i], a) for i, a in originals.items()}
        out = f(*[stand_ins.get(i, g) for i, g in enumerate(given)])
        for i, t in stand_ins.items():
            if t._autograd is not given[i]._autograd or t._array is not given[i]._array:
                raise NotImplementedError(
                    f"changing the history or the shape of an input of class {type(t).__name__} in place is not implemented"
                )
        results = enumerate(tree.tree_leaves(out))
        found.update({n: type(o) for n, o in results if isinstance(o, Tensor) and has_class_alone(o)})
        inputs = {id(t): given[i] for i, t in stand_ins.items()}
        return tree.tree_map_only(Tensor, lambda o: inputs.get(id(o), o), out)

    return run, found


def given_classes(inner: FlatCall, classes: dict[int, type]) -> FlatCall:
    """A compiled function that gives some of its results in classes of their own."""
    if not classes:
        return inner

    def call(given: list) -> list:
        outs = list(inner(given))
        for n, cls in classes.items():
            outs[n] = in_class(outs[n], cls)
        return outs

    return inner.called_by(call)


# ---- wrappers
def wraps(layouts: list) -> bool:
    return any(layout is not None for layout in layouts)


def count(layout: Layout | None) -> int:
    return 1 if layout is None else layout.count


def flat(values) -> list:
    """Plain tensors (and other values) that values come down to."""
    return [p for v in values for p in parts_of(v)]


def built(layouts: list[Layout | None], plain: Iterator) -> list:
    """Values of some layouts. A plain one that is not there (a gradient that is None) stays None."""
    return [rebuilt(layout, plain) for layout in layouts]


def tangent_layout(layout: Layout | None, strides: Callable[[tuple, tuple], tuple]) -> Layout | None:
    """The layout of a result's tangent: its strides are those of a tensor made like the result."""
    if layout is None:
        return None
    parts = tuple(tangent_layout(p, strides) for p in layout.parts)
    return replace(layout, stride=strides(layout.shape, layout.stride), parts=parts)


def zeros_like(fake: Tensor) -> Tensor:
    return dispatch(find("zeros.default"), (tuple(fake._array.shape), fake.dtype, None, fake.device, False))


def in_layout(g, like: Tensor):
    """A part of a tangent with the strides that the graph was made for."""
    if isinstance(g, Tensor) and tuple(stride_of(g)) != tuple(stride_of(like)):
        return g.new_empty_strided(tuple(like._array.shape), stride_of(like)).copy_(g)
    return g


def agreeing(g: Tensor, expected: Layout | None) -> Tensor:
    """A tangent of the kind expected: the class may make one of another kind, otherwise it is an error."""
    if same_kind(layout_of(g), expected):
        return g
    cls, context = (Tensor, None) if expected is None else (expected.cls, expected.context)
    coerce = getattr(g, "__coerce_same_metadata_as_tangent__", None)
    result = None
    if coerce is not None:
        result = coerce(context) if type(g) is cls else coerce(context, cls)
    if result is None and layout_of(g) is None:
        raise RuntimeError(GUESSED_WRAPPER.format(expected_type=cls))
    if result is None or not same_kind(layout_of(result), expected):
        raise RuntimeError(GUESSED.format(
            expected_context=context, expected_type=cls, type=type(g), context=_context(g), shape=tuple(g.shape),
        ))  # fmt: skip
    return result


def same_kind(a: Layout | None, b: Layout | None) -> bool:
    """Whether two layouts differ in sizes and strides at most."""
    if a is None or b is None:
        return a is b
    if a.cls is not b.cls or a.names != b.names or a.context != b.context:
        return False
    return all(same_kind(x, y) for x, y in zip(a.parts, b.parts, strict=True))


def _context(g: Tensor) -> Any:
    layout = layout_of(g)
    return None if layout is None else layout.context
